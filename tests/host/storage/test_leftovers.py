"""Of the damaged files a few are kept, and each one that holds what nothing else does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.core.history import START, Event, events_for
from rootsd.host.storage.database import Database, connect, journal_of, transaction
from rootsd.host.storage.leftovers import KEPT, leftovers, prune, put_aside
from rootsd.host.storage.migrate import migrate
from rootsd.host.storage.rows import write_events
from support.decisions import NOON, after, approved, decide, denied

PAGE = 4096
EVENTS = events_for([decide(approved(number)) for number in range(200)], NOON, START)


def _make(file: Path, events: Sequence[Event] = EVENTS) -> Path:
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
    for number in range(KEPT + 2):
        put_aside(_make(file, EVENTS[: 10 * number]), after(number))
    with closing(connect(_make(file))) as opened:
        yield opened


def test_a_file_goes_aside_with_its_journal_and_under_a_new_name(file: Path) -> None:
    aside = set()
    for content in (b"one", b"two"):
        file.write_bytes(content)
        journal_of(file).write_bytes(content)
        damaged = put_aside(file, NOON)
        assert damaged.read_bytes() == journal_of(damaged).read_bytes() == content
        aside.add(damaged)
    assert set(leftovers(file)) == aside
    assert len(aside) == 2


def test_the_oldest_leftovers_go_with_their_journals(file: Path, db: Database) -> None:
    before = leftovers(file)
    journal_of(before[-1]).write_bytes(b"old")
    prune(file, db)
    assert leftovers(file) == before[:KEPT]
    assert not journal_of(before[-1]).exists()


@pytest.mark.parametrize("hides", ["nothing", "a page"])
def test_a_leftover_that_holds_what_nothing_else_does_stays(
    file: Path, db: Database, hides: str
) -> None:
    *_, old, oldest = leftovers(file)
    others = events_for([decide(denied(number)) for number in range(200)], NOON, START)
    old.unlink()
    content = bytearray(_make(old, others).read_bytes())
    if hides == "a page":
        at = content.index(others[0].hash) // PAGE * PAGE
        content[at : at + PAGE] = bytes(PAGE)
        old.write_bytes(content)
    prune(file, db)
    assert old in leftovers(file)
    assert oldest not in leftovers(file)


def test_a_leftover_that_nothing_can_be_read_from_goes(file: Path, db: Database) -> None:
    oldest = leftovers(file)[-1]
    oldest.write_bytes(b"no database" * 999)
    prune(file, db)
    assert oldest not in leftovers(file)
