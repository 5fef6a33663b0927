"""Sessions whose account is kept on a real disk, with a clock that tests move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from rootsd.core.model import PublishedSet
from rootsd.mcp.sessions.history import SessionLog, read_history
from rootsd.mcp.sessions.registry import OpenSession, SessionRegistry
from rootsd.state.store.rotating_log import RotatingLog
from rootsd.wire.daemon import ReportedRootsItem, SessionItem

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Clock:
    """A minute passes with each look at it."""

    def __init__(self) -> None:
        self.minutes = 0

    def __call__(self) -> datetime:
        self.minutes += 1
        return NOON + timedelta(minutes=self.minutes)


class NoAccount:
    """Keeps nothing."""

    def opened(self, session: OpenSession) -> None: ...

    def named(self, session: OpenSession) -> None: ...

    def scoped(self, session: OpenSession) -> None: ...

    def given(self, session: OpenSession, published: PublishedSet) -> None: ...

    def told(self, session: OpenSession, told: ReportedRootsItem) -> None: ...

    def closed(self, session: OpenSession, end: str) -> None: ...


class Accounts:
    """One daemon after the other on the same folder."""

    def __init__(self, folder: Path, limit: int = 1 << 20) -> None:
        self.file = folder / "sessions.ndjson"
        self._limit = limit
        self.clock = Clock()
        self.begin_daemon()

    def begin_daemon(self) -> None:
        """A daemon starts; whatever the one before had not written is lost."""
        self.log = SessionLog(RotatingLog(self.file, self._limit), "1.2.3", self.clock)
        self.sessions = SessionRegistry(self.log, self.clock)

    def history(self, last: int = 50) -> list[SessionItem]:
        """What a person is shown, after everything was written."""
        self.log.write_now()
        return read_history(RotatingLog(self.file, self._limit).read, last)
