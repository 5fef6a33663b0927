"""Undoing decisions: everything is restored, or nothing."""

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
from support.control_harness import APPROVE, CWD, DENY, FORGET, ControlHarness, names
from support.ledger_harness import path
from support.sample_decisions import approved, identity, project


async def undo(control: ControlHarness, seq: int | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return await control.ask(UndoRequest(seq, **more))


async def an_approved_set(count: int = 2) -> ControlHarness:
    """Return a harness with approved projects: one order, events 1 and later."""
    control = ControlHarness(*(project(number) for number in range(1, count + 1)))
    await control.decide(
        APPROVE, *(f"p{number}" for number in range(1, count + 1)), tags=("work",)
    )
    return control


async def test_each_undo_reverts_a_whole_order_from_the_newest() -> None:
    control = await an_approved_set()
    await control.decide(DENY, "p1", "p2")
    done = await undo(control)
    assert [item["seq"] for item in done["undone"]] == [3, 4]
    assert names(done["items"]) == ["p1", "p2"]
    assert await control.world.told() == {path(1), path(2)}
    await undo(control)
    assert await control.world.told() == set()
    assert {p.ruling.name for p in control.world.ledger.catalog.projects.values()} == {None}
    with pytest.raises(RootsdError, match="nothing to undo"):
        await undo(control)


async def test_an_undo_is_an_event_and_changes_no_other_project() -> None:
    control = await an_approved_set()
    await control.decide(DENY, "p1")
    await undo(control, 3)
    [change] = control.world.saver.batches[-1]
    assert isinstance(change, ProjectChange)
    assert (change.verb, change.path) == (ChangeVerb.UNDONE, path(1))
    log = (await control.ask(LogQuery()))["items"]
    assert [(item["seq"], item["verb"]) for item in log][-1] == (4, "undone")


async def test_one_entry_of_the_log_is_undone_by_its_number() -> None:
    control = await an_approved_set()
    await undo(control, 2)
    assert await control.world.told() == {path(1)}
    with pytest.raises(CannotUndo, match="undone already"):
        await undo(control, 2)
    for seq in (0, 99):
        with pytest.raises(RootsdError, match="no event"):
            await undo(control, seq)


async def test_names_tags_and_access_are_restored() -> None:
    control = await an_approved_set(1)
    await control.ask(RenameRequest("p1", "api", CWD))
    await control.ask(TagRequest(("api",), CWD, on=("go",), off=("work",)))
    await control.decide(APPROVE, "api", access=Access.READ)
    for expected in (
        ("api", ("go",), Access.READ_WRITE),
        ("api", ("work",), Access.READ_WRITE),
        ("p1", ("work",), Access.READ_WRITE),
    ):
        await undo(control)
        [root] = control.world.ledger.catalog.roots.values()
        assert (root.name, root.tags, root.access) == expected


async def test_rules_are_restored_with_their_numbers() -> None:
    control = ControlHarness(project(1))
    await control.ask(AddRuleRequest(Verdict.APPROVED, "/home/ann/src/**", CWD))
    await control.ask(RemoveRuleRequest(1))
    await undo(control)
    assert await control.world.told() == {path(1)}
    assert [rule.number for rule in control.world.ledger.catalog.rules] == [1]
    await undo(control)
    assert await control.world.told() == set()
    assert control.world.ledger.catalog.rules == ()


async def test_guard_and_focus_are_restored() -> None:
    control = ControlHarness(approved(1))
    await control.ask(SetGuardRequest(Guard.TERMINAL))
    await control.ask(SetGuardRequest(Guard.OFF))
    await control.ask(SetFocusRequest("work"))
    await control.ask(SetFocusRequest(None))
    await undo(control)
    assert control.world.ledger.focus.tag == "work"
    await undo(control)
    assert control.world.ledger.focus.tag is None
    await undo(control)
    assert control.guard.guard is Guard.TERMINAL
    await undo(control)
    assert control.guard.guard is Guard.AGENTS


async def test_an_undo_of_a_revoked_approval_fails_if_the_folder_was_replaced() -> None:
    control = await an_approved_set()
    await control.decide(FORGET, "p1", "p2")
    control.world.disk.folders[path(1)] = identity(9)
    with pytest.raises(IdentityChanged):
        await undo(control)
    assert await control.world.told() == set()


async def test_a_dry_run_reports_the_effect_and_changes_nothing() -> None:
    control = await an_approved_set()
    batches = len(control.world.saver.batches)
    would = await undo(control, effect=ApplyMode.DRY_RUN)
    assert [item["verdict"] for item in would["items"]] == ["pending", "pending"]
    assert len(control.world.saver.batches) == batches
    assert await control.world.told() == {path(1), path(2)}


async def test_an_undo_is_an_order_whose_stakes_name_the_undone_entries() -> None:
    control = await an_approved_set()
    order = control.dispatcher.guarded_command(UndoRequest())
    assert order is not None
    assert order.text == "undo"
    assert await order.preview() == [
        "undo 1: approved /home/ann/src/p1",
        "undo 2: approved /home/ann/src/p2",
    ]
    assert control.dispatcher.guarded_command(UndoRequest(3, ApplyMode.DRY_RUN)) is None


async def test_an_undo_that_only_withdraws_holds_even_if_the_disk_refuses() -> None:
    control = await an_approved_set()
    control.world.saver.refusing = True
    await undo(control)
    assert await control.world.told() == set()
    assert control.world.ledger.unsaved == 2
