"""The open MCP sessions: their clients, scopes, and the last set each was given."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rootsd.core.model import PublishedSet
from rootsd.core.paths import text_of
from rootsd.core.scope import FULL_SCOPE, Scope, ScopeExtent, UriFilter, apply_scope
from rootsd.core.timestamps import rfc3339
from rootsd.wire.daemon import ReportedRootsItem, SentRootsItem, SessionItem, SessionStatus


class SessionRecorder(Protocol):
    """Who keeps for good what sessions do."""

    def opened(self, session: OpenSession) -> None:
        """A session began."""

    def named(self, session: OpenSession) -> None:
        """It said what it is called."""

    def scoped(self, session: OpenSession) -> None:
        """It narrowed itself."""

    def given(self, session: OpenSession, published: PublishedSet) -> None:
        """It was given another set than the last time; the whole one, its scope still to apply."""

    def told(self, session: OpenSession, told: ReportedRootsItem) -> None:
        """A relay has told its server of roots."""

    def closed(self, session: OpenSession, end: str) -> None:
        """It is over."""


@dataclass(slots=True)
class OpenSession:
    """One connection and what is known of it: publishing's witness. `client` is what the peer
    calls itself, once it has."""

    account: SessionRecorder
    now: Callable[[], datetime]
    id: str
    pid: int
    since: datetime
    client: str | None = None
    scope: Scope = FULL_SCOPE
    end: str = "closed by rootsd"
    last: PublishedSet | None = None
    last_at: datetime | None = None
    passed_on: ReportedRootsItem | None = None

    def named(self, name: str) -> None:
        """Note what the peer calls itself."""
        self.client = name
        self.account.named(self)

    def scoped(self, scope: Scope) -> None:
        """Note what the peer narrowed itself to."""
        self.scope = scope
        self.account.scoped(self)

    def told(self, roots: int, names: tuple[str, ...]) -> None:
        """Note what a relay has told its server of."""
        self.passed_on = ReportedRootsItem(roots=roots, names=list(names))
        self.account.told(self, self.passed_on)

    def given(self, published: PublishedSet) -> None:
        """Note what the peer was given, where it is not what it had."""
        if published is not self.last:
            self.last, self.last_at = published, self.now()
            self.account.given(self, published)

    def item(self) -> SessionItem:
        """The session as the command line shows it."""
        return SessionItem(
            id=self.id,
            client=self.client,
            pid=self.pid,
            scope=scope_words(self.scope),
            since=rfc3339(self.since),
            until=None,
            end=None,
            given=self._newest(),
            told=self.passed_on,
        )

    def _newest(self) -> list[SentRootsItem]:
        if self.last is None or self.last_at is None:
            return []
        count = len(apply_scope(self.last, self.scope).roots)
        newest = SentRootsItem(
            at=rfc3339(self.last_at),
            revision=self.last.revision,
            roots=count,
            gained=[],
            gained_count=0,
            lost=[],
            lost_count=0,
        )
        return [newest]


class SessionRegistry:
    """The open connections, oldest first."""

    def __init__(self, account: SessionRecorder, now: Callable[[], datetime]) -> None:
        self._account = account
        self._now = now
        self._open: dict[str, OpenSession] = {}

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def opened(self, pid: int) -> Iterator[OpenSession]:
        """Keep a session for as long as the connection lives."""
        session = OpenSession(self._account, self._now, secrets.token_hex(4), pid, self._now())
        self._open[session.id] = session
        self._account.opened(session)
        try:
            yield session
        finally:
            del self._open[session.id]
            self._account.closed(session, session.end)

    def pids(self) -> set[int]:
        """The processes that hold a session."""
        return {session.pid for session in self._open.values()} - {0}

    def status(self) -> list[SessionStatus]:
        """Every open session, for `status`."""
        return [
            SessionStatus(client=session.client, pid=session.pid, since=rfc3339(session.since))
            for session in self._open.values()
        ]

    def items(self) -> list[SessionItem]:
        """Every open session, for `sessions`."""
        return [session.item() for session in self._open.values()]


def scope_words(scope: Scope) -> list[str]:
    """A scope in the words that ask for it; none for one that takes nothing away."""
    words = [*sorted(scope.names), *(f"tag:{tag}" for tag in sorted(scope.tags))]
    if scope.narrows_by_folder:
        path = scope.start.anchor or scope.folder or b""
        word = "workspace" if scope.extent is ScopeExtent.WORKSPACE else "cwd"
        words.append(f"{word}:{text_of(path)}")
    if scope.uris is UriFilter.ANY:
        words.append("any-uri")
    return words
