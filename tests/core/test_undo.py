"""The decisions of a history that can be undone, and the state before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from rootsd.core import undo
from rootsd.core.changes import AuditNote, AuditRecord, Change, ChangeVerb, ProjectChange
from rootsd.core.errors import CannotUndo
from rootsd.core.history import CHAIN_START, HistoryEvent, events_for
from rootsd.core.model import Actor, ActorKind, Project, Verdict
from rootsd.core.paths import text_of
from rootsd.core.undo import last_undoable_order, plan_undo, undone_events
from support.sample_decisions import (
    PERSON,
    add,
    after,
    approved,
    decide,
    denied,
    forget,
    granted,
    project,
    rule,
)  # fmt: skip

RULE = Actor(ActorKind.RULE, "1")


def changed(
    verb: ChangeVerb, before: Project, now: Project, actor: Actor | None = PERSON
) -> Change:
    return ProjectChange(now.path, before, now, verb, actor)


def history(*orders: Sequence[Change | AuditRecord]) -> list[HistoryEvent]:
    """Return the events, with one second between orders."""
    events: list[HistoryEvent] = []
    for number, order in enumerate(orders):
        head = events[-1].head if events else CHAIN_START
        events += events_for(order, after(number), head)
    return events


APPROVED = decide(approved(1), project(1))
DENIED = decide(denied(1), approved(1))
UNDONE = changed(ChangeVerb.UNDONE, denied(1), approved(1))
GRANTED = changed(ChangeVerb.GRANTED, project(2), granted(2), RULE)
LAPSED = changed(ChangeVerb.LAPSED, approved(1), project(1), None)


def seqs(events: Sequence[HistoryEvent]) -> list[int]:
    return [event.seq for event in events]


def test_the_newest_order_is_undone_with_all_its_events_but_no_grants() -> None:
    events = history([APPROVED], [decide(approved(2)), decide(approved(3))])
    assert seqs(last_undoable_order(events)) == [2, 3]
    assert seqs(last_undoable_order(events[:1])) == [1]
    assert last_undoable_order([]) == ()
    assert seqs(last_undoable_order(history([add(rule(1, Verdict.APPROVED)), GRANTED]))) == [1]


def test_a_decision_is_undone_after_a_look_noted_its_files() -> None:
    looked = replace(approved(1), ruling=replace(approved(1).ruling, files=()))
    noted = changed(ChangeVerb.NOTED, approved(1), looked, None)
    events = history([APPROVED], [noted])
    assert seqs(last_undoable_order(events)) == [1]
    (step,) = plan_undo(events[:1], events)
    assert (step.before, step.last.seq) == (None, 2)


def test_undone_refused_and_observed_events_are_not_undoable() -> None:
    events = history(
        [APPROVED], [DENIED], [UNDONE], [AuditNote(ChangeVerb.REFUSED, "x", PERSON)], [GRANTED]
    )
    assert seqs(last_undoable_order(events)) == [1]
    assert (
        last_undoable_order(
            history([LAPSED], [GRANTED], [AuditNote(ChangeVerb.REFUSED, "x", PERSON)])
        )
        == ()
    )


def test_an_undo_step_has_the_event_before_and_the_last_one() -> None:
    forgotten = forget(approved(2), project(2))
    for events, at, before, last in (
        (history([APPROVED], [DENIED]), 1, 0, 1),
        (history([APPROVED]), 0, None, 0),
        (history([decide(approved(2))], [forgotten], [GRANTED]), 1, 0, 2),
        (history([APPROVED], [DENIED], [UNDONE]), 0, None, 2),  # it is on top again
    ):
        [step] = plan_undo(events[at : at + 1], events)
        earlier = None if before is None else events[before]
        assert (step.event, step.before, step.last) == (events[at], earlier, events[last])


@pytest.mark.parametrize(
    ("orders", "target", "why", "remedy"),
    [
        ([[APPROVED], [DENIED]], 1, "replaced by 2", "rootsd undo 2"),
        ([[APPROVED], [LAPSED]], 1, "replaced by 2", "rootsd log"),
        ([[APPROVED], [DENIED], [UNDONE]], 2, "undone already, by 3", "rootsd log"),
        ([[APPROVED], [DENIED], [UNDONE]], 3, "cannot be undone", "rootsd log"),
        ([[APPROVED], [LAPSED]], 2, "not decided by a person", "rootsd why /home/ann/src/p1"),
        ([[GRANTED]], 1, "not decided by a person", "rootsd why /home/ann/src/p2"),
        ([[AuditNote(ChangeVerb.REFUSED, "x", PERSON)]], 1, "changed nothing", "rootsd log"),
    ],
)
def test_an_impossible_undo_is_refused_with_the_reason(
    orders: list[Sequence[Change | AuditRecord]], target: int, why: str, remedy: str
) -> None:
    events = history(*orders)
    with pytest.raises(CannotUndo, match=why) as refusal:
        plan_undo([events[target - 1]], events)
    assert refusal.value.remedy == remedy


def test_each_undo_is_mapped_to_the_event_it_took_back() -> None:
    one, two = project(1), project(2)
    events = history(
        [decide(approved(1), one)],
        [decide(approved(2), two)],
        [changed(ChangeVerb.DENIED, approved(1), denied(1))],
        [changed(ChangeVerb.UNDONE, denied(1), approved(1))],
        [changed(ChangeVerb.UNDONE, approved(1), one)],
    )
    assert {seq: event.seq for seq, event in undone_events(events).items()} == {4: 3, 5: 1}


REMOVED = AuditNote(ChangeVerb.PARENT_REMOVED, text_of(b"/src/a b"), PERSON)


def note(verb: ChangeVerb, text: str, actor: Actor | None = PERSON) -> AuditNote:
    return AuditNote(verb, text, actor)


COMMAND, PARENT_REMOVED = ChangeVerb.COMMAND, ChangeVerb.PARENT_REMOVED
LASTING: Mapping[str, tuple[AuditRecord, str, str]] = {
    "parent rm": (REMOVED, "removed the parent /src/a b", "rootsd parent add '/src/a b'"),
    "parent add": (
        note(ChangeVerb.PARENT_ADDED, "/src"), "added the parent /src", "rootsd parent rm /src"
    ),
    "edit": (
        note(PARENT_REMOVED, "/src", None), "removed the parent /src", "rootsd parent add /src"
    ),
    "config": (
        note(ChangeVerb.CONFIGURATION_CHANGED, "notify changed"),
        "of the configuration .notify changed.",
        "rootsd config edit",
    ),
    "add": (note(COMMAND, "add '/a b'"), "was rootsd add '/a b'", "rootsd forget '/a b'"),
    "forget": (note(COMMAND, "forget /a"), "was rootsd forget /a", "rootsd add /a"),
    "connect": (
        note(COMMAND, "connect x --allow-tools"),
        "was rootsd connect x --allow-tools",
        "rootsd disconnect x",
    ),
    "sync": (note(COMMAND, "sync rm x"), "was rootsd sync rm x", "rootsd sync add x"),
    "host": (
        note(COMMAND, "deny --host=box -- x"),
        "was rootsd deny --host=box -- x",
        "ssh box rootsd undo --dry-run",
    ),
    "unsafe": (note(COMMAND, "add /\x1b[2J"), "was rootsd add", "rootsd forget '/\\u{1b}[2J'"),
}  # fmt: skip


@pytest.mark.parametrize("name", LASTING)
def test_after_a_change_that_undo_does_not_take_back_it_takes_back_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, what, way = LASTING[name]
    events = history([APPROVED], [change])
    with pytest.raises(CannotUndo, match=what) as refusal:
        last_undoable_order(events)
    assert refusal.value.remedy == way
    assert "\x1b" not in refusal.value.message
    assert "before it: rootsd undo 1" in refusal.value.message
    with pytest.raises(
        CannotUndo, match="2 in the log is nothing that undo takes back"
    ) as refusal:
        plan_undo(events[1:], events)
    assert refusal.value.remedy == way
    assert seqs([step.event for step in plan_undo(events[:1], events)]) == [1]
    # The control: without the rule, it takes back an earlier command.
    monkeypatch.setattr(undo, "is_lasting", lambda _: False)
    assert seqs(last_undoable_order(events)) == [1]


def test_an_undone_decision_is_not_the_command_before_a_change_that_stays() -> None:
    events = history([APPROVED], [REMOVED], [DENIED], [UNDONE])
    with pytest.raises(CannotUndo, match="before it: rootsd undo 1"):
        last_undoable_order(events)
    with pytest.raises(CannotUndo, match=r"does not take that back$"):
        last_undoable_order(history([REMOVED]))


def test_a_decision_after_a_change_that_stays_or_before_an_agents_is_undone() -> None:
    assert seqs(last_undoable_order(history([REMOVED], [APPROVED]))) == [2]
    agent = note(PARENT_REMOVED, text_of(b"/src"), Actor(ActorKind.CALLER, "an agent"))
    assert seqs(last_undoable_order(history([APPROVED], [agent]))) == [1]
