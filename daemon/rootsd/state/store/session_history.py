"""Store the history of MCP sessions in a small SQLite file with a bounded number of rows.

No decision depends on this file. So a damaged file is replaced with an empty one, and nothing is
synced to the disk. A power cut may lose the newest rows.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from rootsd.files.private_files import display_path, ensure_private_file, unusable_error
from rootsd.state.store.database import (
    Database,
    StoreDamaged,
    connect_history,
    journal_of,
    read_number,
    transaction,
    translate_errors,
)

log = logging.getLogger(__name__)

_SCHEMA_VERSION = 1
_SCHEMA = (
    """
    CREATE TABLE session (
      seq INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      item TEXT NOT NULL,  -- JSON, see rootsd.mcp.sessions.history
      is_open INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE sent_roots (
      seq INTEGER PRIMARY KEY,
      session TEXT NOT NULL,
      item TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX sent_roots_by_session ON sent_roots (session)",
)


class StoredSession(Struct, frozen=True):
    """One session as JSON text, and the sets of roots that it received, oldest first."""

    item: str
    sent: Sequence[str] = ()
    is_open: bool = False


@dataclasses.dataclass(slots=True)
class SessionHistoryStore:
    """The SQLite file with the newest sessions. Any thread may call the methods.

    All methods raise RootsdError if the system refuses to read or write the file. They replace a
    damaged file with an empty one and log a warning.
    """

    file: Path
    max_sessions: int = 1_000
    max_sent: int = 5_000
    _db: Database | None = dataclasses.field(default=None, init=False)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, init=False)

    def save(self, sessions: Mapping[str, StoredSession]) -> None:
        """Insert or update `sessions` by their ids, add what each received, and drop old rows."""
        with self._lock:
            try:
                self._save(sessions)
            except StoreDamaged as error:
                self._start_anew(error)
                self._save(sessions)

    def load(self, last: int) -> list[StoredSession]:
        """Return the newest `last` sessions, in the order in which they began."""
        with self._lock:
            try:
                return self._load("ORDER BY seq DESC LIMIT ?", max(last, 0))[::-1]
            except StoreDamaged as error:
                self._start_anew(error)
                return []

    def has_any(self) -> bool:
        """Return whether there was ever a session. This makes no file."""
        return self.file.exists() and bool(self.load(1))

    def load_open(self) -> list[StoredSession]:
        """Return the sessions that were open when the file was written."""
        with self._lock:
            try:
                return self._load("WHERE is_open ORDER BY seq LIMIT ?", -1)
            except StoreDamaged as error:
                self._start_anew(error)
                return []

    def close(self) -> None:
        """Close the file. The next call opens it again."""
        with self._lock:
            self._close()

    def _save(self, sessions: Mapping[str, StoredSession]) -> None:
        with translate_errors(self.file):
            db = self._open()
            with transaction(db):
                for id_, session in sessions.items():
                    db.execute(
                        "INSERT INTO session (id, item, is_open) VALUES (?, ?, ?)"
                        " ON CONFLICT (id)"
                        " DO UPDATE SET item = excluded.item, is_open = excluded.is_open",
                        (id_, session.item, session.is_open),
                    )
                    db.executemany(
                        "INSERT INTO sent_roots (session, item) VALUES (?, ?)",
                        [(id_, item) for item in session.sent],
                    )
                self._drop_old_rows(db)

    def _drop_old_rows(self, db: Database) -> None:
        db.execute(
            "DELETE FROM session WHERE NOT is_open AND seq <= (SELECT max(seq) FROM session) - ?",
            (self.max_sessions,),
        )
        if db.execute("SELECT changes()").fetchone()[0]:
            db.execute("DELETE FROM sent_roots WHERE session NOT IN (SELECT id FROM session)")
        db.execute(
            "DELETE FROM sent_roots WHERE seq <= (SELECT max(seq) FROM sent_roots) - ?",
            (self.max_sent,),
        )

    def _load(self, which: str, limit: int) -> list[StoredSession]:
        with translate_errors(self.file):
            db = self._open()
            rows = db.execute(f"SELECT id, item, is_open FROM session {which}", (limit,))  # noqa: S608 - two constants
            return [
                StoredSession(item, self._sent_to(db, id_), bool(is_open))
                for id_, item, is_open in rows.fetchall()
            ]

    def _sent_to(self, db: Database, id_: str) -> list[str]:
        query = "SELECT item FROM sent_roots WHERE session = ? ORDER BY seq"
        return [item for (item,) in db.execute(query, (id_,))]

    def _open(self) -> Database:
        if self._db is None:
            ensure_private_file(self.file)
            self._db = connect_history(self.file)
            version = read_number(self._db, "user_version")
            if version == 0:
                self._create_tables(self._db)
            elif version != _SCHEMA_VERSION:
                raise StoreDamaged(f"it has the unknown format {version}")
        return self._db

    def _create_tables(self, db: Database) -> None:
        with transaction(db):
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def _start_anew(self, error: StoreDamaged) -> None:
        log.warning(
            "the history of sessions in %s is damaged (%s); a new one begins",
            display_path(self.file),
            error,
        )
        self._close()
        for file in (self.file, journal_of(self.file)):
            try:
                file.unlink(missing_ok=True)
            except OSError as refused:
                raise unusable_error(file, refused) from refused

    def _close(self) -> None:
        if self._db is not None:
            with closing(self._db):
                self._db = None
