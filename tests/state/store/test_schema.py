"""Versions of the database layout, and the reserve for a full disk."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.core.errors import ErrorCode
from rootsd.core.history import CHAIN_START, events_for
from rootsd.files.private_files import NotPrivate
from rootsd.state.store import schema
from rootsd.state.store.database import (
    Database,
    DiskFull,
    StoreDamaged,
    connect,
    journal_of,
    read_number,
    transaction,
)
from rootsd.state.store.rows import read_events, write_events
from rootsd.state.store.schema import (
    APPLICATION_ID,
    JOURNAL_BYTES,
    MIGRATIONS,
    MIN_RESERVE_BYTES,
    RESERVE_BYTES,
    NewerStore,
    fill_reserve,
    layout,
    layout_of,
    migrate,
    refuse_newer,
)
from support.sample_decisions import NOON, approved, decide
from support.stores import later_version

NEWEST = len(MIGRATIONS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "decisions.db"
    path.touch()
    return path


@pytest.fixture
def db(file: Path) -> Iterator[Database]:
    with closing(connect(file)) as opened:
        yield opened


def _never() -> None:
    pytest.fail("there is nothing to back up")


def test_an_empty_file_becomes_a_database_of_the_newest_version(db: Database) -> None:
    migrate(db, _never)
    assert read_number(db, "user_version") == len(MIGRATIONS)
    assert read_number(db, "application_id") == APPLICATION_ID
    assert layout(db) == layout_of(len(MIGRATIONS))
    migrate(db, _never)


def test_every_table_checks_its_types(db: Database) -> None:
    migrate(db, _never)
    tables = db.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'")
    strict = dict(tables.fetchall())
    assert {name for name in strict if strict[name]} == {"binding", "event", "record", "sighting"}


def test_a_migration_that_fails_leaves_the_version_before_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(db, _never)
    broken = (*MIGRATIONS, ("CREATE TABLE extra(a)", "CREATE TABLE event(a)"))
    monkeypatch.setattr(schema, "MIGRATIONS", broken)
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate(db, lambda: None)
    assert read_number(db, "user_version") == NEWEST
    assert layout(db) == layout_of(NEWEST)


def test_a_failed_backup_stops_the_migration(db: Database) -> None:
    migrate(db, _never)

    def fail() -> None:
        raise DiskFull("no room")

    with later_version(), pytest.raises(DiskFull):
        migrate(db, fail)
    assert read_number(db, "user_version") == NEWEST


def test_a_newer_version_is_refused_unchanged(db: Database, file: Path) -> None:
    with later_version() as later:
        migrate(db, _never)
    db.close()
    before = file.read_bytes(), file.stat().st_mtime_ns
    with pytest.raises(NewerStore, match=f"version {later}, written by a newer rootsd") as caught:
        refuse_newer(file)
    assert caught.value.code is ErrorCode.BAD_CONFIG
    assert caught.value.remedy
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    with later_version():
        refuse_newer(file)


def test_a_missing_file_or_another_file_is_not_newer(tmp_path: Path) -> None:
    refuse_newer(tmp_path / "none")
    os.mkfifo(tmp_path / "fifo", 0o600)
    with pytest.raises(NotPrivate, match="not a file of yours"):  # and is not waited for
        refuse_newer(tmp_path / "fifo")
    for content in (b"", b"short", b"\xff" * 4096):
        (tmp_path / "file").write_bytes(content)
        refuse_newer(tmp_path / "file")


@pytest.mark.parametrize(
    "foreign",
    [
        "PRAGMA user_version = 3",
        f"PRAGMA application_id = {APPLICATION_ID}",
        "PRAGMA application_id = 7",
    ],
)
def test_the_database_of_another_program_is_not_migrated(db: Database, foreign: str) -> None:
    db.execute(foreign)
    with pytest.raises(StoreDamaged, match="not a database of rootsd"):
        migrate(db, _never)


def test_the_reserve_is_free_pages_and_a_long_journal(db: Database, file: Path) -> None:
    migrate(db, _never)
    assert fill_reserve(db, file)
    free = read_number(db, "freelist_count") * read_number(db, "page_size")
    assert free >= RESERVE_BYTES
    journal = journal_of(file)
    assert journal.stat().st_size >= JOURNAL_BYTES
    sizes = file.stat().st_size, journal.stat().st_size
    assert fill_reserve(db, file)
    assert (file.stat().st_size, journal.stat().st_size) == sizes
    assert layout(db) == layout_of(NEWEST)
    db.close()
    journal.unlink()
    with closing(connect(file)) as again:
        assert fill_reserve(again, file)
    assert journal.stat().st_size >= JOURNAL_BYTES


def test_decisions_use_the_reserve_before_the_file_grows(db: Database, file: Path) -> None:
    migrate(db, _never)
    fill_reserve(db, file)
    journal = file.with_name(file.name + "-journal")
    sizes = file.stat().st_size, journal.stat().st_size
    events = events_for([decide(approved(number)) for number in range(200)], NOON, CHAIN_START)
    for first in range(0, 200, 10):
        with transaction(db):
            write_events(db, events[first : first + 10])
    assert (file.stat().st_size, journal.stat().st_size) == sizes


def test_a_used_reserve_is_refilled(db: Database, file: Path) -> None:
    migrate(db, _never)
    fill_reserve(db, file)
    events = events_for([decide(approved(number)) for number in range(2_000)], NOON, CHAIN_START)
    with transaction(db):
        write_events(db, events)
    assert read_number(db, "freelist_count") * 4096 < MIN_RESERVE_BYTES
    assert fill_reserve(db, file)
    assert read_number(db, "freelist_count") * 4096 >= RESERVE_BYTES


def test_no_room_for_the_reserve_is_not_an_error(db: Database, file: Path) -> None:
    migrate(db, _never)
    db.execute(f"PRAGMA max_page_count = {read_number(db, 'page_count') + 9}")
    assert not fill_reserve(db, file)
    assert layout(db) == layout_of(NEWEST)
    with transaction(db):
        write_events(db, events_for([decide(approved(1))], NOON, CHAIN_START))


def test_a_crash_while_filling_the_reserve_leaves_nothing_behind(
    db: Database, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(db, _never)
    begun: list[str] = []

    def stop_at_second(db: Database) -> object:
        begun.append("one")
        if len(begun) > 1:
            raise KeyboardInterrupt
        return transaction(db)

    monkeypatch.setattr(schema, "transaction", stop_at_second)
    with pytest.raises(KeyboardInterrupt):
        fill_reserve(db, file)
    monkeypatch.undo()
    assert layout(db) != layout_of(NEWEST)
    migrate(db, _never)
    assert layout(db) == layout_of(NEWEST)


def test_no_room_for_the_journal_is_not_an_error_and_takes_no_free_pages(
    db: Database, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    migrate(db, _never)
    free = read_number(db, "freelist_count")
    monkeypatch.setattr(os, "pwrite", fail)
    assert not fill_reserve(db, file)
    assert read_number(db, "freelist_count") == free


def test_a_journal_followed_by_zeros_still_rolls_back(db: Database, file: Path) -> None:
    migrate(db, _never)
    fill_reserve(db, file)
    events = events_for([decide(approved(number)) for number in range(300)], NOON, CHAIN_START)
    db.execute("PRAGMA cache_size = 5")  # what does not fit goes to the disk before the end
    db.execute("BEGIN")
    write_events(db, events)
    db.execute("ROLLBACK")
    assert list(read_events(db)) == []
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
