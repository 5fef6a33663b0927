"""A person lists the Git directory of a pending checkout, and the approval includes it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.control.session_requests import SessionRequests
from rootsd.core.errors import IdentityChanged
from rootsd.core.model import UNDECIDED, Project, SessionKey
from rootsd.core.shared_git import GitAccess, shared_git
from rootsd.wire.decisions import DecideRequest
from rootsd.wire.projects import Selection, ShowQuery
from rootsd.wire.request import ApplyMode, BadRequest
from support.control_harness import APPROVE, CWD, DENY, FORGET, ControlHarness, names
from support.ledger_harness import path
from support.sample_decisions import approved, denied, identity, project, worktree

TREE = replace(worktree(1, 2), ruling=UNDECIDED)
OTHER_TREE = replace(worktree(3, 2), ruling=UNDECIDED)


def harness(*more: Project, main: Project | None = None) -> ControlHarness:
    return ControlHarness(main or project(2), TREE, *more)


def listed(decided: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an order that includes everything listed."""
    items = [each for each in decided["shared_git"] if each["confirmable"]]
    return {
        "shared_git": tuple(each["root"] for each in items),
        "shared_git_shown": tuple(each["identity"] for each in items),
    }


async def plan_of(control: ControlHarness, *refs: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return await control.decide(APPROVE, *refs, effect=ApplyMode.DRY_RUN, **more)


def access(control: ControlHarness, number: int = 1) -> GitAccess | None:
    catalog = control.world.ledger.catalog
    git = shared_git(catalog, catalog.projects[path(number)])
    return None if git is None else git.access


async def test_a_plan_lists_the_git_directory_and_the_order_with_the_list_includes_it() -> None:
    control = harness()
    (item,) = (await plan_of(control, "p1"))["shared_git"]
    assert (item["root"], item["root_name"], item["access"]) == ("r1", "p1", "read-write")
    assert (item["id"], item["name"], item["path"]) == ("r2", "p2", path(2).decode())
    assert item["git_directory"] == f"{path(2).decode()}/.git"
    assert (item["included"], item["confirmable"]) == (False, True)
    await control.decide(APPROVE, "p1")
    assert access(control) is GitAccess.CHECKOUT_PENDING
    done = await control.decide(APPROVE, "p1", **listed(await plan_of(control, "p1")))
    assert [(each["included"], each["reason"]) for each in done["shared_git"]] == [
        (True, "the approval includes it")
    ]
    assert access(control) is GitAccess.INCLUDED
    decision = control.world.ledger.catalog.projects[path(1)].ruling.decision
    assert decision is not None
    assert decision.shared_git == identity(2)
    assert control.world.is_kept()
    assert (await plan_of(control, "p1"))["shared_git"][0]["confirmable"]
    await control.decide(APPROVE, "p1")  # a named approval again does not inherit it
    assert access(control) is GitAccess.CHECKOUT_PENDING


async def test_only_the_listed_projects_of_an_order_include_it() -> None:
    control = harness(OTHER_TREE)
    one = listed(await plan_of(control, "p1"))
    await control.decide(APPROVE, "p[13]", **one)
    assert access(control) is GitAccess.INCLUDED
    assert access(control, 3) is GitAccess.CHECKOUT_PENDING


async def test_a_checkout_that_is_decided_or_approved_with_it_is_not_listed() -> None:
    for main in (approved(2), denied(2)):
        assert (await plan_of(harness(main=main), "p1"))["shared_git"] == []
    assert (await plan_of(harness(), "p1", "p2"))["shared_git"] == []
    assert (await plan_of(harness(), select=Selection.PENDING))["shared_git"] == []


async def test_an_answer_to_a_session_lists_none() -> None:
    control = harness()
    key = SessionKey("s1", "an agent")

    async def track(_: SessionKey) -> bool:
        return True

    requests = SessionRequests(lambda asked: (key,) if asked == path(1) else (), track)
    control.services = replace(control.services, requests=requests)
    plan = await plan_of(control, "p1")
    assert plan["shared_git"] == []
    assert plan["items"][0]["session"] == "an agent"


async def test_another_checkout_than_the_one_shown_is_refused_and_nothing_is_decided() -> None:
    control = harness()
    shown = listed(await plan_of(control, "p1"))
    control.world.disk.folders[path(2)] = identity(9)
    with pytest.raises(IdentityChanged):
        await control.decide(APPROVE, "p1", **shown)
    with pytest.raises(IdentityChanged):  # now the daemon knows the other checkout
        await control.decide(APPROVE, "p1", **shown)
    assert control.world.published() == set()
    await control.decide(APPROVE, "p1", **listed(await plan_of(control, "p1")))
    assert access(control) is GitAccess.INCLUDED


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"shared_git": ("r1",)}, BadRequest),
        ({"shared_git": ("r1",), "shared_git_shown": ("",)}, IdentityChanged),
        ({"shared_git": ("r2",), "shared_git_shown": ("",)}, IdentityChanged),
        ({"shared_git": ("unknown",), "shared_git_shown": ("x",)}, IdentityChanged),
    ],
)
async def test_a_list_that_was_not_shown_is_refused(
    given: dict[str, Any], error: type[Exception]
) -> None:
    control = harness()
    with pytest.raises(error):
        await control.decide(APPROVE, "p1", **given)
    assert control.world.published() == set()


async def test_a_new_list_is_a_change_and_the_same_list_is_none() -> None:
    control = harness(project(4))
    await control.decide(APPROVE, "p1")
    shown = listed(await plan_of(control, "p1"))
    done = await control.decide(APPROVE, "p[14]", **shown)
    assert names(done["items"]) == ["p1", "p4"]
    assert access(control) is GitAccess.INCLUDED
    for more in (shown, {}):
        done = await control.decide(APPROVE, "p[14]", **more)
        assert (names(done["items"]), done["shared_git"]) == ([], [])
        assert access(control) is GitAccess.INCLUDED


async def test_a_denial_of_the_checkout_ends_it_and_show_says_so() -> None:
    control = harness()
    await control.decide(APPROVE, "p1", **listed(await plan_of(control, "p1")))
    told = []
    for verb in (None, DENY, FORGET):
        if verb is not None:
            await control.decide(verb, "p2")
        (item,) = (await control.ask(ShowQuery(CWD, ("p1",))))["items"]
        told.append((item["shared_git"]["included"], item["shared_git"]["reason"]))
    assert told == [
        (True, "the approval includes it"),
        (False, "its checkout is denied"),
        (True, "the approval includes it"),
    ]
    (item,) = (await control.ask(ShowQuery(CWD, ("p2",))))["items"]
    assert "shared_git" not in item


async def test_the_guard_names_the_git_directory() -> None:
    control = harness()
    shown = listed(await plan_of(control, "p1"))
    order = control.dispatcher.guarded_command(DecideRequest(APPROVE, CWD, ("p1",), **shown))
    assert order is not None
    place = path(2).decode()
    assert list(await order.preview()) == [
        f"approve {path(1).decode()}",
        f"approve the use of {place}/.git",
    ]
