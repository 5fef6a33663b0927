"""Record which roots each MCP session received and when, and read the record back.

Sessions must not wait for the disk, so `SessionLog` only appends each event to a list. A separate
task compares each set with the one that the session received before, and writes the difference.
Items are stored as the JSON objects that `rootsd sessions --history` shows.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from datetime import datetime

import anyio
from anyio import to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.core.errors import RootsdError
from rootsd.core.model import PublishedSet
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.core.scope import Scope, apply_scope
from rootsd.core.timestamps import rfc3339
from rootsd.mcp.cache import cached_by_identity
from rootsd.mcp.sessions.registry import Clock, OpenSession
from rootsd.state.store.session_history import SessionHistoryStore, StoredSession
from rootsd.wire.daemon import SentRootsItem, SessionItem

log = logging.getLogger(__name__)

# If the disk is too slow and more events arrive, they are dropped: sessions never wait for the
# record.
_MAX_UNWRITTEN_EVENTS = 1 << 16
_MAX_NAMES = 100
_DAEMON_ENDED = "the daemon ended"


class _SentSet(Struct, frozen=True):
    """A published set that a session received through `scope`."""

    at: datetime
    published: PublishedSet
    scope: Scope


class _SessionEvent(Struct, frozen=True):
    """The state of a session after an event, and the set of roots if it received one."""

    session: SessionItem
    sent: _SentSet | None = None


class _NameChanges(Struct, frozen=True):
    gained: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class SessionLog:
    """The SessionRecorder that writes to disk; its methods may be called from the event loop."""

    def __init__(self, store: SessionHistoryStore, now: Clock) -> None:
        self._store = store
        self._now = now
        self._started = now()
        self._has_ended_old_sessions = False
        self._events: list[_SessionEvent] = []
        self._arrived = anyio.Event()
        self._arrived.set()
        self._last_sent: dict[str, PublishedSet] = {}
        self._is_failing = False

    def changed(self, session: OpenSession) -> None:
        """Record a session as it is now."""
        self._note(_SessionEvent(session.describe()))

    def roots_sent(self, session: OpenSession, published: PublishedSet) -> None:
        """Record that the session received a new set."""
        sent = _SentSet(self._now(), published, session.scope)
        self._note(_SessionEvent(session.describe(), sent))

    def closed(self, session: OpenSession) -> None:
        """Record the end of a session."""
        item = session.describe()
        item["until"], item["end"] = rfc3339(self._now()), session.end
        self._note(_SessionEvent(item))

    async def run(self) -> None:
        """Write events to the disk for as long as the daemon runs."""
        while True:
            await self._arrived.wait()
            self._arrived = anyio.Event()
            events, self._events = self._events, []
            await to_thread.run_sync(self._write, events)

    def write_now(self) -> None:
        """Write the remaining events and close the file. Call this only after `run` has ended."""
        events, self._events = self._events, []
        self._write(events)
        self._store.close()

    def _note(self, event: _SessionEvent) -> None:
        if len(self._events) < _MAX_UNWRITTEN_EVENTS:
            self._events.append(event)
            self._arrived.set()

    # In a thread, one call at a time

    def _write(self, events: Iterable[_SessionEvent]) -> None:
        try:
            self._end_old_sessions()
            self._store.save(self._changed_sessions(events))
            self._is_failing = False
        except RootsdError as error:
            self._last_sent.clear()  # the next record of each session is complete again
            if not self._is_failing:
                log.warning("cannot record which roots sessions receive: %s", error)
            self._is_failing = True

    def _end_old_sessions(self) -> None:
        """Record the end of the sessions that were open when the previous daemon ended."""
        if self._has_ended_old_sessions:
            return
        ended: dict[str, StoredSession] = {}
        for stored in self._store.load_open():
            if (item := _decode(replace(stored, sent=()))) is not None:
                item["until"], item["end"] = rfc3339(self._started), _DAEMON_ENDED
                ended[item["id"]] = StoredSession(_encode(item))
        self._store.save(ended)
        self._has_ended_old_sessions = True

    def _changed_sessions(self, events: Iterable[_SessionEvent]) -> dict[str, StoredSession]:
        # Each event holds the whole session, so later events make up for a lost one.
        changed: dict[str, StoredSession] = {}
        for event in events:
            id_, is_open = event.session["id"], event.session["until"] is None
            before = changed.get(id_, StoredSession(""))
            sent = before.sent
            if event.sent is not None and (item := self._sent_item(id_, event.sent)):
                sent = (*sent, _encode(item))
            changed[id_] = replace(before, item=_encode(event.session), sent=sent, is_open=is_open)
            if not is_open:
                self._last_sent.pop(id_, None)
        return changed

    def _sent_item(self, id_: str, sent: _SentSet) -> SentRootsItem | None:
        """Return how the set differs from the session's previous one, or None if it does not."""
        before, after = self._last_sent.get(id_), _apply_scope(sent.published, sent.scope)
        self._last_sent[id_] = after
        changes = _diff_names(before or PublishedSet(0, ()), after)
        if before is not None and not changes.gained and not changes.lost:
            return None
        return SentRootsItem(
            at=rfc3339(sent.at),
            revision=sent.published.revision,
            roots=len(after.roots),
            gained=changes.gained[:_MAX_NAMES],
            gained_count=len(changes.gained),
            lost=changes.lost[:_MAX_NAMES],
            lost_count=len(changes.lost),
        )


def read_history(store: SessionHistoryStore, last: int) -> list[SessionItem]:
    """Return the newest `last` sessions, in the order in which they began. Raises RootsdError."""
    return [item for stored in store.load(last) if (item := _decode(stored)) is not None]


def _decode(stored: StoredSession) -> SessionItem | None:
    """Return the session, or None if its text on the disk is damaged."""
    try:
        item: SessionItem = parse_json(stored.item.encode())
        item["given"] = [parse_json(sent.encode()) for sent in stored.sent]
    except (Unparsable, TypeError):
        return None
    return item


@cached_by_identity(size=16)
def _apply_scope(published: PublishedSet, scope: Scope) -> PublishedSet:
    return apply_scope(published, scope)


@cached_by_identity(size=16)
def _diff_names(before: PublishedSet, after: PublishedSet) -> _NameChanges:
    """Return the names of roots that `after` gained or changed, and of those that it lost."""
    old = {root.name: root for root in before.roots}
    new = {root.name: root for root in after.roots}
    return _NameChanges(
        sorted(name for name, root in new.items() if old.get(name) != root),
        sorted(old.keys() - new.keys()),
    )


def _encode(item: SessionItem | SentRootsItem) -> str:
    return json.dumps(item, separators=(",", ":"))
