"""Orders on globs and selections, which do not name each project."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.core.errors import IdentityChanged, NotPresent, UnknownProject
from rootsd.core.model import UNDECIDED, Project
from rootsd.core.paths import text_of
from rootsd.wire.decisions import DecideRequest
from rootsd.wire.projects import Selection
from rootsd.wire.request import ApplyMode
from support.control_harness import APPROVE, CWD, DENY, FORGET, ControlHarness, names
from support.core_samples import UNIDENTIFIABLE, identity
from support.ledger_harness import (
    HOME,
    SOURCES,
    at,
    lapsed,
    missing,
    path,
)
from support.sample_decisions import approved, denied, project, worktree


async def test_a_glob_overrides_no_denial_and_skips_unsuitable_projects() -> None:
    control = ControlHarness(
        project(1),
        denied(2),
        missing(lapsed(project(3))),
        project(4),
        at(path(4) + b"/p5", denied(5)),
        at(path(4) + b"/p5/p6", project(6)),
        approved(7),
    )
    done = await control.decide(APPROVE, "p*")
    assert (names(done["items"]), names(done["unchanged"])) == (["p1"], ["p7"])
    assert await control.world.told() == {path(1), path(7)}
    with pytest.raises(UnknownProject):
        await control.decide(APPROVE, "p2*")
    await control.decide(APPROVE, "p2")
    assert path(2) in await control.world.told()


async def test_a_glob_denies_and_forgets_all_matches() -> None:
    control = ControlHarness(approved(1), denied(2), project(3))
    done = await control.decide(DENY, "p*")
    assert (names(done["items"]), names(done["unchanged"])) == (["p1", "p3"], ["p2"])
    assert names((await control.decide(FORGET, "p*"))["items"]) == ["p1", "p2", "p3"]


async def test_approve_all_lists_the_skipped_projects_and_a_denying_selection_skips_none() -> None:
    control = ControlHarness(
        project(1), denied(2), lapsed(project(3)), project(4), at(path(4) + b"/in", denied(5))
    )
    done = await control.decide(APPROVE, select=Selection.PENDING)
    assert names(done["items"]) == ["p1", "p3"]
    assert done["warnings"] == ["p4 is left out: it holds a denied project"]
    assert await control.world.told() == {path(1), path(3)}
    done = await control.decide(DENY, select=Selection.PENDING)
    assert (names(done["items"]), done["warnings"]) == (["p4"], [])
    done = await control.decide(DENY, select=Selection.PUBLISHED)
    assert names(done["items"]) == ["p1", "p3"]


def _forged(number: int, main: int) -> Project:
    """Return a folder whose `.git` file was written long after the folder was created."""
    tree = worktree(number, main)
    seen = tree.observed.identity
    assert seen is not None
    observed = replace(tree.observed, identity=replace(seen, born_ns=0))
    return replace(tree, observed=observed, ruling=UNDECIDED)


APART = "its folder, its .git file and its entry in git were not created together"
ONE_BY_NAME = "1 project has to be approved by name: rootsd approve PATH"


@pytest.mark.parametrize("effect", ApplyMode)
@pytest.mark.parametrize(
    ("refs", "more"),
    [
        ((), {"select": Selection.PENDING}),
        ((), {"select": Selection.PENDING, "under": str(SOURCES, "ascii")}),
        (("p*",), {}),
    ],
)
async def test_a_selection_skips_a_forged_worktree_and_says_so(
    refs: tuple[str, ...], more: dict[str, Any], effect: ApplyMode
) -> None:
    control = ControlHarness(approved(1), project(2), _forged(3, 1))
    done = await control.decide(APPROVE, *refs, effect=effect, **more)
    assert names(done["items"]) == ["p2"]
    assert done["warnings"] == [f"p3 is left out: {APART}", ONE_BY_NAME]
    assert path(3) not in await control.world.told()
    with pytest.raises(UnknownProject, match=f"p3 is left out: {APART}; {ONE_BY_NAME}"):
        await control.decide(APPROVE, "p3*", effect=effect)
    named = await control.decide(APPROVE, str(path(3), "ascii"))
    assert (names(named["items"]), named["warnings"]) == (["p3"], [])
    assert path(3) in await control.world.told()


async def test_a_selection_approves_a_worktree_that_git_made() -> None:
    real = replace(worktree(3, 1), ruling=UNDECIDED)
    control = ControlHarness(project(1), real)
    done = await control.decide(APPROVE, select=Selection.PENDING)
    assert (names(done["items"]), done["warnings"]) == (["p1", "p3"], [])


async def test_the_guard_names_exactly_the_worktrees_that_a_person_included() -> None:
    trees = [replace(worktree(number, 1), ruling=UNDECIDED) for number in (3, 4)]
    control = ControlHarness(project(1), *trees)
    listed = (await control.decide(APPROVE, "p1", effect=ApplyMode.DRY_RUN))["worktrees"]
    assert {each["path"] for each in listed} == {text_of(path(3)), text_of(path(4))}
    (third,) = (each for each in listed if each["path"] == text_of(path(3)))
    shown: dict[str, Any] = {"worktrees": (third["id"],), "worktrees_shown": (third["identity"],)}
    order = control.dispatcher.guarded_command(DecideRequest(APPROVE, CWD, ("p1",), **shown))
    assert order is not None
    assert list(await order.preview()) == [f"approve {text_of(path(n))}" for n in (1, 3)]


async def test_a_selection_skips_parents_and_folders_that_contain_one() -> None:
    control = ControlHarness(project(1), project(2), at(path(2) + b"/src/in", project(3)))
    catalog = control.world.ledger.catalog
    await control.world.ledger.set_places(catalog.places._replace(parents=(path(2) + b"/src",)))
    done = await control.decide(APPROVE, select=Selection.PENDING)
    assert names(done["items"]) == ["p1", "in"]
    assert done["warnings"] == ["p2 is left out: it is a parent, or contains one", ONE_BY_NAME]
    assert names((await control.decide(APPROVE, "p2"))["items"]) == ["p2"]


async def test_ten_skipped_projects_are_named_and_all_are_counted() -> None:
    control = ControlHarness(
        approved(1), *(_forged(number, 1) for number in range(10, 30)), project(2)
    )
    warnings = (await control.decide(APPROVE, select=Selection.PENDING))["warnings"]
    assert len(warnings) == 11
    assert warnings[-1] == "20 projects have to be approved by name: rootsd approve PATH"


def _alike(number: int) -> Project:
    """Return a project on a file system without file handles and birth times."""
    known = project(number)
    return replace(known, observed=replace(known.observed, identity=UNIDENTIFIABLE))


async def test_unpublishable_projects_do_not_stop_the_others() -> None:
    control = ControlHarness(
        project(1),
        at(SOURCES + b"/caf\xe9", project(2)),
        at(HOME + b"/.ssh/x", project(3)),
        _alike(4),
    )
    done = await control.decide(APPROVE, select=Selection.PENDING)
    assert names(done["items"]) == ["p1"]
    assert sorted(done["warnings"]) == [
        "caf\\xe9 is left out: its path is not UTF-8",
        "p4 is left out: its file system cannot distinguish a folder from another one that takes"
        " its place",
        "x is left out: /home/ann/.ssh contains secrets and settings",
    ]
    with pytest.raises(UnknownProject, match=r"caf.* is left out: .*; p4 is left out: "):
        await control.decide(APPROVE, select=Selection.PENDING)
    assert names((await control.decide(APPROVE, "*"))["unchanged"]) == ["p1"]
    with pytest.raises(NotPresent, match="p4 cannot be approved: its file system"):
        await control.decide(APPROVE, "p4")


async def test_a_concurrent_change_does_not_stop_a_selection() -> None:
    control = ControlHarness(project(1), project(2), project(3), project(4))
    control.world.disk.folders[path(2)] = identity(20)
    del control.world.disk.folders[path(3)]
    everything = DecideRequest(APPROVE, CWD, select=Selection.PENDING)
    plan = await control.ask(replace(everything, effect=ApplyMode.DRY_RUN))
    listed = tuple(each["token"] for each in plan["confirmation"]["projects"])
    done = await control.ask_unconfirmed(replace(everything, confirmed=listed))
    assert names(done["items"]) == ["p1", "p4"]
    assert done["warnings"] == [f"p{n} is left out: it changed just now" for n in (2, 3)]
    assert await control.world.told() == {path(1), path(4)}
    # The new folder was not part of the selection, so it stays pending.
    assert names((await control.decide(APPROVE, select=Selection.PENDING))["items"]) == ["p2"]


async def test_a_selection_without_a_suitable_project_is_refused() -> None:
    control = ControlHarness(project(1))
    control.world.disk.folders[path(1)] = identity(10)
    with pytest.raises(IdentityChanged):
        await control.decide(APPROVE, select=Selection.PENDING)


async def test_a_selection_may_be_limited_to_lapsed_projects_and_to_a_folder() -> None:
    control = ControlHarness(
        project(1), lapsed(project(2)), at(SOURCES + b"/sub/p3", lapsed(project(3)))
    )
    under = "/home/ann/src/sub"
    done = await control.decide(
        APPROVE, select=Selection.LAPSED, under=under, effect=ApplyMode.DRY_RUN
    )
    assert [item["id"] for item in done["items"]] == ["r3"]
    done = await control.decide(
        APPROVE, select=Selection.PENDING, under="sub", effect=ApplyMode.DRY_RUN
    )
    assert [item["id"] for item in done["items"]] == ["r3"]
    with pytest.raises(UnknownProject):
        await control.decide(APPROVE, select=Selection.PENDING, under="/home/ann/src/su")
