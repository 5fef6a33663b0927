"""The MCP connections that are open: who they are, and what each was given last."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rootsd.app.control.items import rfc3339
from rootsd.core.model import Published
from rootsd.core.paths import text_of
from rootsd.core.scope import EVERYTHING, Extent, Scope, Uris, narrow
from rootsd.wire.running import SessionStatus
from rootsd.wire.sessions import GivenSet, SessionItem, ToldServer


class Account(Protocol):
    """Who keeps for good what sessions do."""

    def opened(self, session: Session) -> None:
        """A session began."""

    def named(self, session: Session) -> None:
        """It said what it is called."""

    def scoped(self, session: Session) -> None:
        """It narrowed itself."""

    def given(self, session: Session, published: Published) -> None:
        """It was given another set than the last time; the whole one, its scope still to apply."""

    def told(self, session: Session, told: ToldServer) -> None:
        """A relay has told its server of roots."""

    def closed(self, session: Session, end: str) -> None:
        """It is over."""


@dataclass(slots=True)
class Session:
    """One connection and what is known of it: publishing's witness. `client` is what the peer
    calls itself, once it has."""

    account: Account
    now: Callable[[], datetime]
    id: str
    pid: int
    since: datetime
    client: str | None = None
    scope: Scope = EVERYTHING
    end: str = "closed by rootsd"
    last: Published | None = None
    last_at: datetime | None = None
    passed_on: ToldServer | None = None

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
        self.passed_on = ToldServer(roots=roots, names=list(names))
        self.account.told(self, self.passed_on)

    def given(self, published: Published) -> None:
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

    def _newest(self) -> list[GivenSet]:
        if self.last is None or self.last_at is None:
            return []
        count = len(narrow(self.last, self.scope).roots)
        newest = GivenSet(
            at=rfc3339(self.last_at),
            revision=self.last.revision,
            roots=count,
            gained=[],
            gained_count=0,
            lost=[],
            lost_count=0,
        )
        return [newest]


class Sessions:
    """The open connections, oldest first."""

    def __init__(self, account: Account, now: Callable[[], datetime]) -> None:
        self._account = account
        self._now = now
        self._open: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def opened(self, pid: int) -> Iterator[Session]:
        """Keep a session for as long as the connection lives."""
        session = Session(self._account, self._now, secrets.token_hex(4), pid, self._now())
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
    if scope.takes_by_folder:
        path = scope.start.anchor or scope.folder or b""
        word = "workspace" if scope.extent is Extent.WORKSPACE else "cwd"
        words.append(f"{word}:{text_of(path)}")
    if scope.uris is Uris.ANY:
        words.append("any-uri")
    return words
