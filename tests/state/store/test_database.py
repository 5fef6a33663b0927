"""The decision database: its settings, transactions, and the meaning of its errors."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.core.errors import Busy, RootsdError
from rootsd.core.history import CHAIN_START, BrokenChain, HistoryEvent, events_for
from rootsd.core.record import BadRecord
from rootsd.state.store import database
from rootsd.state.store.database import (
    Database,
    DiskFull,
    StoreDamaged,
    StoreUnusable,
    connect,
    connect_frozen,
    read_number,
    require_sqlite,
    transaction,
    translate_errors,
)
from rootsd.state.store.rows import read_events, read_head, write_events, write_observed
from rootsd.state.store.schema import migrate
from support import unsynced
from support.sample_decisions import NOON, approved, decide, project


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "with space#and?marks.db"
    path.touch()
    return path


@pytest.fixture
def db(file: Path) -> Iterator[Database]:
    with closing(connect(file)) as opened:
        migrate(opened, back_up=lambda: None)
        yield opened


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PRAGMAS", unsynced.SYNCED_PRAGMAS)


@pytest.mark.usefixtures("synced")
def test_the_settings_that_protect_decisions_are_on(db: Database) -> None:
    assert db.execute("PRAGMA locking_mode").fetchone() == ("exclusive",)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("persist",)
    settings = ["synchronous", "foreign_keys", "trusted_schema", "cell_size_check", "temp_store"]
    assert [read_number(db, name) for name in settings] == [3, 1, 0, 1, 2]


def test_the_locks_and_the_syncs_are_set_before_the_journal() -> None:
    order = [pragma.split("=")[0] for pragma in database.PRAGMAS]
    assert order.index("locking_mode") < order.index("synchronous") < order.index("journal_mode")


def test_a_transaction_is_all_or_nothing(db: Database) -> None:
    events = events_for([decide(approved(1)), decide(approved(2))], NOON, CHAIN_START)
    with pytest.raises(sqlite3.IntegrityError), transaction(db):
        write_events(db, [*events, events[0]])
    assert read_head(db) == CHAIN_START
    assert not db.in_transaction


def test_an_interrupted_transaction_leaves_the_database_usable(db: Database) -> None:
    events = events_for([decide(approved(1))], NOON, CHAIN_START)

    def interrupted() -> Iterator[HistoryEvent]:
        yield from events
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), transaction(db):
        write_events(db, interrupted())
    with transaction(db):
        write_events(db, events)
    assert list(read_events(db)) == events


def test_a_second_program_gets_a_busy_error(
    db: Database, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    write_observed(db, b"/p", "r1", project(1).observed)
    with pytest.raises(Busy, match="another program has"), translate_errors(file):
        connect(file)


def test_reading_a_frozen_copy_changes_nothing_beside_it(db: Database, file: Path) -> None:
    events = events_for([decide(approved(1))], NOON, CHAIN_START)
    with transaction(db):
        write_events(db, events)
    before = sorted(file.parent.iterdir()), file.read_bytes()
    with closing(connect_frozen(file)) as frozen:
        assert list(read_events(frozen)) == events
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            frozen.execute("DELETE FROM sighting")
    assert (sorted(file.parent.iterdir()), file.read_bytes()) == before


def _sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("as SQLite says")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (_sqlite_error(sqlite3.SQLITE_FULL), DiskFull),
        (_sqlite_error(sqlite3.SQLITE_BUSY), Busy),
        (_sqlite_error(sqlite3.SQLITE_IOERR_FSYNC), StoreUnusable),
        (_sqlite_error(sqlite3.SQLITE_READONLY), StoreUnusable),
        (_sqlite_error(sqlite3.SQLITE_CANTOPEN), StoreUnusable),
        (_sqlite_error(sqlite3.SQLITE_CORRUPT), StoreDamaged),
        (_sqlite_error(sqlite3.SQLITE_NOTADB), StoreDamaged),
        (_sqlite_error(sqlite3.SQLITE_ERROR), StoreDamaged),
        (sqlite3.OperationalError("Could not decode to UTF-8 column"), StoreDamaged),
        (UnicodeDecodeError("utf-8", b"\xc5", 0, 1, "no text"), StoreDamaged),
        (BadRecord("id is missing"), StoreDamaged),
        (BrokenChain("event 2"), StoreDamaged),
        (OSError(errno.ENOENT, "gone"), OSError),
    ],
)
def test_each_failure_of_sqlite_has_its_error(
    raised: Exception, expected: type[Exception], file: Path
) -> None:
    with pytest.raises(expected) as caught, translate_errors(file):
        raise raised
    assert (caught.value is raised) is (expected is OSError)
    if isinstance(caught.value, RootsdError):
        assert str(file) in caught.value.message
        assert caught.value.remedy


def test_an_sqlite_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    require_sqlite()
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 9))
    with pytest.raises(StoreUnusable, match=r"SQLite 3\.37") as caught:
        require_sqlite()
    assert caught.value.remedy
