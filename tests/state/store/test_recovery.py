"""Damage is found, and a rebuild saves the content of all files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core import history
from rootsd.core.history import CHAIN_START, ChainHead, HistoryEvent, events_for
from rootsd.state.store.database import (
    Database,
    StoreDamaged,
    connect,
    connect_frozen,
    translate_errors,
)
from rootsd.state.store.recovery import (
    chain_contains,
    check,
    damaged_files,
    file_timestamp,
    rebuild,
)
from rootsd.state.store.rows import read_events, read_observed
from support.sample_decisions import NOON, after, approved, decide, denied, forget, project
from support.stores import database_of

PAGE = 4096


def _events(count: int) -> list[HistoryEvent]:
    changes = [decide(approved(number)) for number in range(count)]
    return events_for([*changes, decide(denied(0)), forget(approved(1))], NOON, CHAIN_START)


def _edit(file: Path, statements: Callable[[Database], object]) -> None:
    with closing(connect(file)) as db:
        statements(db)


def _checked(file: Path) -> ChainHead:
    with translate_errors(file), closing(connect_frozen(file)) as db:
        return check(db).head


def _history(file: Path) -> list[HistoryEvent]:
    with closing(connect_frozen(file)) as db:
        return list(read_events(db))


def _break_event(file: Path, seq: int) -> None:
    """Change one event as no code of ours can: around the triggers."""

    def alter(db: Database) -> None:
        (text,) = db.execute(
            "SELECT sql FROM sqlite_schema WHERE name = 'event_no_update'"
        ).fetchone()
        db.execute("DROP TRIGGER event_no_update")
        db.execute("UPDATE event SET at = at + 1 WHERE seq = ?", (seq,))
        db.execute(text)

    _edit(file, alter)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "decisions.db"


def test_an_intact_database_gives_its_current_state(file: Path) -> None:
    events = _events(5)
    database_of(file, events)
    with closing(connect_frozen(file)) as db:
        state = check(db)
    assert state.head == events[-1].head
    assert {event.seq for event in state.latest.values()} == {3, 4, 5, 6}


def test_an_altered_event_is_found(file: Path) -> None:
    database_of(file, _events(5))
    _break_event(file, 3)
    with pytest.raises(StoreDamaged, match="event 3"):
        _checked(file)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DELETE FROM record WHERE key = (SELECT min(key) FROM record)", "records do not match"),
        ("UPDATE record SET body = replace(body, 'approved', 'denied')", "records do not match"),
        ("UPDATE record SET seq = 1", "records do not match"),
        ("UPDATE record SET seq = 99 WHERE seq = 3", "missing event"),
        ("DROP TRIGGER event_no_delete", "tables"),
    ],
)
def test_a_record_that_differs_from_the_history_and_a_lost_trigger_are_found(
    file: Path, statement: str, why: str
) -> None:
    database_of(file, _events(5))

    def alter(db: Database) -> None:
        db.execute("PRAGMA foreign_keys = 0")
        db.execute(statement)

    _edit(file, alter)
    with pytest.raises(StoreDamaged, match=why):
        _checked(file)


def test_an_unreadable_outcome_is_found_even_if_the_chain_is_valid(file: Path) -> None:
    events = _events(2)
    database_of(file, [*events, *_forged(events[-1].head)])
    with pytest.raises(StoreDamaged, match="ruling"):
        _checked(file)


def _forged(head: ChainHead) -> list[HistoryEvent]:
    """An event whose hash is right and whose body no decision makes."""
    (event,) = events_for([decide(approved(9))], NOON, head)
    event = replace(event, body='{"id":"r9","kind":"git"}')
    return [replace(event, hash=history._digest(event))]


def test_a_chain_contains_each_of_its_heads_and_no_other(file: Path) -> None:
    events = _events(3)
    database_of(file, events)
    with closing(connect_frozen(file)) as db:
        assert chain_contains(db, CHAIN_START)
        assert all(chain_contains(db, event.head) for event in events)
        assert not chain_contains(db, ChainHead(2, b"x" * 32))
        assert not chain_contains(db, ChainHead(events[-1].seq + 1, b"x" * 32))


def test_a_rebuild_keeps_the_chain_up_to_the_damage_and_the_damaged_file(file: Path) -> None:
    events = _events(9)
    database_of(file, events, sightings=4)
    _break_event(file, 5)
    broken = file.read_bytes()
    salvage = rebuild(file, [], NOON)
    assert salvage.head == events[3].head == _checked(file)
    assert _history(file) == events[:4]
    assert salvage.damaged == damaged_files(file)[0]
    assert salvage.damaged.read_bytes() == broken
    with closing(connect_frozen(file)) as db:
        assert {path for path, _, _ in read_observed(db)} == {
            project(number).path for number in range(4)
        }


def test_an_unreadable_page_does_not_hide_others(file: Path, tmp_path: Path) -> None:
    events = _events(400)
    database_of(file, events)
    backup = database_of(tmp_path / "backup.db", events[:200])
    content = bytearray(file.read_bytes())
    at = content.index(events[100].hash) // PAGE * PAGE  # a page of the table, not of an index
    content[at : at + PAGE] = bytes(PAGE)
    file.write_bytes(content)
    with pytest.raises(StoreDamaged):
        _checked(file)
    assert rebuild(file, [backup], NOON).head == events[-1].head
    assert _history(file) == events


def test_of_two_histories_the_longer_one_is_used(file: Path, tmp_path: Path) -> None:
    """A backup of another chain shares no event with the file, and adds none."""
    events = _events(4)
    other = events_for([decide(denied(number)) for number in range(9)], after(9), CHAIN_START)
    database_of(file, events)
    _break_event(file, 3)
    rebuild(file, [database_of(tmp_path / "other.db", other)], NOON)
    assert _history(file) == events[:2]


@pytest.mark.parametrize("content", [b"", b"not a database" * 999, bytes(PAGE)])
def test_a_file_that_is_not_a_database_is_replaced_by_its_backup(
    file: Path, tmp_path: Path, content: bytes
) -> None:
    events = _events(4)
    file.write_bytes(content)
    backup = database_of(tmp_path / "backup.db", events, sightings=2)
    assert rebuild(file, [backup], NOON).head == events[-1].head
    with closing(connect_frozen(file)) as db:
        assert len(list(read_observed(db))) == 2


def test_without_any_content_an_empty_database_is_created(file: Path) -> None:
    salvage = rebuild(file, [], NOON)
    assert (salvage.head, salvage.damaged) == (CHAIN_START, None)
    assert _checked(file) == CHAIN_START
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_partial_rebuild_after_a_crash_is_repeated(file: Path) -> None:
    events = _events(3)
    database_of(file, events)
    file.with_name(file.name + ".rebuilt").write_bytes(b"half")
    file.with_name(file.name + ".rebuilt-journal").write_bytes(b"half")
    rebuild(file, [], NOON)
    assert _history(file) == events
    assert {path.name for path in file.parent.iterdir()} == {
        "decisions.db",
        f"decisions.db.damaged-{file_timestamp(NOON)}",
        f"decisions.db.damaged-{file_timestamp(NOON)}-journal",
    }
