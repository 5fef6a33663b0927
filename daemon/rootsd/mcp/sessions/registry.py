"""The open MCP sessions: their clients, scopes, and the last set that each received."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from rootsd.core.model import PublishedRoot, PublishedSet
from rootsd.core.scope import FULL_SCOPE, Scope, apply_scope, describe_scope
from rootsd.core.timestamps import rfc3339
from rootsd.state.change_signal import ChangeSignal
from rootsd.wire.daemon import SentRootsItem, SessionItem
from rootsd.wire.reported_roots import ReportedRoots

Clock = Callable[[], datetime]


class SessionRecorder(Protocol):
    """The interface of a permanent record of sessions."""

    def changed(self, session: OpenSession) -> None:
        """Record a session: it began, or its name, its scope, or what it reported is new."""

    def roots_sent(self, session: OpenSession, published: PublishedSet) -> None:
        """Record that the session received a new set.

        `published` is the whole set. The recorder applies the session's scope.
        """

    def closed(self, session: OpenSession) -> None:
        """Record the end of a session."""


class OpenSession(Struct):
    """One connection and the facts about it: a SessionObserver.

    `client` is the peer's name for itself, as soon as it has sent one.
    """

    recorder: SessionRecorder
    changes: ChangeSignal
    now: Clock
    id: str
    pid: int
    since: datetime
    client: str | None = None
    scope: Scope = FULL_SCOPE
    end: str = "closed by rootsd"
    last: PublishedSet | None = None
    last_at: datetime | None = None
    reported: ReportedRoots | None = None

    def named(self, name: str) -> None:
        """Note the client's name."""
        self.client = name
        self.recorder.changed(self)
        self.changes.notify()

    def scoped(self, scope: Scope) -> None:
        """Note the scope that applies from now on, unless it is the same as before."""
        if scope != self.scope:
            self.scope = scope
            self.recorder.changed(self)
            self.changes.notify()

    def roots_reported(self, roots: int, names: tuple[str, ...]) -> None:
        """Note which roots `rootsd run` has reported to its server."""
        self.reported = ReportedRoots(roots=roots, names=list(names))
        self.recorder.changed(self)
        self.changes.notify()

    def roots_sent(self, published: PublishedSet) -> None:
        """Note the set that the client received, unless it is the same as before."""
        if published is not self.last:
            self.last, self.last_at = published, self.now()
            self.recorder.roots_sent(self, published)
            self.changes.notify()

    def describe(self) -> SessionItem:
        """Return the session for the command line, without the roots that it received."""
        return SessionItem(
            id=self.id,
            client=self.client,
            pid=self.pid,
            scope=describe_scope(self.scope),
            since=rfc3339(self.since),
            until=None,
            end=None,
            given=[],
            told=self.reported,
        )

    def item(self) -> SessionItem:
        """Return the session for the command line, with the newest set that it received."""
        item = self.describe()
        item["given"] = self._newest()
        return item

    def roots(self) -> Sequence[PublishedRoot]:
        """Return the roots that the client received last."""
        return () if self.last is None else apply_scope(self.last, self.scope).roots

    def _newest(self) -> list[SentRootsItem]:
        if self.last is None or self.last_at is None:
            return []
        newest = SentRootsItem(
            at=rfc3339(self.last_at),
            revision=self.last.revision,
            roots=len(self.roots()),
            gained=[],
            gained_count=0,
            lost=[],
            lost_count=0,
        )
        return [newest]


class SessionRegistry:
    """The open connections, oldest first. `changes` is notified when one of them changes."""

    def __init__(
        self, recorder: SessionRecorder, now: Clock, changes: ChangeSignal | None = None
    ) -> None:
        self._recorder = recorder
        self._changes = changes or ChangeSignal()
        self._now = now
        self._open: dict[str, OpenSession] = {}

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def opened(self, pid: int) -> Iterator[OpenSession]:
        """Register a session for as long as its connection lives."""
        session = OpenSession(
            self._recorder, self._changes, self._now, secrets.token_hex(4), pid, self._now()
        )
        self._open[session.id] = session
        self._recorder.changed(session)
        self._changes.notify()
        try:
            yield session
        finally:
            del self._open[session.id]
            self._recorder.closed(session)
            self._changes.notify()

    def pids(self) -> set[int]:
        """Return the processes that have a session."""
        return {session.pid for session in self._open.values()} - {0}

    def items(self) -> list[SessionItem]:
        """Return every open session."""
        return [session.item() for session in self._open.values()]

    def roots_of(self, id_: str) -> Sequence[PublishedRoot]:
        """Return the roots that a session received last. There are none if it has ended."""
        session = self._open.get(id_)
        return () if session is None else session.roots()
