"""Define the tables, migrate older versions, and reserve room for a full disk.

Versions. `MIGRATIONS` is the only definition of the tables. Migration N brings a database from
`user_version` N to N + 1, and `layout_of` computes what each version must look like. All the
migrations that a database needs run in one transaction, so a crash leaves the old version or the
newest one. A database of a newer version is left untouched.

Reserve. A person must be able to deny a project even on a full disk. So `fill_reserve` keeps free
pages in the database and a long journal beside it. Later writes use that room.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from contextlib import closing
from functools import cache
from itertools import chain
from pathlib import Path

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.files.private_files import (
    NO_ROOM,
    display_path,
    open_private_file,
    path_exists,
    sync,
    sync_path,
    unusable_error,
)
from rootsd.state.store.database import (
    Database,
    DiskFull,
    StoreDamaged,
    connect_memory,
    journal_of,
    read_number,
    transaction,
    translate_errors,
)

Migrations = tuple[tuple[str, ...], ...]

APPLICATION_ID = int.from_bytes(b"ROOT")
# Migration N takes a database from `user_version` N to N + 1. Never edit a migration that was
# released. A new verb or kind of subject also needs a new version, because older programs cannot
# read it; its migration may be empty.
MIGRATIONS: Migrations = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        "CREATE TABLE event("
        " seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, verb TEXT NOT NULL,"
        " kind TEXT NOT NULL, key BLOB NOT NULL, body TEXT,"
        " prev BLOB NOT NULL CHECK(length(prev) = 32),"
        " hash BLOB NOT NULL UNIQUE CHECK(length(hash) = 32)) STRICT",
        "CREATE TRIGGER event_no_update BEFORE UPDATE ON event"
        " BEGIN SELECT RAISE(ABORT, 'event is append-only'); END",
        "CREATE TRIGGER event_no_delete BEFORE DELETE ON event"
        " BEGIN SELECT RAISE(ABORT, 'event is append-only'); END",
        "CREATE TABLE record("
        " kind TEXT NOT NULL, key BLOB NOT NULL,"
        " body TEXT NOT NULL, seq INTEGER NOT NULL REFERENCES event(seq),"
        " PRIMARY KEY(kind, key)) STRICT, WITHOUT ROWID",
        "CREATE TABLE sighting("
        " path BLOB NOT NULL PRIMARY KEY, id TEXT NOT NULL, body TEXT NOT NULL,"
        " digest BLOB NOT NULL CHECK(length(digest) = 32)) STRICT, WITHOUT ROWID",
        # The binding to the database file and to the second anchor: `rootsd.state.store.anchors`.
        "CREATE TABLE binding("
        " key BLOB NOT NULL, inode BLOB, born INTEGER, handle BLOB,"
        " cause TEXT NOT NULL) STRICT",
    ),
)

# A thousand denials take 800 KiB. At least that much stays available when the disk is full. The
# journal must have room for the changes of one transaction.
MIN_RESERVE_BYTES = 1024 * 1024
RESERVE_BYTES = 1536 * 1024
JOURNAL_BYTES = 512 * 1024
_RESERVE_ROW = 4000  # one row on each page of 4096 bytes

# sqlite.org/fileformat2.html: the first 100 bytes of a database
_HEADER = struct.Struct(">16s44xI4xI28x")
_MAGIC = b"SQLite format 3\0"


class NewerStore(RootsdError):
    """A newer rootsd wrote the database. It was not touched."""

    code = ErrorCode.BAD_CONFIG


def refuse_newer(file: Path) -> None:
    """Raise NewerStore if this program does not know the version of `file`.

    Raises NotPrivate if `file` is not a file of ours. The header is read as bytes, because opening
    a database can already write to it.
    """
    if not path_exists(file):
        return
    try:
        with os.fdopen(open_private_file(file, os.O_RDONLY), "rb") as stream:
            header = stream.read(_HEADER.size)
    except OSError as error:
        raise unusable_error(file, error) from error
    if len(header) < _HEADER.size:
        return
    magic, version, application = _HEADER.unpack(header)
    if (magic, application) == (_MAGIC, APPLICATION_ID) and version > len(MIGRATIONS):
        raise NewerStore(
            f"{display_path(file)} is of version {version}, written by a newer rootsd;"
            f" this one knows versions up to {len(MIGRATIONS)}",
            "install the newer rootsd again, then: rootsd up",
        )


def migrate(db: Database, back_up: Callable[[], object]) -> None:
    """Bring `db` to the newest version in one transaction.

    Call `back_up` before it, unless `db` is new. An older program can read that backup. Raises
    StoreDamaged if the database is not ours.
    """
    version = read_number(db, "user_version")
    application = read_number(db, "application_id")
    if (application == APPLICATION_ID) != (version > 0) or application not in {0, APPLICATION_ID}:
        raise StoreDamaged("it is not a database of rootsd")
    db.execute("DROP TABLE IF EXISTS reserve")  # a crash in `fill_reserve` may leave it
    if version >= len(MIGRATIONS):
        return
    if version > 0:
        back_up()
    with transaction(db):
        for statement in chain.from_iterable(MIGRATIONS[version:]):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def layout(db: Database) -> frozenset[tuple[object, ...]]:
    """Return every table, index and trigger of `db`, with the SQL that created it."""
    return frozenset(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


@cache
def layout_of(version: int) -> frozenset[tuple[object, ...]]:
    """Return what `layout` returns for an undamaged database of `version`."""
    with closing(connect_memory()) as db:
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                db.execute(statement)
        return layout(db)


def fill_reserve(db: Database, file: Path) -> bool:
    """Make room in `file` and its journal, so that decisions can be stored on a full disk.

    Return whether both have enough room. If they already have, this takes no time. Raises
    StoreUnusable. It has no effect on a copy-on-write file system (`rootsd.state.store.nocow`).
    """
    # Begin with the journal. With room in it, everything that follows can be rolled back.
    if not _lengthen(journal_of(file)):
        return False
    try:
        with translate_errors(file):
            free = read_number(db, "freelist_count") * read_number(db, "page_size")
            if free < MIN_RESERVE_BYTES:
                _make_free_pages(db)
    except DiskFull:
        return False
    return True


def _lengthen(journal: Path) -> bool:
    """Append zeros to `journal`, which is not in use, and return whether it is long enough.

    The zeros are harmless: SQLite treats bytes after a transaction as the rest of an earlier one.
    """
    fd = open_private_file(journal)
    try:
        try:
            length = os.fstat(fd).st_size
            missing = JOURNAL_BYTES - length
            if missing > 0:
                written = os.pwrite(fd, bytes(missing), length)
                sync(fd)
                sync_path(journal.parent)
                return written == missing
        finally:
            os.close(fd)  # on some file systems this reports the error of an earlier write
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise unusable_error(journal, error) from error
        return False
    return True


def _make_free_pages(db: Database) -> None:
    fillers = ((bytes(_RESERVE_ROW),) for _ in range(RESERVE_BYTES // _RESERVE_ROW + 1))
    with transaction(db):
        db.execute("CREATE TABLE reserve(filler BLOB) STRICT")
        db.executemany("INSERT INTO reserve VALUES(?)", fillers)
    with transaction(db):
        db.execute("DROP TABLE reserve")
