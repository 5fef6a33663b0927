"""Rows of the decision database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.history import CHAIN_START, HistoryEvent, events_for
from rootsd.core.model import Verdict
from rootsd.core.record import BadRecord
from rootsd.state.store.database import Database, connect, transaction
from rootsd.state.store.rows import (
    drop_observed,
    read_events,
    read_fold,
    read_head,
    read_next_rule,
    read_observed,
    read_records,
    write_events,
    write_observed,
)
from rootsd.state.store.schema import migrate
from support.sample_decisions import (
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
def db(tmp_path: Path) -> Iterator[Database]:
    file = tmp_path / "decisions.db"
    file.touch()
    with closing(connect(file)) as opened:
        migrate(opened, back_up=lambda: None)
        yield opened


def _store(db: Database, events: list[HistoryEvent]) -> list[HistoryEvent]:
    with transaction(db):
        write_events(db, events)
    return events


def test_events_are_read_back(db: Database) -> None:
    new = rule(7, Verdict.DENIED)
    changes = [decide(approved(1)), decide(denied(2)), add(new), forget(approved(1))]
    events = _store(db, events_for(changes, NOON, CHAIN_START))
    assert list(read_events(db)) == events
    assert list(read_events(db, after=1, limit=2)) == events[1:3]
    assert read_head(db) == events[-1].head
    assert list(read_records(db)) == [events[1], events[2]]
    assert read_fold(db) == {
        ("project", denied(2).path): (2, events[1].body),
        ("rule", b"7"): (3, events[2].body),
    }


def test_a_new_chain_starts_at_the_start(db: Database) -> None:
    assert read_head(db) == CHAIN_START
    assert list(read_events(db)) == []


def test_the_number_of_a_removed_rule_is_not_used_again(db: Database) -> None:
    assert read_next_rule(db) == 1
    new = rule(10, Verdict.DENIED)
    _store(
        db, events_for([add(rule(9, Verdict.DENIED)), add(new), remove(new)], NOON, CHAIN_START)
    )
    assert read_next_rule(db) == 11


@pytest.mark.parametrize("statement", ["UPDATE event SET at = 1", "DELETE FROM event"])
def test_events_can_be_neither_changed_nor_deleted(db: Database, statement: str) -> None:
    _store(db, events_for([decide(approved(1))], NOON, CHAIN_START))
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement)


def test_sightings_are_written_replaced_and_dropped(db: Database) -> None:
    first, second = project(1), project(2)
    for one in (first, second):
        write_observed(db, one.path, one.id, one.observed)
    seen_again = replace(first.observed, identity=None)
    write_observed(db, first.path, "r1b", seen_again)
    drop_observed(db, second.path)
    assert list(read_observed(db)) == [(first.path, "r1b", seen_again)]


@pytest.mark.parametrize(
    "damage",
    [
        "id = 'other'",
        "body = replace(body, 'present', 'missing')",
        "digest = zeroblob(32)",
        "body = CAST(x'ff' || CAST(body AS BLOB) AS TEXT)",
    ],
)
def test_a_damaged_observation_is_skipped(db: Database, damage: str) -> None:
    for one in (project(1), project(2)):
        write_observed(db, one.path, one.id, one.observed)
    db.execute(f"UPDATE sighting SET {damage} WHERE path = ?", (project(1).path,))  # noqa: S608
    assert list(read_observed(db)) == [(project(2).path, "r2", project(2).observed)]


@pytest.mark.parametrize(
    "damage", ["verb = 'celebrated'", "actor = x'00'", "body = 7.5", "key = 'text'"]
)
def test_a_row_with_wrong_types_or_values_is_refused(damage: str) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE event(seq, at, actor, verb, kind, key, body, prev, hash)")
        db.execute("CREATE TABLE record(kind, key, body, seq, PRIMARY KEY(kind, key))")
        write_events(db, events_for([decide(approved(1))], NOON, CHAIN_START))
        assert len(list(read_events(db))) == 1
        db.execute(f"UPDATE event SET {damage}")  # noqa: S608
        with pytest.raises(BadRecord, match="event 1"):
            list(read_events(db))
