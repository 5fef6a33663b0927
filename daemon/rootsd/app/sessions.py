"""Which MCP connections there are, for `status`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from rootsd.app.items import rfc3339
from rootsd.core.scope import EVERYTHING, Scope
from rootsd.wire.control import SessionStatus


@dataclass(slots=True)
class Session:
    """One connection and what is known of it: publishing's witness. `client` is what the peer
    calls itself, once it has."""

    pid: int
    since: datetime
    client: str | None = None
    scope: Scope = EVERYTHING

    def named(self, name: str) -> None:
        """Note what the peer calls itself."""
        self.client = name

    def scoped(self, scope: Scope) -> None:
        """Note what the peer narrowed itself to."""
        self.scope = scope


class Sessions:
    """The open connections, oldest first."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._open: dict[int, Session] = {}
        self._opened = 0

    @contextmanager
    def opened(self, pid: int) -> Iterator[Session]:
        """Keep a session for as long as the connection lives."""
        self._opened += 1
        number = self._opened
        session = self._open[number] = Session(pid, self._now())
        try:
            yield session
        finally:
            del self._open[number]

    def status(self) -> list[SessionStatus]:
        """Every open session."""
        return [
            SessionStatus(client=session.client, pid=session.pid, since=rfc3339(session.since))
            for session in self._open.values()
        ]
