"""The history of decisions: events in a hash chain, and the outcomes that they record.

An event records the *outcome* for one subject, such as a project or a rule: everything that is
decided about it from then on, or nothing if it is undecided or gone. So the last event of each
subject gives the current state. That state does not depend on the code that decides, which may
change.

The hash of an event is the SHA-256 of the previous event's hash (32 bytes; zeros for the first
event) followed by a JSON array in ASCII. The array has the sequence number, the time in
nanoseconds, the actor, the verb, the kind of the subject, its key in hex, and the body. The actor
and the body are the stored texts, not parsed values, so the hash also covers keys that this
version does not know.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from rootsd.core.changes import (
    AuditNote,
    AuditRecord,
    Change,
    ChangeVerb,
    ProjectChange,
    RuleChange,
    SettingChange,
)
from rootsd.core.encoding import (
    AllowedPrograms,
    FocusRecord,
    GuardRecord,
    ProjectRecord,
    decode,
    decode_actor,
    encode,
    encode_actor,
    from_ns,
    to_ns,
)
from rootsd.core.guard_setting import Guard
from rootsd.core.model import (
    UNDECIDED,
    Actor,
    ActorKind,
    LapseReason,
    Project,
    Rule,
    Ruling,
    Verdict,
)
from rootsd.core.paths import bytes_of
from rootsd.core.record import BadRecord
from rootsd.core.transition import make_lapse


class BrokenChain(Exception):
    """An event whose hash does not match the event before it, or its own content."""


class SubjectKind(StrEnum):
    """The kind of thing that an event is about."""

    PROJECT = "project"
    RULE = "rule"
    SETTING = "setting"
    ATTEMPT = "attempt"
    PARENT = "parent"
    POLICY = "policy"
    CONFIGURATION = "configuration"
    COMMAND = "command"


class EventSubject(Struct, frozen=True):
    """The subject of an event.

    `key` is the path of a project or a parent, the number of a rule in decimal digits, the name of
    a setting, the command of an attempt or a person, or the summary of a policy or of a change of
    the configuration. Only projects, rules, and settings have an outcome.
    """

    kind: SubjectKind
    key: bytes


class ChainHead(Struct, frozen=True):
    """The end of a chain: the sequence number and the hash of the last event."""

    seq: int
    hash: bytes


CHAIN_START = ChainHead(0, bytes(32))
GUARD_SUBJECT = EventSubject(SubjectKind.SETTING, b"guard")
PROGRAMS_SUBJECT = EventSubject(SubjectKind.SETTING, b"programs")
FOCUS_SUBJECT = EventSubject(SubjectKind.SETTING, b"focus")
MAX_RULE_DIGITS = 18
_to_json = json.JSONEncoder(separators=(",", ":")).encode


_Draft = tuple[Actor | None, ChangeVerb, EventSubject, str | None]
"""Actor, verb, subject, and body of an event that has no place in the chain yet."""

Outcome = ProjectRecord | Rule | Guard | AllowedPrograms | FocusRecord
"""What is decided about a subject."""


class HistoryEvent(Struct, frozen=True):
    """One event. `actor` and `body` are canonical JSON texts; see `rootsd.core.encoding`."""

    seq: int
    at_ns: int
    actor: str
    verb: ChangeVerb
    subject: EventSubject
    body: str | None
    prev: bytes
    hash: bytes

    @property
    def at(self) -> datetime:
        """Return the time of the decision on the wall clock. For the order, use `seq`."""
        return from_ns(self.at_ns)

    @property
    def head(self) -> ChainHead:
        """Return the end of a chain whose last event this is."""
        return ChainHead(self.seq, self.hash)

    def decided_by(self) -> Actor | None:
        """Return the actor that gave the order, or None for a change that the daemon observed.

        Raises BadRecord.
        """
        return decode_actor(self.actor)

    def outcome(self) -> Outcome | None:
        """Return what is decided about the subject after this event. Raises BadRecord."""
        if self.body is None:
            return None
        match self.subject.kind:
            case SubjectKind.PROJECT:
                return decode(ProjectRecord, self.body)
            case SubjectKind.RULE:
                return decode(Rule, self.body, number=rule_number(self.subject))
            case SubjectKind.SETTING if self.subject == FOCUS_SUBJECT:
                return decode(FocusRecord, self.body)
            case SubjectKind.SETTING if self.subject == PROGRAMS_SUBJECT:
                return decode(AllowedPrograms, self.body)
            case SubjectKind.SETTING:
                return decode(GuardRecord, self.body).guard
            case _:
                raise BadRecord(f"the kind {self.subject.kind} has no outcome")


class HistoryState(Struct, frozen=True):
    """The state after a history: its end, and the last event of each subject with an outcome."""

    head: ChainHead
    latest: dict[EventSubject, HistoryEvent]


def rule_subject(number: int) -> EventSubject:
    """Return the subject of events about rule `number`."""
    return EventSubject(SubjectKind.RULE, b"%d" % number)


def rule_number(subject: EventSubject) -> int:
    """Return the number of the rule that `subject` is. Raises BadRecord."""
    if not subject.key.isdigit() or len(subject.key) > MAX_RULE_DIGITS:
        raise BadRecord("the key of a rule is not a number")
    return int(subject.key)


def events_for(
    changes: Iterable[Change | AuditRecord], at: datetime, head: ChainHead
) -> list[HistoryEvent]:
    """Return the events that record the decisions among `changes`, chained to `head`."""
    return _chained([draft for change in changes for draft in _drafts_of(change)], at, head)


def verify_chain(
    events: Iterable[HistoryEvent], head: ChainHead = CHAIN_START
) -> Iterator[HistoryEvent]:
    """Yield `events`, and verify each one. Raises BrokenChain for an event that does not fit.

    This does not verify events that the caller does not consume.
    """
    for event in events:
        if event.seq != head.seq + 1 or event.prev != head.hash or event.hash != _digest(event):
            raise BrokenChain(f"event {event.seq} does not follow from event {head.seq}")
        yield event
        head = event.head


def fold(events: Iterable[HistoryEvent]) -> HistoryState:
    """Return the state after `events`, a whole history from its start."""
    head = CHAIN_START
    latest: dict[EventSubject, HistoryEvent] = {}
    for event in events:
        head = event.head
        if event.body is None:
            latest.pop(event.subject, None)
        else:
            latest[event.subject] = event
    return HistoryState(head, latest)


def lapse_all_approvals(state: HistoryState, at: datetime) -> list[HistoryEvent]:
    """Return the events that take back every approval, because the end of the history may be lost.

    A lost decision may have taken back any of the approvals. Approvals, grants, and approve rules
    lapse. Denials and deny rules stay. The guard returns to its default, and forgets the programs
    that a person has added.
    """
    drafts: list[_Draft] = []
    for subject, last in state.latest.items():
        match last.outcome():
            case ProjectRecord() as project:
                ruling = _without_approval(project.ruling, at)
                if ruling != project.ruling:
                    body = encode(replace(project, ruling=ruling))
                    drafts.append((None, ChangeVerb.LAPSED, subject, body))
            case Rule(verdict=Verdict.APPROVED) as rule:
                body = encode(replace(rule, verdict=Verdict.PENDING))
                drafts.append((None, ChangeVerb.LAPSED, subject, body))
            case Guard():
                drafts.append((None, ChangeVerb.GUARD_SET, subject, None))
            case AllowedPrograms():
                drafts.append((None, ChangeVerb.PROGRAM_DISALLOWED, subject, None))
            case _:
                pass
    return _chained(drafts, at, state.head)


def _drafts_of(change: Change | AuditRecord) -> Iterator[_Draft]:
    match change:
        case RuleChange(number=number, after=after):
            body = encode(after) if after else None
            yield (change.actor, change.verb, rule_subject(number), body)
        case ProjectChange() if change.is_decision:
            subject = EventSubject(SubjectKind.PROJECT, change.path)
            yield (change.actor, change.verb, subject, _project_body(change.after))
        case ProjectChange():
            return
        case SettingChange():
            yield (change.actor, change.verb, *_setting(change.after))
        case AuditNote(verb=verb, text=text):
            subject = EventSubject(_KIND_OF_NOTE[verb], bytes_of(text))
            yield (change.actor, verb, subject, None)


def _setting(after: Guard | AllowedPrograms | FocusRecord) -> tuple[EventSubject, str | None]:
    match after:
        case Guard():
            return GUARD_SUBJECT, encode(GuardRecord(after))
        case AllowedPrograms(programs=programs):
            return PROGRAMS_SUBJECT, encode(after) if programs else None
        case FocusRecord(tag=tag):
            return FOCUS_SUBJECT, None if tag is None else encode(after)


_KIND_OF_NOTE = {
    ChangeVerb.PARENT_ADDED: SubjectKind.PARENT,
    ChangeVerb.PARENT_REMOVED: SubjectKind.PARENT,
    ChangeVerb.POLICY_CHANGED: SubjectKind.POLICY,
    ChangeVerb.CONFIGURATION_CHANGED: SubjectKind.CONFIGURATION,
    ChangeVerb.COMMAND: SubjectKind.COMMAND,
    ChangeVerb.REFUSED: SubjectKind.ATTEMPT,
    ChangeVerb.AGENT_COMMAND: SubjectKind.ATTEMPT,
    ChangeVerb.REQUESTED: SubjectKind.ATTEMPT,
}


def _project_body(project: Project | None) -> str | None:
    if project is None or project.ruling == UNDECIDED:
        return None
    return encode(ProjectRecord(project.id, project.observed.kind, project.ruling))


def _without_approval(ruling: Ruling, at: datetime) -> Ruling:
    decision = ruling.decision
    approved = decision is not None and decision.verdict is Verdict.APPROVED
    if not approved and not ruling.grants:
        return ruling
    by = ActorKind.PERSON if approved else ruling.grants[-1].actor.kind
    lapse = make_lapse(decision, LapseReason.STORE_RESTORED, at, by)
    return replace(
        ruling,
        decision=None if approved else decision,
        grants=(),
        lapse=lapse,
        kept_access=ruling.access,
    )


def _chained(drafts: Iterable[_Draft], at: datetime, head: ChainHead) -> list[HistoryEvent]:
    events: list[HistoryEvent] = []
    for actor, verb, subject, body in drafts:
        content = (head.seq + 1, to_ns(at), encode_actor(actor), verb, subject, body)
        unsealed = HistoryEvent(*content, prev=head.hash, hash=b"")
        event = replace(unsealed, hash=_digest(unsealed))
        events.append(event)
        head = event.head
    return events


def _digest(event: HistoryEvent) -> bytes:
    content = (
        event.seq,
        event.at_ns,
        event.actor,
        event.verb.value,
        event.subject.kind.value,
        event.subject.key.hex(),
        event.body,
    )
    return hashlib.sha256(event.prev + _to_json(content).encode("ascii")).digest()
