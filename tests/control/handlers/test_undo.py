"""Decisions that are taken back: each is as it was, or nothing is."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.core.changes import ChangeVerb, ProjectChange
from rootsd.core.errors import CannotUndo, IdentityChanged, RootsdError
from rootsd.core.guard import Guard
from rootsd.core.model import Access, Verdict
from rootsd.wire.decisions import (
    AddRuleRequest,
    ApplyMode,
    RemoveRuleRequest,
    RenameRequest,
    SetFocusRequest,
    TagRequest,
)
from rootsd.wire.guard import LogQuery, SetGuardRequest, UndoRequest
from support.decisions import approved, identity, project
from support.desks import APPROVE, CWD, DENY, FORGET, Office, names
from support.fakes import path


async def undo(office: Office, seq: int | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return await office.ask(UndoRequest(seq, **more))


async def an_office(count: int = 2) -> Office:
    """Projects that are all approved: one order, events 1 and on."""
    office = Office(*(project(number) for number in range(1, count + 1)))
    await office.decide(APPROVE, *(f"p{number}" for number in range(1, count + 1)), tags=("work",))
    return office


async def test_an_order_is_taken_back_whole_and_again_the_one_before() -> None:
    office = await an_office()
    await office.decide(DENY, "p1", "p2")
    done = await undo(office)
    assert [item["seq"] for item in done["undone"]] == [3, 4]
    assert names(done["items"]) == ["p1", "p2"]
    assert await office.world.told() == {path(1), path(2)}
    await undo(office)
    assert await office.world.told() == set()
    assert {p.ruling.name for p in office.world.ledger.catalog.projects.values()} == {None}
    with pytest.raises(RootsdError, match="nothing to undo"):
        await undo(office)


async def test_what_is_undone_is_an_event_and_leaves_all_others_alone() -> None:
    office = await an_office()
    await office.decide(DENY, "p1")
    await undo(office, 3)
    [change] = office.world.saver.batches[-1]
    assert isinstance(change, ProjectChange)
    assert (change.verb, change.path) == (ChangeVerb.UNDONE, path(1))
    log = (await office.ask(LogQuery()))["items"]
    assert [(item["seq"], item["verb"]) for item in log][-1] == (4, "undone")


async def test_one_line_of_the_log_is_taken_back_by_its_number() -> None:
    office = await an_office()
    await undo(office, 2)
    assert await office.world.told() == {path(1)}
    with pytest.raises(CannotUndo, match="undone already"):
        await undo(office, 2)
    for seq in (0, 99):
        with pytest.raises(RootsdError, match="no event"):
            await undo(office, seq)


async def test_names_tags_and_access_come_back() -> None:
    office = await an_office(1)
    await office.ask(RenameRequest("p1", "api", CWD))
    await office.ask(TagRequest(("api",), CWD, on=("go",), off=("work",)))
    await office.decide(APPROVE, "api", access=Access.READ)
    for expected in (
        ("api", ("go",), Access.READ_WRITE),
        ("api", ("work",), Access.READ_WRITE),
        ("p1", ("work",), Access.READ_WRITE),
    ):
        await undo(office)
        [root] = office.world.ledger.catalog.roots.values()
        assert (root.name, root.tags, root.access) == expected


async def test_rules_come_back_under_their_numbers() -> None:
    office = Office(project(1))
    await office.ask(AddRuleRequest(Verdict.APPROVED, "/home/ann/src/**", CWD))
    await office.ask(RemoveRuleRequest(1))
    await undo(office)
    assert await office.world.told() == {path(1)}
    assert [rule.number for rule in office.world.ledger.catalog.rules] == [1]
    await undo(office)
    assert await office.world.told() == set()
    assert office.world.ledger.catalog.rules == ()


async def test_guard_and_focus_come_back() -> None:
    office = Office(approved(1))
    await office.ask(SetGuardRequest(Guard.TERMINAL))
    await office.ask(SetGuardRequest(Guard.OFF))
    await office.ask(SetFocusRequest("work"))
    await office.ask(SetFocusRequest(None))
    await undo(office)
    assert office.world.ledger.focus.tag == "work"
    await undo(office)
    assert office.world.ledger.focus.tag is None
    await undo(office)
    assert office.gate.guard is Guard.TERMINAL
    await undo(office)
    assert office.gate.guard is Guard.AGENTS


async def test_an_approval_comes_back_to_no_other_folder_and_then_nothing_is_undone() -> None:
    office = await an_office()
    await office.decide(FORGET, "p1", "p2")
    office.world.disk.folders[path(1)] = identity(9)
    with pytest.raises(IdentityChanged):
        await undo(office)
    assert await office.world.told() == set()


async def test_a_rehearsal_tells_and_changes_nothing() -> None:
    office = await an_office()
    batches = len(office.world.saver.batches)
    would = await undo(office, effect=ApplyMode.DRY_RUN)
    assert [item["verdict"] for item in would["items"]] == ["pending", "pending"]
    assert len(office.world.saver.batches) == batches
    assert await office.world.told() == {path(1), path(2)}


async def test_to_undo_is_an_order_and_its_stakes_name_what_is_undone() -> None:
    office = await an_office()
    order = office.desk.order_in(UndoRequest())
    assert order is not None
    assert order.words == "undo"
    assert await order.stakes() == [
        "undo 1: approved /home/ann/src/p1",
        "undo 2: approved /home/ann/src/p2",
    ]
    assert office.desk.order_in(UndoRequest(3, ApplyMode.DRY_RUN)) is None


async def test_what_only_takes_away_holds_although_the_disk_refuses() -> None:
    office = await an_office()
    office.world.saver.refusing = True
    await undo(office)
    assert await office.world.told() == set()
    assert office.world.ledger.unsaved == 2
