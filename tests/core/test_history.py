"""The hash chain of decisions: verification, folding, and lapsing all approvals after a loss."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.changes import (
    AuditNote,
    AuditRecord,
    Change,
    ChangeVerb,
    ProjectChange,
    RuleChange,
    SettingChange,
)
from rootsd.core.encoding import AllowedPrograms, FocusRecord, ProjectRecord
from rootsd.core.guard_setting import Guard
from rootsd.core.history import (
    CHAIN_START,
    BrokenChain,
    ChainHead,
    EventSubject,
    HistoryEvent,
    SubjectKind,
    events_for,
    fold,
    lapse_all_approvals,
    rule_number,
    rule_subject,
    verify_chain,
)
from rootsd.core.model import ActorKind, LapseReason, Rule, Ruling, Verdict
from rootsd.core.record import BadRecord
from support.decision_strategies import rules, rulings
from support.sample_decisions import (
    NOON,
    PERSON,
    add,
    after,
    approved,
    decide,
    denied,
    forget,
    granted,
    project,
    remove,
    rule,
    see,
)

NOTES: list[AuditRecord] = [
    SettingChange(Guard.OFF, PERSON, ChangeVerb.GUARD_SET),
    SettingChange(
        AllowedPrograms(frozenset({"/home/ann/bin/nu"})), PERSON, ChangeVerb.PROGRAM_ALLOWED
    ),
    AuditNote(ChangeVerb.REFUSED, "approve \u2022", PERSON),
]


@st.composite
def histories(draw: st.DrawFn) -> list[HistoryEvent]:
    """A few decisions about three projects and three rules, at least one of them."""
    changes: list[Change] = [decide(approved(0))]
    for number, ruling in draw(st.lists(st.tuples(st.integers(0, 2), rulings), max_size=4)):
        now = project(number, ruling)
        changes.append(
            ProjectChange(now.path, None, now, draw(st.sampled_from(ChangeVerb)), PERSON)
        )
    changes += [
        RuleChange(1, None, new, draw(st.sampled_from(ChangeVerb)), PERSON)
        for new in draw(st.lists(st.none() | rules, max_size=2))
    ]
    notes: list[AuditRecord] = draw(st.lists(st.sampled_from(NOTES), max_size=2))
    return events_for([*changes, *notes], NOON, CHAIN_START)


@given(histories(), st.data())
def test_a_history_verifies_and_a_missing_event_is_found_unless_it_is_the_end(
    events: list[HistoryEvent], data: st.DataObject
) -> None:
    assert fold(verify_chain(events)).head == events[-1].head
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    gone = data.draw(st.integers(0, len(events) - 1))
    rest = events[:gone] + events[gone + 1 :]
    if gone == len(events) - 1:
        assert list(verify_chain(rest)) == rest  # this is the reason for the anchor
    else:
        with pytest.raises(BrokenChain):
            list(verify_chain(rest))


@given(histories(), st.data())
def test_a_flipped_bit_and_another_verb_or_kind_are_found_anywhere(
    events: list[HistoryEvent], data: st.DataObject
) -> None:
    position = data.draw(st.integers(0, len(events) - 1))
    event = events[position]
    fields = ["seq", "at_ns", "actor", "body", "key", "prev", "hash"]
    other = next(kind for kind in SubjectKind if kind is not event.subject.kind)
    for damaged in (
        _flip(event, data.draw(st.sampled_from(fields)), data),
        replace(event, verb=data.draw(st.sampled_from([*ChangeVerb]).filter(event.verb.__ne__))),
        replace(event, subject=replace(event.subject, kind=other)),
    ):
        with pytest.raises(BrokenChain):
            list(verify_chain([*events[:position], damaged, *events[position + 1 :]]))


def _flip(event: HistoryEvent, field: str, data: st.DataObject) -> HistoryEvent:
    number_bit = 1 << data.draw(st.integers(0, 62))
    match field:
        case "seq":
            return replace(event, seq=event.seq ^ number_bit)
        case "at_ns":
            return replace(event, at_ns=event.at_ns ^ number_bit)
        case "actor":
            return replace(event, actor=_flipped_text(event.actor, data))
        case "body":
            body = "{}" if event.body is None else _flipped_text(event.body, data)
            return replace(event, body=body)
        case "key":
            key = _flipped(event.subject.key, data)
            return replace(event, subject=EventSubject(event.subject.kind, key))
        case "prev":
            return replace(event, prev=_flipped(event.prev, data))
        case _:
            return replace(event, hash=_flipped(event.hash, data))


def _flipped_text(text: str, data: st.DataObject) -> str:
    return _flipped(text.encode(), data).decode("latin-1")


def _flipped(value: bytes, data: st.DataObject) -> bytes:
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    flipped = bytearray(value)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


def test_events_before_a_break_are_yielded() -> None:
    events = events_for([decide(approved(n)) for n in range(3)], NOON, CHAIN_START)
    chain = verify_chain([events[0], events[2]])
    assert next(chain) == events[0]
    with pytest.raises(BrokenChain, match="event 3 does not follow from event 1"):
        next(chain)


def test_the_hash_matches_its_description_in_the_module() -> None:
    (event,) = events_for([decide(denied(4))], NOON, CHAIN_START)
    text = json.dumps(
        [
            1,
            1772625600000000000,
            '{"detail":"pts/3","kind":"person"}',
            "denied",
            "project",
            b"/home/ann/src/p4".hex(),
            event.body,
        ],
        separators=(",", ":"),
    )
    assert event.hash == hashlib.sha256(bytes(32) + text.encode()).digest()


def test_only_decisions_are_events() -> None:
    seen, now = project(1), approved(1)
    assert events_for([see(seen)], NOON, CHAIN_START) == []
    assert events_for([forget(seen)], NOON, CHAIN_START) == []
    events = events_for([see(seen), decide(now, seen), see(now, now)], NOON, CHAIN_START)
    assert [event.verb for event in events] == [ChangeVerb.APPROVED]


def test_an_event_has_actor_time_and_outcome() -> None:
    now, new = approved(1), rule(12, Verdict.DENIED)
    (event,) = events_for([decide(now)], after(5), ChainHead(41, b"h" * 32))
    assert (event.seq, event.prev, event.at) == (42, b"h" * 32, after(5))
    assert event.decided_by() == PERSON
    assert event.subject == EventSubject(SubjectKind.PROJECT, now.path)
    assert event.outcome() == ProjectRecord(now.id, now.observed.kind, now.ruling)
    others = events_for([add(new), remove(new), forget(now, project(1))], NOON, CHAIN_START)
    assert [event.outcome() for event in others] == [new, None, None]
    assert others[-1].body is None


def test_the_fold_is_the_last_event_of_each_subject() -> None:
    standing_rule, gone_rule = rule(1, Verdict.DENIED), rule(2, Verdict.APPROVED)
    changes = [
        decide(approved(1)),
        decide(approved(2)),
        decide(denied(1), approved(1)),
        forget(approved(2), project(2)),
        add(standing_rule),
        add(gone_rule),
        remove(gone_rule),
    ]
    events = events_for(changes, NOON, CHAIN_START)
    state = fold(verify_chain(events))
    assert state.latest == {
        EventSubject(SubjectKind.PROJECT, denied(1).path): events[2],
        rule_subject(1): events[4],
    }


def test_lapsing_all_approvals_keeps_denials() -> None:
    careful = replace(approved(1).ruling, kept_access=Access.READ_WRITE)
    decision = careful.decision
    assert decision is not None
    careful = replace(careful, decision=replace(decision, access=Access.READ))
    changes = [
        decide(replace(approved(1), ruling=careful)),
        decide(granted(2)),
        decide(denied(3)),
        add(rule(1, Verdict.APPROVED)),
        add(rule(2, Verdict.DENIED)),
    ]
    accesses = {approved(1).path: Access.READ, granted(2).path: Access.READ_WRITE}
    givers = {approved(1).path: ActorKind.PERSON, granted(2).path: ActorKind.RULE}
    events = events_for(changes, NOON, CHAIN_START)
    taken_back = lapse_all_approvals(fold(events), after(60))
    state = fold(verify_chain([*events, *taken_back]))
    outcomes = {subject.key: event.outcome() for subject, event in state.latest.items()}
    for name in (approved(1).path, granted(2).path):
        lapsed = outcomes[name]
        assert isinstance(lapsed, ProjectRecord)
        assert lapsed.ruling.decision is None
        assert lapsed.ruling.grants == ()
        assert lapsed.ruling.lapse is not None
        assert lapsed.ruling.lapse.reason is LapseReason.STORE_RESTORED
        assert lapsed.ruling.lapse.by is givers[name]
        assert lapsed.ruling.name is not None
        assert lapsed.ruling.kept_access is accesses[name]
    assert outcomes[denied(3).path] == ProjectRecord(
        "r3", denied(3).observed.kind, denied(3).ruling
    )
    assert outcomes[b"1"] == rule(1, Verdict.PENDING)
    assert outcomes[b"2"] == rule(2, Verdict.DENIED)
    assert len(outcomes) == len(changes)


@given(histories())
def test_after_lapsing_all_nothing_is_approved_and_a_second_time_changes_nothing(
    events: list[HistoryEvent],
) -> None:
    state = fold([*events, *lapse_all_approvals(fold(events), NOON)])
    for event in state.latest.values():
        match event.outcome():
            case ProjectRecord(ruling=ruling):
                assert not _approves(ruling)
            case Rule(verdict=verdict):
                assert verdict is not Verdict.APPROVED
            case Guard():
                pytest.fail("who may decide is no longer known for sure")
            case AllowedPrograms():
                pytest.fail("the program may have been taken back")
            case FocusRecord():
                pass  # it only takes away
            case None:
                pytest.fail("an event without an outcome does not stand")
    assert lapse_all_approvals(state, NOON) == []


def _approves(ruling: Ruling) -> bool:
    decision = ruling.decision
    return bool(ruling.grants) or bool(decision and decision.verdict is Verdict.APPROVED)


@pytest.mark.parametrize("key", [b"", b"x", b"-1", b"1.0", b"\xff", b"9" * 5000])
def test_a_rule_with_a_key_that_is_not_a_number_is_refused(key: bytes) -> None:
    with pytest.raises(BadRecord):
        rule_number(EventSubject(SubjectKind.RULE, key))
