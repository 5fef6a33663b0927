"""The history of decisions, and of orders refused, as `rootsd log` shows it; and the guard."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import anyio

from rootsd.app.control.gate import Gate
from rootsd.app.control.items import rfc3339
from rootsd.app.control.register import Entry, Order, look, order, plain
from rootsd.app.control.running import Standing
from rootsd.app.deciding.ledger import Ledger
from rootsd.core.callers import Guard
from rootsd.core.changes import Verb
from rootsd.core.history import FOCUS, Event, SubjectKind
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Rule, Ruling
from rootsd.core.paths import text_of
from rootsd.core.records import Focused, RuledProject
from rootsd.core.undoing import taken_back
from rootsd.wire.deciding import Effect
from rootsd.wire.guarding import (
    LONGEST_WAIT_S,
    GuardQuery,
    GuardStatus,
    LogItem,
    LogListing,
    LogQuery,
    SetGuard,
    TakenBack,
)


class Archive(Protocol):
    """The history; called in a thread, while nobody else uses the store."""

    def events(self, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        """The events after number `after`, oldest first, at most `limit`."""

    def last_events(self, count: int) -> Sequence[Event]:
        """The newest `count` events, oldest first."""


@dataclass(frozen=True, slots=True)
class Chronicle:
    """Answers about what was decided and refused, and about who may decide."""

    ledger: Ledger
    gate: Gate
    archive: Archive

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (
            look(LogQuery, self.log),
            look(GuardQuery, self.guard),
            order(SetGuard, self.set_guard, _guarding),
        )

    async def log(self, query: LogQuery) -> LogListing:
        """The last events, or those after a number, which may be yet to come."""
        saved = self.ledger.next_save()
        events = await self.ledger.undisturbed(partial(self._events, query))
        with anyio.move_on_after(min(query.wait_s, LONGEST_WAIT_S)):
            while query.after is not None and not events:
                await saved.wait()
                saved = self.ledger.next_save()
                events = await self.ledger.undisturbed(partial(self._events, query))
        items = await self.ledger.undisturbed(partial(log_items_from, self.archive, events))
        return LogListing(revision=self.ledger.revision, items=items, warnings=[])

    async def guard(self, _: GuardQuery) -> GuardStatus:
        """Who may decide."""
        return self._guard_status(self.gate.guard)

    async def set_guard(self, request: SetGuard, actor: Actor) -> GuardStatus:
        """Let another guard judge. Raises what the store raises."""
        if request.effect is Effect.APPLY:
            await self.gate.set_guard(request.guard, actor)
        return self._guard_status(request.guard)

    def _events(self, query: LogQuery) -> Sequence[Event]:
        """In a thread."""
        if query.after is None:
            return self.archive.last_events(max(0, query.last))
        return self.archive.events(max(0, query.after), max(0, query.last))

    def standing(self, *, is_look: bool) -> Standing:
        """Return who may decide, and what agents tried and did since a person looked."""
        refused, commands = self.gate.refusals, self.gate.agent_commands
        standing = Standing(self.gate.guard, refused.seen_by_nobody, commands.seen_by_nobody)
        if is_look:
            refused.looked()
            commands.looked()
        return standing

    def _guard_status(self, guard: Guard) -> GuardStatus:
        return GuardStatus(revision=self.ledger.revision, guard=guard.value, warnings=[])


def _guarding(request: SetGuard) -> Order | None:
    if request.effect is Effect.DRY_RUN:
        return None
    return plain(f"guard {request.guard.value}")


def log_items_from(archive: Archive, events: Sequence[Event]) -> list[LogItem]:
    """Return `events` of `archive` as items, with what each undoing took back. In a thread."""
    has_undone = any(event.verb is Verb.UNDONE for event in events)
    return log_items(events, taken_back(archive.events()) if has_undone else {})


def log_items(
    events: Sequence[Event], undid: Mapping[int, Event] = MappingProxyType({})
) -> list[LogItem]:
    """Return the events as items; `undid` are those that were taken back, by their undoing."""
    return [_item(event, undid.get(event.seq)) for event in events]


def _item(event: Event, undid: Event | None) -> LogItem:
    actor = event.decided_by()
    path, encoded = _path(event)
    return LogItem(
        seq=event.seq,
        at=rfc3339(event.at),
        verb=event.verb.value,
        actor=actor.kind.value if actor else None,
        by=_by(event, actor),
        path=path,
        path_b64=encoded,
        what=_what(event),
        undid=TakenBack(seq=undid.seq, verb=undid.verb.value) if undid else None,
    )


def _by(event: Event, actor: Actor | None) -> str | None:
    if actor is None:
        is_of_parent = event.subject.kind is SubjectKind.PARENT
        return "the configuration file was edited" if is_of_parent else None
    return actor.detail or None


def _path(event: Event) -> tuple[str | None, str | None]:
    if event.subject.kind not in (SubjectKind.PROJECT, SubjectKind.PARENT):
        return None, None
    try:
        return event.subject.key.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(event.subject.key).decode("ascii")


def _for_session(ruling: Ruling) -> str:
    decision = ruling.decision
    if decision is None or decision.session is None:
        return ""
    return f" ({decision.access.value}, for the session of {decision.session.label})"


def _what(event: Event) -> str:
    match event.outcome():
        case RuledProject(ruling=ruling) if ruling.name:
            return safe_label(ruling.name) + _for_session(ruling)
        case Rule(number=number, pattern=pattern) if event.verb in (Verb.LAPSED, Verb.APPROVED):
            return f"rule {number} {safe_label(pattern, limit=None)}"
        case Rule(verdict=verdict, pattern=pattern):
            return f"{verdict.value} {safe_label(pattern, limit=None)}"
        case Guard() as guard:
            return guard.value
        case Focused(tag=tag):
            return safe_label(tag)
        case _:
            pass
    if event.subject.kind is SubjectKind.SETTING:
        return "none" if event.subject == FOCUS else "the usual"
    return safe_label(text_of(event.subject.key), limit=None)
