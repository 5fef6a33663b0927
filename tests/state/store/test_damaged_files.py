"""Some damaged files are kept, and each one with content that exists nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.core.history import CHAIN_START, HistoryEvent, events_for
from rootsd.state.store.database import Database, connect, journal_of, transaction
from rootsd.state.store.recovery import (
    MAX_DAMAGED_FILES,
    damaged_files,
    prune_damaged_files,
    set_aside,
)
from rootsd.state.store.rows import write_events
from rootsd.state.store.schema import migrate
from support.sample_decisions import NOON, after, approved, decide, denied

PAGE = 4096
EVENTS = events_for([decide(approved(number)) for number in range(200)], NOON, CHAIN_START)


def _make(file: Path, events: Sequence[HistoryEvent] = EVENTS) -> Path:
    file.touch()
    with closing(connect(file)) as db:
        migrate(db, back_up=lambda: None)
        with transaction(db):
            write_events(db, events)
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "decisions.db"


@pytest.fixture
def db(file: Path) -> Iterator[Database]:
    """The database in use; there are more leftovers of it than are kept."""
    for number in range(MAX_DAMAGED_FILES + 2):
        set_aside(_make(file, EVENTS[: 10 * number]), after(number))
    with closing(connect(_make(file))) as opened:
        yield opened


def test_a_file_is_renamed_with_its_journal(file: Path) -> None:
    aside = set()
    for content in (b"one", b"two"):
        file.write_bytes(content)
        journal_of(file).write_bytes(content)
        damaged = set_aside(file, NOON)
        assert damaged.read_bytes() == journal_of(damaged).read_bytes() == content
        aside.add(damaged)
    assert set(damaged_files(file)) == aside
    assert len(aside) == 2


def test_the_oldest_damaged_files_are_removed_with_their_journals(
    file: Path, db: Database
) -> None:
    before = damaged_files(file)
    journal_of(before[-1]).write_bytes(b"old")
    prune_damaged_files(file, db)
    assert damaged_files(file) == before[:MAX_DAMAGED_FILES]
    assert not journal_of(before[-1]).exists()


@pytest.mark.parametrize("hides", ["nothing", "a page"])
def test_a_damaged_file_with_unique_content_is_kept(file: Path, db: Database, hides: str) -> None:
    *_, old, oldest = damaged_files(file)
    others = events_for([decide(denied(number)) for number in range(200)], NOON, CHAIN_START)
    old.unlink()
    content = bytearray(_make(old, others).read_bytes())
    if hides == "a page":
        at = content.index(others[0].hash) // PAGE * PAGE
        content[at : at + PAGE] = bytes(PAGE)
        old.write_bytes(content)
    prune_damaged_files(file, db)
    assert old in damaged_files(file)
    assert oldest not in damaged_files(file)


def test_a_damaged_file_without_readable_content_is_removed(file: Path, db: Database) -> None:
    oldest = damaged_files(file)[-1]
    oldest.write_bytes(b"no database" * 999)
    prune_damaged_files(file, db)
    assert oldest not in damaged_files(file)
