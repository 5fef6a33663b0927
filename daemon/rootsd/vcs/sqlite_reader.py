"""Query the SQLite database of another program in a copy in memory.

Subversion and Fossil store their locks in such databases. rootsd reads the file itself, and SQLite
gets only the copy. So SQLite takes no lock, replays no journal, and reads no other files. Views,
triggers, and long computations are refused. Sources: sqlite.org/fileformat2.html,
sqlite3_deserialize.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from rootsd.disk.reader import read_small, stat_no_follow

IMAGE_CAP = 32 << 20
_MAX_VALUE_BYTES = 1 << 20
_STEPS_PER_CALL = 100_000
_MAX_CALLS = 200

SqliteRow = tuple[object, ...]


def has_hot_journal(file: bytes) -> bool:
    """Return whether a transaction in the database is running or was interrupted."""
    try:
        return stat_no_follow(file + b"-journal").st_size > 0
    except OSError:
        return False


def query_copy(file: bytes, tables: Sequence[str], query: str) -> list[SqliteRow] | None:
    """Return the rows of `query`, or None if they are unknown.

    `tables` are the tables that the query uses. The rows are unknown if there is no database, if
    it is too large, if it lacks one of the tables, or if a program wrote to it during the read.
    """
    image = read_small(file, IMAGE_CAP) or b""
    if not 0 < len(image) < IMAGE_CAP:
        return None
    calls = 0

    def is_too_long() -> bool:
        nonlocal calls
        calls += 1
        return calls > _MAX_CALLS

    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(image)
            database.execute("PRAGMA trusted_schema=0")
            database.execute("PRAGMA cell_size_check=1")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            database.set_progress_handler(is_too_long, _STEPS_PER_CALL)
            schema = "SELECT lower(name) FROM sqlite_schema WHERE type = 'table'"
            real = {str(row[0]) for row in database.execute(schema).fetchmany(1_000)}
            if not real.issuperset(tables):
                return None
            return database.execute(query).fetchall()
        except sqlite3.Error:
            return None
