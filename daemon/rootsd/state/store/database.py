"""Open the SQLite database, run transactions, and translate its errors.

This is the only module that imports sqlite3. It sets SQLite up so that a committed decision
survives a power cut, and so that a full disk refuses a write instead of damaging the file. Errors
of SQLite become Busy, DiskFull, StoreUnusable (the system failed) or StoreDamaged (the file is
wrong).
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from rootsd.core.errors import Busy, RootsdError
from rootsd.core.history import BrokenChain
from rootsd.core.record import BadRecord
from rootsd.files.private_files import display_path, unusable_error

Database = sqlite3.Connection

MIN_SQLITE = (3, 37)  # STRICT tables
BUSY_SECONDS = 2.0
JOURNAL_SUFFIX = "-journal"
# The order matters. A change of the journal mode writes a journal. If it came before
# `synchronous`, that journal could reappear after a power cut and undo decisions that were
# acknowledged.
PRAGMAS = (
    "locking_mode=EXCLUSIVE",
    "synchronous=EXTRA",
    *(("fullfsync=1",) if sys.platform == "darwin" else ()),
    "journal_mode=PERSIST",
    "journal_size_limit=-1",  # the journal keeps its size, for the next one on a full disk
    "foreign_keys=1",
    "trusted_schema=0",
    "cell_size_check=1",
    "temp_store=MEMORY",  # a confined daemon may not create temporary files
)
# No decision depends on the history of sessions, so it is never synced to the disk.
HISTORY_PRAGMAS = (
    "synchronous=OFF",
    "journal_mode=PERSIST",
    "trusted_schema=0",
    "cell_size_check=1",
    "temp_store=MEMORY",
    "cache_size=-256",  # KiB
)
READING_PRAGMAS = ("trusted_schema=0", "cell_size_check=1", "temp_store=MEMORY")
# The header's field for the file format version (sqlite.org/fileformat2.html, 1.3).
_WRITE_VERSION, _NEWEST_FORMAT = 18, b"\x02"
# The errors of SQLite for which the system is the cause, and not the database.
_SYSTEM_ERRORS = frozenset(
    {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOLFS,
    }
)


class StoreDamaged(Exception):
    """The database is damaged. `rootsd.state.store.recovery` repairs it."""


# The first bytes of a journal that SQLite would roll back (sqlite.org/fileformat2.html, 3).
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


class StoreUnusable(RootsdError):
    """The system refuses to read or write the database, which is undamaged."""


class DiskFull(StoreUnusable):
    """The disk has no room for a write. Nothing was written."""


def require_sqlite() -> None:
    """Raise StoreUnusable if this Python's SQLite is too old."""
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        raise StoreUnusable(
            f"rootsd needs SQLite 3.37 or newer, this Python has {sqlite3.sqlite_version}",
            "install a newer Python, then: rootsd up",
        )


@contextmanager
def translate_errors(file: Path) -> Iterator[None]:
    """Translate errors about `file` to Busy and the errors of this module."""
    try:
        yield
    except (BadRecord, BrokenChain, UnicodeDecodeError) as error:
        # sqlite3 raises UnicodeDecodeError for invalid text, even in SQLite's own messages.
        raise StoreDamaged(str(error)) from error
    except sqlite3.Error as error:
        # The low byte is the primary code (sqlite.org/rescode.html). An error without a code comes
        # from the sqlite3 module itself, which could not decode a value as text.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            remedy = "free some space on that disk, then try again"
            raise DiskFull(f"no room left for {display_path(file)}", remedy) from error
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            remedy = f"fuser -v {file}"
            raise Busy(f"another program has {display_path(file)} open", remedy) from error
        if code in _SYSTEM_ERRORS:
            message = f"{display_path(file)} cannot be used: {error}"
            raise StoreUnusable(message, f"ls -ld {file.parent} {file}*") from error
        raise StoreDamaged(str(error)) from error


def connect(file: Path) -> Database:
    """Open the existing database `file` for writing, so that no other process can open it.

    SQLite rolls back a transaction that a crash left incomplete. Raises StoreUnusable if it did
    not, and StoreDamaged if SQLite would not write to the file.
    """
    _refuse_newer_format(file)
    db = _connect(file, "mode=rw", PRAGMAS)
    try:
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # rolls back
        _refuse_hot_journal(file)
    except BaseException:
        db.close()
        raise
    return db


def _refuse_newer_format(file: Path) -> None:
    """Raise StoreDamaged if the header says that a newer SQLite wrote the file.

    SQLite opens such a file for reading only, and reports that only at the first write. One
    flipped bit has the same effect. Call this before the database is open, because closing a
    second descriptor would drop SQLite's lock.
    """
    if not _is_of_newer_format(file):
        return
    with closing(_connect(file, "mode=rw", PRAGMAS)) as db:
        # An incomplete transaction may have written this header. Have it rolled back.
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if _is_of_newer_format(file):
        raise StoreDamaged("its header says that a newer SQLite wrote it")


def _is_of_newer_format(file: Path) -> bool:
    try:
        with file.open("rb") as database:
            header = database.read(_WRITE_VERSION + 1)
    except OSError as error:
        raise unusable_error(file, error) from error
    return header[_WRITE_VERSION:] > _NEWEST_FORMAT


def _refuse_hot_journal(file: Path) -> None:
    """Raise StoreUnusable if the journal still has a transaction to roll back.

    SQLite ignores a journal that it cannot read, and then treats an incomplete transaction as
    complete. A journal that SQLite could read and that holds garbage, as after a power cut, is
    harmless.
    """
    try:
        with journal_of(file).open("rb") as journal:
            is_hot = journal.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
    except FileNotFoundError:
        return
    except OSError as error:
        raise unusable_error(journal_of(file), error) from error
    if is_hot:
        message = f"the journal of {display_path(file)} could not be read"
        raise StoreUnusable(message, f"ls -ld {file.parent} {file}*, then: rootsd up")


def journal_of(file: Path) -> Path:
    """Return the path of SQLite's journal of the database `file`."""
    return file.with_name(file.name + JOURNAL_SUFFIX)


def connect_frozen(file: Path) -> Database:
    """Open `file` read-only, without a lock, a journal or any change."""
    return _connect(file, "mode=ro&immutable=1", READING_PRAGMAS)


def connect_history(file: Path) -> Database:
    """Open the history of sessions, an existing `file`, for writing."""
    return _connect(file, "mode=rw", HISTORY_PRAGMAS)


def connect_memory() -> Database:
    """Open an empty database in memory."""
    return sqlite3.connect(":memory:", isolation_level=None)


def _connect(file: Path, query: str, pragmas: Iterable[str]) -> Database:
    db = sqlite3.connect(
        f"file:{quote(os.fsencode(file.absolute()))}?{query}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # opened on one thread, used by workers, one at a time
    )
    try:
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: Database) -> Iterator[None]:
    """Commit the block durably at its end, or roll everything back."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # after some errors SQLite has already rolled back
            db.execute("ROLLBACK")
        raise


def read_number(db: Database, pragma: str) -> int:
    """Return the integer value of a PRAGMA."""
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])
