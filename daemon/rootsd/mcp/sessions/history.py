"""Record which roots each MCP session was given and when, and read the record back.

Writes down for good what each MCP session was given, and when.

A session is given the whole set or what of it fits its scope, so that a line of a session names a
revision, and the sets themselves are written once, as what each gained and lost against the one
before. Noting costs an append to a list: a task of its own writes. Lines are JSON objects; see
`rootsd.mcp.sessions.history`, which reads them.

    {"at": …, "daemon": "0.1.0"}                          a daemon began: no session is open
    {"at": …, "set": 7, "whole": true, "gained": [{"name","uri","access","tags"}], "lost": []}
    {"at": …, "session": "1f2e", "opened": {"pid","client","scope","since"}}
    {"at": …, "session": "1f2e", "given": 7}
    {"at": …, "session": "1f2e", "told": {"roots","names"}}
    {"at": …, "session": "1f2e", "closed": "left"}

Reads what `rootsd.mcp.sessions.history` wrote: which sessions there were, what each was given.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio
from anyio import to_thread

from rootsd.core.errors import RootsdError
from rootsd.core.model import Access, ProjectKind, PublishedRoot, PublishedSet
from rootsd.core.parsing import Unparsable, parse_json
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import FULL_SCOPE, Scope, ScopeExtent, SessionStart, UriFilter, apply_scope
from rootsd.core.timestamps import rfc3339
from rootsd.mcp.sessions.registry import OpenSession, scope_words
from rootsd.state.store.rotating_log import RotatingLog
from rootsd.wire.daemon import ReportedRootsItem, SentRootsItem, SessionItem

log = logging.getLogger(__name__)

LOG_GENERATION_BYTES = 4 << 20
# Beyond this the disk does not take what comes; sessions are not made to wait for their account.
_MOST_UNWRITTEN = 1 << 16

LogLine = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _LogEvent:
    at: datetime
    session: str
    said: LogLine
    published: PublishedSet | None = None


class SessionLog:
    """The account of all sessions; the methods of `Account` may be called from the event loop."""

    def __init__(self, journal: RotatingLog, version: str, now: Callable[[], datetime]) -> None:
        self._journal = journal
        self._now = now
        self._events = [_LogEvent(now(), "", {"daemon": version})]
        self._arrived = anyio.Event()
        self._arrived.set()
        self._open: dict[str, LogLine] = {}
        self._given: dict[str, int] = {}
        self._told: dict[str, ReportedRootsItem] = {}
        self._written: PublishedSet | None = None
        self._is_refused = False

    def opened(self, session: OpenSession) -> None:
        """A session began."""
        self._note(session, {"opened": _session_to_json(session)})

    def named(self, session: OpenSession) -> None:
        """It said what it is called."""
        self._note(session, {"opened": _session_to_json(session)})

    def scoped(self, session: OpenSession) -> None:
        """It narrowed itself."""
        self._note(session, {"opened": _session_to_json(session)})

    def given(self, session: OpenSession, published: PublishedSet) -> None:
        """It was given another set than the last time."""
        self._note(session, {"given": published.revision}, published)

    def told(self, session: OpenSession, told: ReportedRootsItem) -> None:
        """A relay has told its server of roots."""
        self._note(session, {"told": told})

    def closed(self, session: OpenSession, end: str) -> None:
        """It is over."""
        self._note(session, {"closed": end})

    async def keep(self) -> None:
        """Write what is noted, for as long as the daemon runs."""
        while True:
            await self._arrived.wait()
            self._arrived = anyio.Event()
            events, self._events = self._events, []
            await to_thread.run_sync(self._write, events)

    def write_now(self) -> None:
        """Write what is left; only when nothing else uses this any more."""
        events, self._events = self._events, []
        self._write(events)
        self._journal.close()

    def _note(
        self, session: OpenSession, said: LogLine, published: PublishedSet | None = None
    ) -> None:
        if len(self._events) < _MOST_UNWRITTEN:
            self._events.append(_LogEvent(self._now(), session.id, said, published))
            self._arrived.set()

    # In a thread, one call at a time

    def _write(self, events: list[_LogEvent]) -> None:
        try:
            if self._journal.is_full:
                self._journal.turn()
                self._write_lines(self._restated())
            self._write_lines(line for event in events for line in self._lines(event))
            self._is_refused = False
        except RootsdError as error:
            self._written = None  # how much of it is there cannot be told
            if not self._is_refused:
                log.warning("what sessions are given is not written down: %s", error)
            self._is_refused = True

    def _write_lines(self, lines: Iterator[LogLine]) -> None:
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        self._journal.append(text.encode())

    def _restated(self) -> Iterator[LogLine]:
        """What a new generation begins with, so that it can be read alone."""
        at = _timestamp(self._now())
        written = self._written
        if written is not None:
            yield {"at": at, **_set_line(None, written)}
        for session, about in self._open.items():
            yield {"at": at, "session": session, "opened": about}
            if written is not None and self._given.get(session) == written.revision:
                yield {"at": at, "session": session, "given": written.revision}
            if (told := self._told.get(session)) is not None:
                yield {"at": at, "session": session, "told": told}

    def _lines(self, event: _LogEvent) -> Iterator[LogLine]:
        at = _timestamp(event.at)
        published = event.published
        if published is not None:
            # Notes come in the order of the sets: a session is always given the newest.
            if self._written is None or published.revision > self._written.revision:
                yield {"at": at, **_set_line(self._written, published)}
                self._written = published
            self._given[event.session] = published.revision
        if "opened" in event.said:
            self._open[event.session] = event.said["opened"]
        if "told" in event.said:
            self._told[event.session] = event.said["told"]
        if "closed" in event.said:
            self._open.pop(event.session, None)
            self._given.pop(event.session, None)
            self._told.pop(event.session, None)
        yield {"at": at, **({"session": event.session} if event.session else {}), **event.said}


def _set_line(before: PublishedSet | None, after: PublishedSet) -> LogLine:
    old = {root.name: root for root in before.roots} if before else {}
    new = {root.name: root for root in after.roots}
    return {
        "set": after.revision,
        "whole": before is None,
        "gained": [_root_to_json(root) for root in after.roots if old.get(root.name) != root],
        "lost": [name for name in old if name not in new],
    }


def _root_to_json(root: PublishedRoot) -> LogLine:
    return {
        "name": root.name,
        "uri": root.uri,
        "path": text_of(root.path),
        "kind": root.kind.value,
        "access": root.access.value,
        "tags": list(root.tags),
        "main": None if root.main_checkout is None else text_of(root.main_checkout),
        "approval": root.approval,
        "for_session": root.session,
    }


def _session_to_json(session: OpenSession) -> LogLine:
    return {
        "pid": session.pid,
        "client": session.client,
        "scope": _scope_to_json(session.scope),
        "since": _timestamp(session.since),
    }


def _scope_to_json(scope: Scope) -> LogLine:
    return {
        "names": sorted(scope.names),
        "tags": sorted(scope.tags),
        "folder": None if scope.folder is None else text_of(scope.folder),
        "any_uri": scope.uris is UriFilter.ANY,
        "extent": scope.extent.value,
        "anchor": None if scope.start.anchor is None else text_of(scope.start.anchor),
        "approvals": scope.start.approvals,
        "sessions": sorted(scope.sessions),
    }


def _timestamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


_MAX_NAMES = 100
_DAEMON_ENDED = "the daemon ended"

DecodedLine = dict[str, Any]


def read_history(read: Callable[[], Iterable[bytes]], last: int) -> list[SessionItem]:
    """The `last` sessions that began, in that order; `read` gives all lines, and is called twice:
    of sessions that are not asked for nothing is kept."""
    began = dict.fromkeys(line["session"] for line in _parse_lines(read()) if "opened" in line)
    reader = _HistoryReader(frozenset(list(began)[-last:] if last > 0 else ()))
    for line in _parse_lines(read()):
        reader.take(line)
    return [record.item() for record in reader.records.values()]


def _parse_lines(lines: Iterable[bytes]) -> Iterator[DecodedLine]:
    """The lines that are whole: a daemon may be killed in the middle of one."""
    for line in lines:
        try:
            value = parse_json(line)
        except Unparsable:
            continue
        match value:
            case {"at": str(), "session": str()} | {"at": str(), "daemon": _}:
                yield value
            case {"at": str(), "set": int(), "gained": list(), "lost": list()}:
                yield value
            case _:
                pass


@dataclass(slots=True)
class _NameChanges:
    """What became of the names between two moments; none is in two of these."""

    fresh: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)

    def then(self, later: _NameChanges) -> None:
        """Both changes as one."""
        self.changed |= (later.fresh & self.lost) | (later.changed - self.fresh)
        self.fresh = (self.fresh | (later.fresh - self.lost)) - later.lost
        self.lost = (self.lost - later.fresh) | (later.lost - self._came_before(later))
        self.changed -= later.lost

    def _came_before(self, later: _NameChanges) -> set[str]:
        return later.lost & self.fresh


@dataclass(slots=True)
class _SessionRecord:
    """One session in the making. `scoped` is what it was given last, where it has a scope or had
    another one."""

    id: str
    pid: int
    client: str | None
    scope: Scope
    since: datetime
    until: datetime | None = None
    end: str | None = None
    given: list[SentRootsItem] = field(default_factory=list)
    changes: int = 0
    scoped: dict[str, PublishedRoot] = field(default_factory=dict)
    has_refocused: bool = False
    told: ReportedRootsItem | None = None

    def item(self) -> SessionItem:
        return SessionItem(
            id=self.id,
            client=self.client,
            pid=self.pid,
            scope=scope_words(self.scope),
            since=rfc3339(self.since),
            until=rfc3339(self.until) if self.until else None,
            end=self.end,
            given=self.given,
            told=self.told,
        )


class _HistoryReader:
    def __init__(self, wanted: frozenset[str]) -> None:
        self.records: dict[str, _SessionRecord] = {}
        self._wanted = wanted
        self._open: dict[str, _SessionRecord] = {}
        self._roots: dict[str, PublishedRoot] = {}
        self._changes: list[_NameChanges] = []

    def take(self, line: DecodedLine) -> None:
        at = datetime.fromisoformat(line["at"])
        match line:
            case {"daemon": _}:
                self._daemon_began(at)
            case {"set": _}:
                self._take_set(line)
            case {"session": id_} if id_ not in self._wanted:
                pass
            case {"session": id_, "opened": about}:
                self._take_opened(id_, about)
            case {"session": id_, "given": int() as revision} if id_ in self.records:
                self._take_given(self.records[id_], at, revision)
            case {
                "session": id_,
                "told": {"roots": int() as roots, "names": list() as names},
            } if id_ in self.records:
                self.records[id_].told = ReportedRootsItem(
                    roots=roots, names=[str(each) for each in names]
                )
            case {"session": id_, "closed": end} if id_ in self.records:
                self._end(self.records[id_], at, end)

    def _daemon_began(self, at: datetime) -> None:
        for record in tuple(self._open.values()):
            self._end(record, at, _DAEMON_ENDED)
        self._roots.clear()
        self._changes.clear()

    def _end(self, record: _SessionRecord, at: datetime, end: str) -> None:
        record.until, record.end = at, end
        self._open.pop(record.id, None)

    def _take_opened(self, id_: str, about: DecodedLine) -> None:
        if id_ not in self.records:
            since = datetime.fromisoformat(about["since"])
            record = _SessionRecord(id_, about["pid"], None, FULL_SCOPE, since)
            self.records[id_] = self._open[id_] = record
        record = self.records[id_]
        scope = _scope_from_json(about["scope"])
        if scope != record.scope and record.given:
            record.scoped, record.has_refocused = self._seen_in(record.scope), True
        record.client, record.scope = about["client"], scope

    def _take_set(self, line: DecodedLine) -> None:
        new = {each["name"]: _root_from_json(each) for each in line["gained"]}
        if line["whole"]:
            old, self._roots = self._roots, new
            fresh, lost = new.keys() - old.keys(), old.keys() - new.keys()
            changed = {name for name in new.keys() & old.keys() if new[name] != old[name]}
        else:
            fresh, lost = new.keys() - self._roots.keys(), set(line["lost"])
            changed = set(new) - fresh
            for name in lost:
                self._roots.pop(name, None)
            self._roots |= new
        self._changes.append(_NameChanges(set(fresh), changed, set(lost)))

    def _take_given(self, record: _SessionRecord, at: datetime, revision: int) -> None:
        has_bound = any(root.session is not None for root in self._roots.values())
        if record.scope.is_full and not record.has_refocused and not has_bound:
            change, count = self._change_since(record), len(self._roots)
        else:
            change, count = self._change_in_scope(record)
        record.changes = len(self._changes)
        gained = sorted(change.fresh | change.changed)
        lost = sorted(change.lost)
        if record.given and not gained and not lost:
            return
        record.given.append(
            SentRootsItem(
                at=rfc3339(at),
                revision=revision,
                roots=count,
                gained=gained[:_MAX_NAMES],
                gained_count=len(gained),
                lost=lost[:_MAX_NAMES],
                lost_count=len(lost),
            )
        )

    def _change_since(self, record: _SessionRecord) -> _NameChanges:
        if not record.given:
            return _NameChanges(fresh=set(self._roots))
        change = _NameChanges()
        for each in self._changes[record.changes :]:
            change.then(each)
        return change

    def _seen_in(self, scope: Scope) -> dict[str, PublishedRoot]:
        whole = PublishedSet(0, tuple(self._roots.values()))
        return {root.name: root for root in apply_scope(whole, scope).roots}

    def _change_in_scope(self, record: _SessionRecord) -> tuple[_NameChanges, int]:
        now = self._seen_in(record.scope)
        before, record.scoped = record.scoped, now
        changed = {name for name in now.keys() & before.keys() if now[name] != before[name]}
        change = _NameChanges(
            set(now.keys() - before.keys()), changed, set(before.keys() - now.keys())
        )
        return change, len(now)


def _root_from_json(shown: DecodedLine) -> PublishedRoot:
    return PublishedRoot(
        path=bytes_of(shown["path"]),
        name=shown["name"],
        kind=ProjectKind(shown["kind"]),
        access=Access(shown["access"]),
        tags=tuple(shown["tags"]),
        main_checkout=_path_from_json(shown.get("main")),
        approval=shown.get("approval", 0),
        session=shown.get("for_session"),
    )


def _scope_from_json(shown: DecodedLine) -> Scope:
    """Return the scope in a line; version 0.1.0 wrote no extent and no start."""
    return Scope(
        frozenset(shown["names"]),
        frozenset(shown["tags"]),
        _path_from_json(shown["folder"]),
        UriFilter.ANY if shown["any_uri"] else UriFilter.FILE,
        ScopeExtent(shown.get("extent", ScopeExtent.ROOT.value)),
        SessionStart(_path_from_json(shown.get("anchor")), shown.get("approvals", 0)),
        frozenset(shown.get("sessions", ())),
    )


def _path_from_json(shown: str | None) -> bytes | None:
    return None if shown is None else bytes_of(shown)
