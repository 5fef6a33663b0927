"""Rows of the decision database, its settings, and what its errors mean."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rootsd.core.errors import Busy, RootsdError
from rootsd.core.fields import BadRecord
from rootsd.core.history import START, BrokenChain, Event, events_for
from rootsd.core.model import Verdict
from rootsd.host.storage import database
from rootsd.host.storage.database import (
    Database,
    DiskFull,
    StoreDamaged,
    StoreUnusable,
    connect,
    connect_frozen,
    drop_sighting,
    explained,
    read_events,
    read_fold,
    read_head,
    read_next_rule,
    read_number,
    read_records,
    read_sightings,
    require_sqlite,
    transaction,
    write_events,
    write_sighting,
)
from rootsd.host.storage.migrate import migrate
from support.decisions import (
    NOON,
    add,
    approved,
    decide,
    denied,
    forget,
    project,
    remove,
    rule,
)


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


def _store(db: Database, events: list[Event]) -> list[Event]:
    with transaction(db):
        write_events(db, events)
    return events


def test_what_protects_decisions_is_switched_on(db: Database) -> None:
    assert db.execute("PRAGMA locking_mode").fetchone() == ("exclusive",)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("persist",)
    settings = ["synchronous", "foreign_keys", "trusted_schema", "cell_size_check", "temp_store"]
    assert [read_number(db, name) for name in settings] == [3, 1, 0, 1, 2]


def test_the_locks_and_the_syncs_are_set_before_the_journal() -> None:
    order = [pragma.split("=")[0] for pragma in database.PRAGMAS]
    assert order.index("locking_mode") < order.index("synchronous") < order.index("journal_mode")


def test_events_come_back_as_they_were_written(db: Database) -> None:
    new = rule(7, Verdict.DENIED)
    changes = [decide(approved(1)), decide(denied(2)), add(new), forget(approved(1))]
    events = _store(db, events_for(changes, NOON, START))
    assert list(read_events(db)) == events
    assert list(read_events(db, after=1, limit=2)) == events[1:3]
    assert read_head(db) == events[-1].head
    assert list(read_records(db)) == [events[1], events[2]]
    assert read_fold(db) == {
        ("project", denied(2).path): (2, events[1].body),
        ("rule", b"7"): (3, events[2].body),
    }


def test_a_new_chain_starts_at_the_start(db: Database) -> None:
    assert read_head(db) == START
    assert list(read_events(db)) == []


def test_the_number_of_a_removed_rule_is_not_used_again(db: Database) -> None:
    assert read_next_rule(db) == 1
    new = rule(10, Verdict.DENIED)
    _store(db, events_for([add(rule(9, Verdict.DENIED)), add(new), remove(new)], NOON, START))
    assert read_next_rule(db) == 11


@pytest.mark.parametrize("statement", ["UPDATE event SET at = 1", "DELETE FROM event"])
def test_events_can_be_neither_changed_nor_deleted(db: Database, statement: str) -> None:
    _store(db, events_for([decide(approved(1))], NOON, START))
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement)


def test_a_transaction_is_all_or_nothing(db: Database) -> None:
    events = events_for([decide(approved(1)), decide(approved(2))], NOON, START)
    with pytest.raises(sqlite3.IntegrityError), transaction(db):
        write_events(db, [*events, events[0]])
    assert read_head(db) == START
    assert not db.in_transaction


def test_an_interrupted_transaction_leaves_the_database_usable(db: Database) -> None:
    events = events_for([decide(approved(1))], NOON, START)

    def interrupted() -> Iterator[Event]:
        yield from events
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), transaction(db):
        write_events(db, interrupted())
    assert _store(db, events) == list(read_events(db))


def test_sightings_are_written_replaced_and_dropped(db: Database) -> None:
    first, second = project(1), project(2)
    for one in (first, second):
        write_sighting(db, one.path, one.id, one.sighting)
    seen_again = replace(first.sighting, identity=None)
    write_sighting(db, first.path, "r1b", seen_again)
    drop_sighting(db, second.path)
    assert list(read_sightings(db)) == [(first.path, "r1b", seen_again)]


@pytest.mark.parametrize(
    "damage",
    [
        "id = 'other'",
        "body = replace(body, 'present', 'missing')",
        "digest = zeroblob(32)",
        "body = CAST(x'ff' || CAST(body AS BLOB) AS TEXT)",
    ],
)
def test_a_damaged_sighting_is_left_out_and_the_others_stay(db: Database, damage: str) -> None:
    for one in (project(1), project(2)):
        write_sighting(db, one.path, one.id, one.sighting)
    db.execute(f"UPDATE sighting SET {damage} WHERE path = ?", (project(1).path,))  # noqa: S608
    assert list(read_sightings(db)) == [(project(2).path, "r2", project(2).sighting)]


@pytest.mark.parametrize(
    "damage", ["verb = 'celebrated'", "actor = x'00'", "body = 7.5", "key = 'text'"]
)
def test_a_row_of_wrong_types_or_words_is_refused(file: Path, damage: str) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE event(seq, at, actor, verb, kind, key, body, prev, hash)")
        db.execute("CREATE TABLE record(kind, key, body, seq, PRIMARY KEY(kind, key))")
        write_events(db, events_for([decide(approved(1))], NOON, START))
        assert len(list(read_events(db))) == 1
        db.execute(f"UPDATE event SET {damage}")  # noqa: S608
        with pytest.raises(BadRecord, match="event 1"):
            list(read_events(db))


def test_a_second_program_is_told_that_the_database_is_in_use(
    db: Database, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    write_sighting(db, b"/p", "r1", project(1).sighting)
    with pytest.raises(Busy, match="another program has"), explained(file):
        connect(file)


def test_reading_a_frozen_copy_changes_nothing_beside_it(db: Database, file: Path) -> None:
    events = _store(db, events_for([decide(approved(1))], NOON, START))
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
    ],
)
def test_each_failure_is_told_as_what_it_is(
    raised: Exception, expected: type[Exception], file: Path
) -> None:
    with pytest.raises(expected) as caught, explained(file):
        raise raised
    if isinstance(caught.value, RootsdError):
        assert str(file) in caught.value.message
        assert caught.value.remedy


def test_another_error_is_not_explained_away(file: Path) -> None:
    with pytest.raises(OSError, match="gone"), explained(file):
        raise OSError(errno.ENOENT, "gone")


def test_an_sqlite_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    require_sqlite()
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 9))
    with pytest.raises(StoreUnusable, match=r"SQLite 3\.37") as caught:
        require_sqlite()
    assert caught.value.remedy
