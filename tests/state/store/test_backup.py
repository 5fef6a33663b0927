"""Backups are complete, private, and few."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from rootsd.core.history import CHAIN_START, HistoryEvent, events_for
from rootsd.files.private_files import NotPrivate
from rootsd.state.store import backup
from rootsd.state.store.backup import (
    FOLDER_NAME,
    MAX_BACKUPS,
    begin_copy,
    due_in,
    finish_copy,
    list_backups,
    make_backup,
)
from rootsd.state.store.database import (
    Database,
    StoreDamaged,
    connect,
    connect_frozen,
    transaction,
)
from rootsd.state.store.rows import read_events, write_events
from rootsd.state.store.schema import migrate
from support.sample_decisions import NOON, after, approved, decide


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def db(folder: Path) -> Iterator[Database]:
    (folder / "decisions.db").touch()
    with closing(connect(folder / "decisions.db")) as opened:
        migrate(opened, back_up=lambda: None)
        yield opened


@pytest.fixture
def events(db: Database) -> list[HistoryEvent]:
    made = events_for([decide(approved(number)) for number in range(3)], NOON, CHAIN_START)
    with transaction(db):
        write_events(db, made)
    return made


def test_a_backup_holds_the_whole_history_is_private_and_replaces_half_of_one(
    db: Database, folder: Path, events: list[HistoryEvent]
) -> None:
    place = folder / FOLDER_NAME
    place.mkdir(mode=0o700)
    (place / backup.NEW_NAME).write_bytes(b"half")  # after a crash
    assert list_backups(folder) == []
    made = make_backup(db, folder, NOON)
    assert made.stat().st_mode & 0o777 == 0o600
    with closing(connect_frozen(made)) as copy:
        assert list(read_events(copy)) == events
    assert list_backups(folder) == [made]
    assert list(place.iterdir()) == [made]


def test_the_newest_backups_are_kept(db: Database, folder: Path) -> None:
    made = [make_backup(db, folder, after(number)) for number in range(MAX_BACKUPS + 2)]
    assert list_backups(folder) == made[:1:-1]
    assert made[0].parent.stat().st_mode & 0o777 == 0o700


def test_neither_an_invalid_copy_nor_one_with_another_end_is_kept(
    db: Database, folder: Path, events: list[HistoryEvent]
) -> None:
    begin_copy(db, folder)
    with pytest.raises(StoreDamaged, match="ends with another event"):
        finish_copy(folder, events[0].head, NOON)
    assert list_backups(folder) == []
    assert list((folder / FOLDER_NAME).iterdir()) == []
    made = make_backup(db, folder, NOON)
    db.execute("UPDATE record SET body = '{}'")
    with pytest.raises(StoreDamaged):
        make_backup(db, folder, after(1))
    assert list_backups(folder) == [made]
    assert list(made.parent.iterdir()) == [made]


def test_a_backup_is_due_after_a_day_and_after_the_clock_went_back(
    db: Database, folder: Path
) -> None:
    assert due_in(folder, NOON) == timedelta(0)
    made = make_backup(db, folder, NOON)
    os.utime(made, (NOON.timestamp(), NOON.timestamp()))
    assert due_in(folder, NOON + timedelta(hours=23)) == timedelta(hours=1)
    assert due_in(folder, NOON + timedelta(hours=24)) == timedelta(0)
    assert due_in(folder, NOON - timedelta(hours=1)) == timedelta(0)


def test_an_unusable_folder_for_backups_is_named(db: Database, folder: Path) -> None:
    (folder / FOLDER_NAME).write_bytes(b"in the way")
    with pytest.raises(NotPrivate, match=FOLDER_NAME):
        make_backup(db, folder, NOON)


def test_an_unreadable_folder_of_backups_does_not_count_as_empty(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", fail)
    with pytest.raises(NotPrivate, match="Permission denied"):
        list_backups(folder)
