"""Undoing decisions: everything is restored, or nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from rootsd.control import plain_commands
from rootsd.control.routes import RequestContext
from rootsd.core.access import Access
from rootsd.core.changes import AuditNote, ChangeVerb, ProjectChange
from rootsd.core.errors import CannotUndo, IdentityChanged, RootsdError
from rootsd.core.guard_setting import Guard
from rootsd.core.inputs import ProjectGone
from rootsd.core.model import (
    Actor,
    ActorKind,
    Verdict,
)
from rootsd.wire.daemon import AnnounceRequest
from rootsd.wire.decisions import (
    AddFoldersRequest,
    AddRequest,
    AddRuleRequest,
    RemoveRuleRequest,
    RenameRequest,
    SetFocusRequest,
    TagRequest,
)
from rootsd.wire.guard import LogQuery, RemoteCommandRequest, SetGuardRequest, UndoRequest
from rootsd.wire.request import ApplyMode
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


async def test_one_entry_of_the_log_is_undone_by_its_number_and_changes_no_other_project() -> None:
    control = await an_approved_set()
    await undo(control, 2)
    [change] = control.world.saver.batches[-1]
    assert isinstance(change, ProjectChange)
    assert (change.verb, change.path) == (ChangeVerb.UNDONE, path(2))
    log = (await control.ask(LogQuery()))["items"]
    assert (log[-1]["seq"], log[-1]["verb"]) == (3, "undone")
    assert await control.world.told() == {path(1)}
    with pytest.raises(CannotUndo, match="undone already"):
        await undo(control, 2)
    for seq in (0, 99):
        with pytest.raises(RootsdError, match="no entry"):
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


async def test_the_stakes_of_an_undo_name_the_undone_entries() -> None:
    control = await an_approved_set()
    order = control.dispatcher.guarded_command(UndoRequest())
    assert order is not None
    assert await order.preview() == [
        "undo 1: approved /home/ann/src/p1",
        "undo 2: approved /home/ann/src/p2",
    ]


async def test_an_undo_that_only_withdraws_holds_even_if_the_disk_refuses() -> None:
    control = await an_approved_set()
    control.world.saver.refusing = True
    await undo(control)
    assert await control.world.told() == set()
    assert control.world.ledger.unsaved == 2


async def _add(control: ControlHarness) -> None:
    control.world.disk.folders[b"/home/ann/notes"] = identity(7)
    await control.ask(AddRequest("../notes", CWD))


async def _forget_undecided(control: ControlHarness) -> None:
    await control.ask(AddRequest("https://x.example/v1", CWD))
    await control.decide(FORGET, "v1")


async def _connect(control: ControlHarness) -> None:
    await control.ask(AnnounceRequest("connect codex"))


async def _decide_elsewhere(control: ControlHarness) -> None:
    await control.ask(RemoteCommandRequest("approve --host=box -- api"))


_STAYS: Mapping[Callable[[ControlHarness], Awaitable[None]], str] = {
    _add: "rootsd forget /home/ann/notes",
    _forget_undecided: "rootsd add https://x.example/v1",
    _connect: "rootsd disconnect codex",
    _decide_elsewhere: "ssh box rootsd undo --dry-run",
}


@pytest.mark.parametrize("command", _STAYS)
@pytest.mark.parametrize("effect", ApplyMode)
async def test_undo_takes_back_no_earlier_command_than_the_last(
    command: Callable[[ControlHarness], Awaitable[None]], effect: ApplyMode
) -> None:
    control = await an_approved_set(1)
    await command(control)
    with pytest.raises(CannotUndo, match=r"to take back 1 .approved., before it: ") as refusal:
        await undo(control, effect=effect)
    assert refusal.value.remedy == _STAYS[command]
    assert await control.world.told() == {path(1)}
    await undo(control, 1)
    assert await control.world.told() == set()


@pytest.mark.parametrize("command", _STAYS)
async def test_control_without_a_trace_of_a_command_undo_takes_back_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch, command: Callable[[ControlHarness], Awaitable[None]]
) -> None:
    monkeypatch.setattr(plain_commands, "AuditNote", _refusal_instead)
    control = await an_approved_set(1)
    await command(control)
    await undo(control)
    assert await control.world.told() == set()


def _refusal_instead(_: ChangeVerb, text: str, actor: Actor) -> AuditNote:
    return AuditNote(ChangeVerb.REFUSED, text, actor)


async def test_a_command_that_changed_nothing_leaves_no_trace() -> None:
    control = await an_approved_set(1)
    await control.ask(AddRequest("p1", CWD))
    await control.ask(AddRequest("https://x.example", CWD, effect=ApplyMode.DRY_RUN))
    await control.ask(AnnounceRequest("down"))
    await control.ask(RemoteCommandRequest("ls --host=box", ApplyMode.DRY_RUN))
    assert [item["seq"] for item in (await undo(control))["undone"]] == [1]


async def test_what_an_agent_may_do_is_not_the_last_command_of_a_person() -> None:
    control = await an_approved_set(1)
    agent = RequestContext(Actor(ActorKind.CALLER, "an agent"))
    for request in (AddRequest("https://x.example", CWD), AnnounceRequest("connect codex")):
        await control.dispatcher.answer(request, agent)
        assert control.dispatcher.needs_caller(request), "or every caller counts as a person"
    assert [item["seq"] for item in (await undo(control))["undone"]] == [1]


async def test_the_tags_of_a_workspace_file_are_taken_back_at_once() -> None:
    control = ControlHarness()
    folders = ("/home/ann/a", "/home/ann/b")
    for number, folder in enumerate(folders):
        control.world.disk.folders[folder.encode()] = identity(number)
    await control.ask(AddFoldersRequest(folders, "work"))
    assert [item["tags"] for item in (await undo(control))["items"]] == [[], []]


async def test_undo_of_a_decision_about_a_folder_that_is_gone_says_so() -> None:
    control = await an_approved_set(1)
    await control.decide(DENY, "p1")
    await control.decide(FORGET, "p1")
    await control.world.ledger.observe([ProjectGone(path(1))])
    del control.world.disk.folders[path(1)]
    assert control.world.ledger.catalog.projects == {}
    for effect in ApplyMode:
        with pytest.raises(CannotUndo, match=r"3 in the log .* cannot be taken back: there"):
            await undo(control, effect=effect)
