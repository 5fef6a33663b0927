"""Handle log: show the audit log."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import anyio

from rootsd.control.routes import (
    Route,
    query_route,
)
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.changes import ChangeVerb
from rootsd.core.encoding import AllowedPrograms, FocusRecord, ProjectRecord
from rootsd.core.guard_setting import Guard
from rootsd.core.history import (
    GUARD_SUBJECT,
    HistoryEvent,
    SubjectKind,
)
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Rule, Ruling
from rootsd.core.paths import text_of
from rootsd.core.timestamps import rfc3339
from rootsd.core.undo import undone_events
from rootsd.state.store.store import Store
from rootsd.wire.guard import (
    MAX_LOG_WAIT_S,
    LogItem,
    LogListing,
    LogQuery,
    UndoneEvent,
)


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = AuditLogHandlers(services)
    return (query_route(LogQuery, handlers.log),)


class AuditLogHandlers(Handlers):
    """Handles `LogQuery`."""

    async def log(self, query: LogQuery) -> LogListing:
        """Return the last events, or wait for the events after a number."""
        saved = self.ledger.next_save()
        events = await self.ledger.run_exclusively(partial(self._events, query))
        with anyio.move_on_after(min(query.wait_s, MAX_LOG_WAIT_S)):
            while query.after is not None and not events:
                await saved.wait()
                saved = self.ledger.next_save()
                events = await self.ledger.run_exclusively(partial(self._events, query))
        items = await self.ledger.run_exclusively(
            partial(log_items_from, self.services.archive, events)
        )
        return LogListing(revision=self.ledger.revision, items=items, warnings=[])

    def _events(self, query: LogQuery) -> Sequence[HistoryEvent]:
        """Read the store. Call this in a thread."""
        if query.after is None:
            return self.services.archive.last_events(max(0, query.last))
        return self.services.archive.events(max(0, query.after), max(0, query.last))


def log_items_from(archive: Store, events: Sequence[HistoryEvent]) -> list[LogItem]:
    """Return `events` as items, each undo with the event that it undid. Call in a thread."""
    has_undone = any(event.verb is ChangeVerb.UNDONE for event in events)
    return log_items(events, undone_events(archive.events()) if has_undone else {})


def log_items(
    events: Sequence[HistoryEvent], undid: Mapping[int, HistoryEvent] = MappingProxyType({})
) -> list[LogItem]:
    """Return `events` as items. `undid` maps the number of an undo to the event that it undid."""
    return [_log_item(event, undid.get(event.seq)) for event in events]


def _log_item(event: HistoryEvent, undid: HistoryEvent | None) -> LogItem:
    actor = event.decided_by()
    path, encoded = _path(event)
    item = LogItem(
        seq=event.seq,
        at=rfc3339(event.at),
        verb=event.verb.value,
        actor=actor.kind.value if actor else None,
        by=_by(event, actor),
        path=path,
        path_b64=encoded,
        what=_what(event),
        undid=UndoneEvent(seq=undid.seq, verb=undid.verb.value) if undid else None,
    )
    if actor is not None and actor.wall:
        item["wall"] = actor.wall
    return item


_EDITED = {
    SubjectKind.PARENT: "the configuration file was edited",
    SubjectKind.CONFIGURATION: "the configuration file was edited",
    SubjectKind.POLICY: "the policy file was edited",
}


def _by(event: HistoryEvent, actor: Actor | None) -> str | None:
    if actor is None:
        return _EDITED.get(event.subject.kind)
    return actor.detail or None


def _path(event: HistoryEvent) -> tuple[str | None, str | None]:
    if event.subject.kind not in (SubjectKind.PROJECT, SubjectKind.PARENT):
        return None, None
    try:
        return event.subject.key.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(event.subject.key).decode("ascii")


def _conditions(ruling: Ruling) -> str:
    """Return what is special about a decision, in parentheses, or nothing."""
    decision = ruling.decision
    if decision is None:
        return ""
    words = []
    if decision.session is not None:
        words.append(f"{decision.access.value}, for the session of {decision.session.label}")
    if decision.shared_git is not None:
        words.append("with the Git directory of its checkout")
    return f" ({'; '.join(words)})" if words else ""


def _what(event: HistoryEvent) -> str:
    match event.outcome():
        case ProjectRecord(ruling=ruling) if ruling.name:
            return safe_label(ruling.name) + _conditions(ruling)
        case Rule(number=number, pattern=pattern) if event.verb in (
            ChangeVerb.LAPSED,
            ChangeVerb.APPROVED,
        ):
            return f"rule {number} {safe_label(pattern, limit=None)}"
        case Rule(verdict=verdict, pattern=pattern) as rule:
            return f"{verdict.value} {safe_label(pattern, limit=None)}{rule.conditions}"
        case Guard() as guard:
            return guard.value
        case AllowedPrograms(programs=programs):
            return ", ".join(safe_label(each, limit=None) for each in sorted(programs))
        case FocusRecord(tag=str() as tag):
            return safe_label(tag)
        case _:
            pass
    if event.subject.kind is SubjectKind.SETTING:
        return "the usual" if event.subject == GUARD_SUBJECT else "none"
    return safe_label(text_of(event.subject.key), limit=None)
