"""Sessions with a history on a real disk, and a clock that tests control."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from rootsd.core.model import PublishedSet
from rootsd.mcp.sessions.history import SessionLog, read_history
from rootsd.mcp.sessions.registry import OpenSession, SessionRegistry
from rootsd.state.store.session_history import SessionHistoryStore
from rootsd.wire.daemon import SessionItem

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Clock:
    """A clock that advances by a minute each time it is read."""

    def __init__(self) -> None:
        self.minutes = 0

    def __call__(self) -> datetime:
        self.minutes += 1
        return NOON + timedelta(minutes=self.minutes)


class NullRecorder:
    """A SessionRecorder that records nothing."""

    def changed(self, session: OpenSession) -> None: ...

    def roots_sent(self, session: OpenSession, published: PublishedSet) -> None: ...

    def closed(self, session: OpenSession) -> None: ...


@contextmanager
def closed_afterwards() -> Iterator[None]:
    """Close every history opened during the block, as the end of its daemon would."""
    opened: list[SessionHistoryStore] = []
    initialize = SessionHistoryStore.__init__

    def recorded(store: SessionHistoryStore, file: Path, **limits: int) -> None:
        initialize(store, file, **limits)
        opened.append(store)

    with patch.object(SessionHistoryStore, "__init__", recorded):
        yield
    for store in opened:
        store.close()


class RecordedSessions:
    """The sessions of several daemons, one after the other, recorded in the same folder."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "sessions.db"
        self.clock = Clock()
        self.start_daemon()

    def start_daemon(self) -> None:
        """Start a new daemon; events that the previous one had not written are lost."""
        self.store = SessionHistoryStore(self.file)
        self.log = SessionLog(self.store, self.clock)
        self.sessions = SessionRegistry(self.log, self.clock)

    def history(self, last: int = 50) -> list[SessionItem]:
        """Return what `rootsd sessions --history` shows after all events are written."""
        self.log.write_now()
        return read_history(self.store, last)
