"""Writes down for good what each MCP session was given, and when.

A session is given the whole set or what of it fits its scope, so that a line of a session names a
revision, and the sets themselves are written once, as what each gained and lost against the one
before. Noting costs an append to a list: a task of its own writes. Lines are JSON objects; see
`rootsd.app.sessions.history`, which reads them.

    {"at": …, "daemon": "0.1.0"}                          a daemon began: no session is open
    {"at": …, "set": 7, "whole": true, "gained": [{"name","uri","access","tags"}], "lost": []}
    {"at": …, "session": "1f2e", "opened": {"pid","client","scope","since"}}
    {"at": …, "session": "1f2e", "given": 7}
    {"at": …, "session": "1f2e", "told": {"roots","names"}}
    {"at": …, "session": "1f2e", "closed": "left"}
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import anyio
from anyio import to_thread

from rootsd.app.sessions.registry import Session
from rootsd.core.errors import RootsdError
from rootsd.core.model import Published, Root
from rootsd.core.paths import text_of
from rootsd.core.scope import Scope, Uris
from rootsd.host.storage.journal import Journal
from rootsd.wire.sessions import ToldServer

log = logging.getLogger(__name__)

GENERATION_BYTES = 4 << 20
# Beyond this the disk does not take what comes; sessions are not made to wait for their account.
_MOST_UNWRITTEN = 1 << 16

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Event:
    at: datetime
    session: str
    said: Json
    published: Published | None = None


class SessionLog:
    """The account of all sessions; the methods of `Account` may be called from the event loop."""

    def __init__(self, journal: Journal, version: str, now: Callable[[], datetime]) -> None:
        self._journal = journal
        self._now = now
        self._events = [_Event(now(), "", {"daemon": version})]
        self._arrived = anyio.Event()
        self._arrived.set()
        self._open: dict[str, Json] = {}
        self._given: dict[str, int] = {}
        self._told: dict[str, ToldServer] = {}
        self._written: Published | None = None
        self._is_refused = False

    def opened(self, session: Session) -> None:
        """A session began."""
        self._note(session, {"opened": _about(session)})

    def named(self, session: Session) -> None:
        """It said what it is called."""
        self._note(session, {"opened": _about(session)})

    def scoped(self, session: Session) -> None:
        """It narrowed itself."""
        self._note(session, {"opened": _about(session)})

    def given(self, session: Session, published: Published) -> None:
        """It was given another set than the last time."""
        self._note(session, {"given": published.revision}, published)

    def told(self, session: Session, told: ToldServer) -> None:
        """A relay has told its server of roots."""
        self._note(session, {"told": told})

    def closed(self, session: Session, end: str) -> None:
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

    def _note(self, session: Session, said: Json, published: Published | None = None) -> None:
        if len(self._events) < _MOST_UNWRITTEN:
            self._events.append(_Event(self._now(), session.id, said, published))
            self._arrived.set()

    # In a thread, one call at a time

    def _write(self, events: list[_Event]) -> None:
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

    def _write_lines(self, lines: Iterator[Json]) -> None:
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        self._journal.append(text.encode())

    def _restated(self) -> Iterator[Json]:
        """What a new generation begins with, so that it can be read alone."""
        at = _moment(self._now())
        written = self._written
        if written is not None:
            yield {"at": at, **_set_line(None, written)}
        for session, about in self._open.items():
            yield {"at": at, "session": session, "opened": about}
            if written is not None and self._given.get(session) == written.revision:
                yield {"at": at, "session": session, "given": written.revision}
            if (told := self._told.get(session)) is not None:
                yield {"at": at, "session": session, "told": told}

    def _lines(self, event: _Event) -> Iterator[Json]:
        at = _moment(event.at)
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


def _set_line(before: Published | None, after: Published) -> Json:
    old = {root.name: root for root in before.roots} if before else {}
    new = {root.name: root for root in after.roots}
    return {
        "set": after.revision,
        "whole": before is None,
        "gained": [_shown(root) for root in after.roots if old.get(root.name) != root],
        "lost": [name for name in old if name not in new],
    }


def _shown(root: Root) -> Json:
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


def _about(session: Session) -> Json:
    return {
        "pid": session.pid,
        "client": session.client,
        "scope": _scope(session.scope),
        "since": _moment(session.since),
    }


def _scope(scope: Scope) -> Json:
    return {
        "names": sorted(scope.names),
        "tags": sorted(scope.tags),
        "folder": None if scope.folder is None else text_of(scope.folder),
        "any_uri": scope.uris is Uris.ANY,
        "extent": scope.extent.value,
        "anchor": None if scope.start.anchor is None else text_of(scope.start.anchor),
        "approvals": scope.start.approvals,
        "sessions": sorted(scope.sessions),
    }


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")
