"""Sessions whose account is kept on a real disk, with a clock that tests move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from rootsd.app.sessions.history import history
from rootsd.app.sessions.log import SessionLog
from rootsd.app.sessions.registry import Session, Sessions
from rootsd.core.model import Published
from rootsd.host.storage.journal import Journal
from rootsd.wire.sessions import SessionItem, ToldServer

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

    def opened(self, session: Session) -> None: ...

    def named(self, session: Session) -> None: ...

    def scoped(self, session: Session) -> None: ...

    def given(self, session: Session, published: Published) -> None: ...

    def told(self, session: Session, told: ToldServer) -> None: ...

    def closed(self, session: Session, end: str) -> None: ...


class Accounts:
    """One daemon after the other on the same folder."""

    def __init__(self, folder: Path, limit: int = 1 << 20) -> None:
        self.file = folder / "sessions.ndjson"
        self._limit = limit
        self.clock = Clock()
        self.begin_daemon()

    def begin_daemon(self) -> None:
        """A daemon starts; whatever the one before had not written is lost."""
        self.log = SessionLog(Journal(self.file, self._limit), "1.2.3", self.clock)
        self.sessions = Sessions(self.log, self.clock)

    def history(self, last: int = 50) -> list[SessionItem]:
        """What a person is shown, after everything was written."""
        self.log.write_now()
        return history(Journal(self.file, self._limit).read, last)
