"""Which MCP connections there are, for `status`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from rootsd.app.items import rfc3339
from rootsd.wire.control import SessionStatus


@dataclass(slots=True)
class Session:
    """One connection; `client` is what the peer calls itself, once it has."""

    pid: int
    since: datetime
    client: str | None = None

    def name_client(self, name: str) -> None:
        """Note what the peer calls itself."""
        self.client = name


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
