"""An order about more than one project changes nothing before a person has confirmed its list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from rootsd.control import services
from rootsd.control.daemon_parts import SeenBelow
from rootsd.control.handlers import undo
from rootsd.control.project_reader import Risks
from rootsd.core.access import Access
from rootsd.core.errors import Unconfirmed
from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import (
    Decision,
    Project,
    ProjectKind,
    Ruling,
    Verdict,
)
from rootsd.core.paths import RefusedPlaces
from rootsd.wire.decisions import AddRuleRequest, DecideRequest, RemoveRuleRequest, TagRequest
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import Selection
from rootsd.wire.request import ApplyMode
from support.control_harness import (
    APPROVE,
    CWD,
    DENY,
    FORGET,
    Confirmable,
    ControlHarness,
)
from support.ledger_harness import HOME, SOURCES, at, lapsed, path, rule
from support.sample_decisions import NOON, PERSON, approved, denied, identity, project

FOLDER = SOURCES.decode()
HOLDER = at(SOURCES, project(9))  # a project in whose folder all others lie
OUTSIDE = at(b"/home/ann/other", project(8))


def pending() -> ControlHarness:
    return ControlHarness(project(1), project(2), OUTSIDE)


def with_roots() -> ControlHarness:
    return ControlHarness(approved(1), approved(2), OUTSIDE)


def with_denials() -> ControlHarness:
    return ControlHarness(denied(1), denied(2), OUTSIDE)


def with_lapses() -> ControlHarness:
    return ControlHarness(lapsed(approved(1)), lapsed(approved(2)), OUTSIDE)


def with_a_holder() -> ControlHarness:
    return ControlHarness(HOLDER, project(1), project(2), OUTSIDE)


def with_a_read_only_holder() -> ControlHarness:
    decision = Decision(Verdict.APPROVED, PERSON, NOON, identity(9), Access.READ)
    holder = replace(HOLDER, ruling=Ruling(decision=decision, name="src"))
    return ControlHarness(holder, project(1), project(2), OUTSIDE)


def with_a_rule(verdict: Verdict) -> Callable[[], ControlHarness]:
    return lambda: ControlHarness(project(1), project(2), OUTSIDE, rules=[rule(verdict)])


def order(verb: str, *refs: str, **more: object) -> DecideRequest:
    return DecideRequest(verb, CWD, refs, **more)  # type: ignore[arg-type]


# Each order, and what it is about, decides about several projects.
BULK: list[tuple[Callable[[], ControlHarness], Confirmable]] = [
    (pending, order(APPROVE, "p1", "p2")),
    (pending, order(APPROVE, "p*")),
    (pending, order(APPROVE, select=Selection.PENDING)),
    (pending, order(APPROVE, select=Selection.PENDING, under=FOLDER)),
    (with_lapses, order(APPROVE, select=Selection.LAPSED)),
    (with_lapses, order(APPROVE, "p1", "p2", select=Selection.LAPSED)),
    (with_a_holder, order(APPROVE, FOLDER)),
    (with_a_holder, order(APPROVE, FOLDER, access=Access.READ)),
    (with_roots, order(APPROVE, "p1", "p2", access=Access.READ)),
    (with_roots, order(APPROVE, "p1", "p2")),
    (with_a_read_only_holder, order(APPROVE, FOLDER, access=Access.READ_WRITE)),
    (pending, order(DENY, "p1", "p2")),
    (pending, order(DENY, "p*")),
    (with_a_holder, order(DENY, FOLDER)),
    (with_roots, order(FORGET, "p*")),
    (with_denials, order(FORGET, "p1", "p2")),
    (pending, TagRequest(("p*",), CWD, ("work",))),
    (pending, AddRuleRequest(Verdict.APPROVED, f"{FOLDER}/**", CWD)),
    (pending, AddRuleRequest(Verdict.DENIED, HOME.decode(), CWD)),
    (with_a_rule(Verdict.DENIED), RemoveRuleRequest(1)),
]


def state(control: ControlHarness) -> object:
    catalog = control.world.ledger.catalog
    return catalog.projects, catalog.rules, control.discovery.proposed


@pytest.mark.parametrize(("make", "request_"), BULK)
async def test_an_unconfirmed_order_about_several_projects_changes_nothing(
    make: Callable[[], ControlHarness], request_: Confirmable
) -> None:
    control = make()
    before = state(control)
    with pytest.raises(Unconfirmed, match="nobody has confirmed"):
        await control.ask_unconfirmed(request_)
    with pytest.raises(Unconfirmed, match="not the ones you were shown"):
        await control.ask_unconfirmed(replace(request_, confirmed=("0" * 16,)))
    assert state(control) == before
    plan = await control.ask_unconfirmed(replace(request_, effect=ApplyMode.DRY_RUN))
    listed = plan["confirmation"]["projects"]
    assert {"p1", "p2"} <= {each["name"] for each in listed}
    tokens = [each["token"] for each in listed]
    with pytest.raises(Unconfirmed, match="not the ones you were shown"):
        await control.ask_unconfirmed(replace(request_, confirmed=tuple(tokens[1:])))
    assert state(control) == before
    await control.ask_unconfirmed(replace(request_, confirmed=tuple(tokens)))
    assert state(control) != before


@pytest.mark.parametrize(
    ("make", "request_"), {type(request): (make, request) for make, request in BULK}.values()
)
async def test_the_test_notices_an_order_without_the_gate(
    make: Callable[[], ControlHarness], request_: Confirmable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "refuse_unconfirmed", lambda *_: lambda _before, _made: None)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await test_an_unconfirmed_order_about_several_projects_changes_nothing(make, request_)


@pytest.mark.parametrize(
    "request_",
    [
        order(APPROVE, "p1"),
        order(APPROVE, "/home/ann/other"),
        order(DENY, "p1"),
        order(FORGET, "p1"),
        TagRequest(("p1",), CWD, ("work",)),
        AddRuleRequest(Verdict.APPROVED, f"{FOLDER}/p1", CWD),
        AddRuleRequest(Verdict.DENIED, f"{FOLDER}/later/**", CWD),
        order(APPROVE, select=Selection.PENDING, under=f"{FOLDER}/p1"),
    ],
)
async def test_an_order_about_one_project_needs_no_confirmation(request_: Confirmable) -> None:
    control = ControlHarness(project(1), approved(2), OUTSIDE)
    plan = await control.ask_unconfirmed(replace(request_, effect=ApplyMode.DRY_RUN))
    assert "confirmation" not in plan
    await control.ask_unconfirmed(request_)


async def test_a_denial_inside_a_root_is_about_one_project() -> None:
    inside = at(path(1) + b"/in", project(2))
    control = ControlHarness(approved(1), inside)
    done = await control.ask_unconfirmed(order(DENY, f"{FOLDER}/p1/in"))
    assert done["warnings"] == ["p1 is withheld: it holds a denied project"]
    await control.ask_unconfirmed(order(FORGET, f"{FOLDER}/p1/in"))
    assert await control.world.told() == {path(1)}


async def test_a_folder_says_what_it_shows_and_what_it_denies() -> None:
    control, read = with_a_holder(), list[list[bytes]]()

    async def risks_of(projects: Sequence[Project], seconds: float) -> Risks:
        assert seconds > 0
        read.append([known.path for known in projects])
        return {}

    control.reader.risks = risks_of  # type: ignore[method-assign]
    plan = await control.decide(APPROVE, FOLDER, effect=ApplyMode.DRY_RUN)
    assert read == [[SOURCES, path(1), path(2)]]
    listed = {
        each["path"]: (each["before"], each["after"], each["within"])
        for each in plan["confirmation"]["projects"]
    }
    assert listed == {
        FOLDER: ("pending", "approved", None),
        f"{FOLDER}/p1": ("pending", "pending", FOLDER),
        f"{FOLDER}/p2": ("pending", "pending", FOLDER),
    }
    plan = await control.decide(DENY, FOLDER, effect=ApplyMode.DRY_RUN)
    assert {each["after"] for each in plan["confirmation"]["projects"]} == {"denied"}


@pytest.mark.parametrize("verb", [APPROVE, DENY])
async def test_a_parent_counts_even_if_nothing_is_in_it_yet(verb: str) -> None:
    control = ControlHarness(HOLDER)
    ledger = control.world.ledger
    await ledger.set_places(RefusedPlaces(HOME, parents=(SOURCES,)))
    with pytest.raises(Unconfirmed, match="a whole parent"):
        await control.ask_unconfirmed(order(verb, FOLDER))
    plan = await control.ask_unconfirmed(order(verb, FOLDER, effect=ApplyMode.DRY_RUN))
    assert plan["confirmation"]["parents"] == [FOLDER]
    await control.ask(order(verb, FOLDER))


async def test_an_unknown_folder_that_holds_projects_is_not_even_proposed() -> None:
    control = pending()
    control.world.disk.folders[SOURCES] = identity(9)
    for verb in (APPROVE, DENY):
        with pytest.raises(Unconfirmed, match="3 projects"):
            await control.ask_unconfirmed(order(verb, FOLDER))
    assert control.discovery.proposed == []
    assert SOURCES not in control.world.ledger.catalog.projects
    await control.ask(order(APPROVE, FOLDER))
    assert SOURCES in await control.world.told()


def seen_below(*names: str) -> tuple[ProjectObserved, ...]:
    """Return repositories below p1 as a look finds them; `names` are their paths in it."""
    return tuple(
        ProjectObserved(path(1) + b"/" + name.encode(), ProjectKind.GIT, identity(ord(name[-1])))
        for name in names
    )


@pytest.mark.parametrize("is_known", [True, False])
async def test_what_a_look_finds_below_a_new_root_is_listed_and_stays_unknown(
    is_known: bool,
) -> None:
    control = ControlHarness(project(1)) if is_known else ControlHarness()
    control.world.disk.folders[path(1)] = identity(1)
    control.discovery.below = SeenBelow(seen_below(".hidden/a", "b"))
    before = state(control)
    whole = order(APPROVE, f"{FOLDER}/p1")
    with pytest.raises(Unconfirmed, match="3 projects"):
        await control.ask_unconfirmed(whole)
    assert state(control) == before
    plan = await control.ask_unconfirmed(replace(whole, effect=ApplyMode.DRY_RUN))
    listed = plan["confirmation"]["projects"]
    assert [(each["name"], each["within"]) for each in listed] == [
        ("p1", None), ("a", f"{FOLDER}/p1"), ("b", f"{FOLDER}/p1")
    ]  # fmt: skip
    tokens = tuple(each["token"] for each in listed)
    control.discovery.below = SeenBelow(seen_below(".hidden/a", "b", "c"))
    with pytest.raises(Unconfirmed, match="4 projects, and not the ones you were shown"):
        await control.ask_unconfirmed(replace(whole, confirmed=tokens))
    control.discovery.below = SeenBelow(seen_below("b"))
    await control.ask_unconfirmed(replace(whole, confirmed=tokens))
    assert control.world.ledger.catalog.projects.keys() == {path(1)}
    assert await control.world.told() == {path(1)}


async def test_control_without_the_look_a_folder_is_published_with_what_nobody_saw() -> None:
    control = ControlHarness(project(1))
    control.discovery.below = SeenBelow(seen_below(".hidden/a", "b"))
    with pytest.raises(Unconfirmed):
        await control.ask_unconfirmed(order(APPROVE, "p1"))
    control.discovery.below = SeenBelow()
    await control.ask_unconfirmed(order(APPROVE, "p1"))
    assert await control.world.told() == {path(1)}


async def test_a_look_that_was_not_whole_needs_a_confirmation() -> None:
    control = ControlHarness(project(1), lapsed(approved(2)))
    control.discovery.below = SeenBelow(unsearched=frozenset((path(1), path(2))))
    lapses = order(APPROVE, "p2", select=Selection.LAPSED)
    rule_ = AddRuleRequest(Verdict.APPROVED, f"{FOLDER}/p1", CWD)
    for request_ in (order(APPROVE, "p1"), lapses, rule_):
        with pytest.raises(Unconfirmed, match="more folders than rootsd can look through"):
            await control.ask_unconfirmed(request_)
    plan = await control.ask_unconfirmed(order(APPROVE, "p1", effect=ApplyMode.DRY_RUN))
    assert plan["confirmation"]["unsearched"] == [f"{FOLDER}/p1"]
    for request_ in (order(APPROVE, "p1"), lapses):
        await control.ask(request_)
    assert await control.world.told() == {path(1), path(2)}
    control.discovery.looked.clear()
    for again in (order(APPROVE, "p1"), TagRequest(("p1",), CWD, ("t",)), order(DENY, "p1")):
        await control.ask_unconfirmed(again)
    assert control.discovery.looked == [], "nothing that they decide about is new to clients"
    with pytest.raises(Unconfirmed, match="more folders than"):
        await control.ask_unconfirmed(UndoRequest())


async def test_a_confirmed_list_does_not_cover_another_folder_or_a_newer_project() -> None:
    control = ControlHarness(project(1), project(2))
    everything = order(APPROVE, select=Selection.PENDING)
    plan = await control.ask_unconfirmed(replace(everything, effect=ApplyMode.DRY_RUN))
    tokens = tuple(each["token"] for each in plan["confirmation"]["projects"])
    control.world.disk.folders[path(3)] = identity(3)
    await control.discovery.propose(path(3))
    with pytest.raises(Unconfirmed, match="3 projects, and not the ones you were shown"):
        await control.ask_unconfirmed(replace(everything, confirmed=tokens))
    control.world.disk.folders[path(1)] = identity(21)
    await control.discovery.propose(path(1))
    some = order(APPROVE, "p1", "p2", confirmed=tokens)
    with pytest.raises(Unconfirmed, match="not the ones you were shown"):
        await control.ask_unconfirmed(some)
    assert await control.world.told() == set()


async def test_an_undo_needs_confirmation_if_it_gives_several_projects_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control = pending()
    await control.decide(APPROVE, "p1", "p2")
    await control.decide(DENY, "p1", "p2")
    with pytest.raises(Unconfirmed, match="2 projects"):
        await control.ask_unconfirmed(UndoRequest())
    assert await control.world.told() == set()
    plan = await control.ask_unconfirmed(UndoRequest(effect=ApplyMode.DRY_RUN))
    tokens = tuple(each["token"] for each in plan["confirmation"]["projects"])
    await control.ask_unconfirmed(UndoRequest(confirmed=tokens))
    assert await control.world.told() == {path(1), path(2)}
    await control.decide(DENY, "p1", "p2")
    monkeypatch.setattr(
        undo, "refuse_unconfirmed_widening", lambda *_: lambda _before, _made: None
    )
    await control.ask_unconfirmed(UndoRequest())
    assert await control.world.told() == {path(1), path(2)}, "without the gate, nothing is asked"


async def test_an_undo_that_takes_back_needs_no_confirmation() -> None:
    control = pending()
    await control.decide(APPROVE, "p1", "p2")
    assert "confirmation" not in await control.ask_unconfirmed(
        UndoRequest(effect=ApplyMode.DRY_RUN)
    )
    await control.ask_unconfirmed(UndoRequest())
    assert await control.world.told() == set()
    await control.ask(AddRuleRequest(Verdict.APPROVED, f"{FOLDER}/**", CWD))
    await control.ask_unconfirmed(UndoRequest())
    assert await control.world.told() == set()
    control = with_roots()  # the control: a rule that denied many
    await control.ask(AddRuleRequest(Verdict.DENIED, FOLDER, CWD))
    with pytest.raises(Unconfirmed, match="2 projects"):
        await control.ask_unconfirmed(UndoRequest())
