"""Open the SQLite database, run transactions, and translate its errors.

Nothing else knows SQLite's module.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from rootsd.core.encoding import BadRecord
from rootsd.core.errors import Busy, RootsdError
from rootsd.core.history import BrokenChain
from rootsd.system.private_files import display_path, unusable_error

Database = sqlite3.Connection

OLDEST_SQLITE = (3, 37)  # STRICT tables
BUSY_SECONDS = 2.0
JOURNAL_SUFFIX = "-journal"
# The order matters: with the journal mode first, a journal of the switch can come back from the
# dead after a power cut and undo decisions that were acknowledged.
PRAGMAS = (
    "locking_mode=EXCLUSIVE",
    "synchronous=EXTRA",
    *(("fullfsync=1",) if sys.platform == "darwin" else ()),
    "journal_mode=PERSIST",
    "journal_size_limit=-1",  # the journal keeps its size: a full disk has room for the next
    "foreign_keys=1",
    "trusted_schema=0",
    "cell_size_check=1",
    "temp_store=MEMORY",  # a confined daemon may not make temporary files
)
# No decision depends on the history of sessions: it is never synced to the disk.
HISTORY_PRAGMAS = (
    "synchronous=OFF",
    "journal_mode=PERSIST",
    "trusted_schema=0",
    "cell_size_check=1",
    "temp_store=MEMORY",
    "cache_size=-256",  # KiB
)
READING_PRAGMAS = ("trusted_schema=0", "cell_size_check=1", "temp_store=MEMORY")
# Where the header has by which format the file may be written (sqlite.org/fileformat2.html, 1.3).
_WRITE_VERSION, _NEWEST_FORMAT = 18, b"\x02"
# What SQLite says when the system fails it, and not the database.
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
    """The database is not what was written; `rootsd.state.store.recovery` puts it right."""


# What a journal with something to roll back begins with (sqlite.org/fileformat2.html, section 3).
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


class StoreUnusable(RootsdError):
    """The system does not let the database be read or written; it is as whole as before."""


class DiskFull(StoreUnusable):
    """No room on the disk for what should be written; nothing was."""


def require_sqlite() -> None:
    """Raise StoreUnusable where this Python has an SQLite that is too old."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreUnusable(
            f"rootsd needs SQLite 3.37 or newer, this Python has {sqlite3.sqlite_version}",
            "install a newer Python, then: rootsd up",
        )


@contextmanager
def translate_errors(file: Path) -> Iterator[None]:
    """Turn what SQLite raises about `file`, and unreadable rows, into Busy, StoreUnusable,
    DiskFull or StoreDamaged."""
    try:
        yield
    except (BadRecord, BrokenChain, UnicodeDecodeError) as error:
        # The module raises the last for text that is none, even in SQLite's own reports.
        raise StoreDamaged(str(error)) from error
    except sqlite3.Error as error:
        # The low byte is the primary code, see sqlite.org/rescode.html. An error without a code
        # is the module's own: it could not make text of a value.
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
    """Open the existing database `file` for writing, for this process alone.

    What a crash left half done is rolled back. Raises StoreUnusable where it was not, and
    StoreDamaged where SQLite would not write it.
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
    """SQLite only reads what says that a newer version wrote it, and tells so with the first
    decision; one flipped bit says it. Before it is open: to close a second descriptor would drop
    SQLite's lock."""
    if not _is_of_newer_format(file):
        return
    with closing(_connect(file, "mode=rw", PRAGMAS)) as db:
        # Half a transaction may say it, too, until it is rolled back.
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if _is_of_newer_format(file):
        raise StoreDamaged("by its header a newer SQLite wrote it")


def _is_of_newer_format(file: Path) -> bool:
    try:
        with file.open("rb") as database:
            header = database.read(_WRITE_VERSION + 1)
    except OSError as error:
        raise unusable_error(file, error) from error
    return header[_WRITE_VERSION:] > _NEWEST_FORMAT


def _refuse_hot_journal(file: Path) -> None:
    """SQLite takes a journal that it cannot look at for none, and half a transaction for whole.

    One that it did look at and found to be garbage, as a power cut leaves it, is no journal.
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
    """Where SQLite keeps the journal of the database `file`."""
    return file.with_name(file.name + JOURNAL_SUFFIX)


def connect_frozen(file: Path) -> Database:
    """Open `file` for reading as it lies there: no lock, no journal, nothing is changed."""
    return _connect(file, "mode=ro&immutable=1", READING_PRAGMAS)


def connect_history(file: Path) -> Database:
    """Open the history of sessions, an existing `file`, for writing."""
    return _connect(file, "mode=rw", HISTORY_PRAGMAS)


def connect_memory() -> Database:
    """An empty database that is gone when it is closed."""
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
    """All of the block or nothing, durable at its end."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite has already rolled back by itself after some errors
            db.execute("ROLLBACK")
        raise


def read_number(db: Database, pragma: str) -> int:
    """The value of a PRAGMA that is a whole number."""
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])
