"""Open, fill, and damage a decision store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from unittest.mock import patch

from rootsd.core.changes import AuditRecord, Change
from rootsd.core.history import HistoryEvent
from rootsd.core.model import Project, Verdict
from rootsd.state.store import schema
from rootsd.state.store.database import connect, transaction
from rootsd.state.store.opening import DATABASE_NAME
from rootsd.state.store.rows import write_events, write_observed
from rootsd.state.store.store import Store, StoredState
from support.sample_decisions import (
    NOON,
    add,
    after,
    approved,
    decide,
    denied,
    granted,
    project,
    rule,
    see,
)

OPENED_AT = after(3600)
LATER_MIGRATIONS = (
    *schema.MIGRATIONS,
    ("ALTER TABLE sighting ADD COLUMN origin TEXT", "CREATE TABLE extra(a)"),
)
SMALL_RESERVE = (32 * 1024, 16 * 1024, 24 * 1024)
EVERYTHING = (
    decide(approved(1)),
    decide(denied(2)),
    decide(granted(3)),
    see(project(4)),
    add(rule(1, Verdict.APPROVED)),
    add(rule(2, Verdict.DENIED)),
)


def outside(folder: Path) -> Path:
    """Return the folder of the second anchor for the state folder `folder`."""
    return folder.with_name("data")


@contextmanager
def opened(folder: Path) -> Iterator[Store]:
    """Yield the store in `folder`, opened an hour after noon."""
    with closing(Store.open(folder, outside(folder), lambda: OPENED_AT)) as store:
        yield store


@contextmanager
def small_reserve() -> Iterator[None]:
    """Give stores a reserve during the block that is soon used up and refilled."""
    sizes = schema.RESERVE_BYTES, schema.MIN_RESERVE_BYTES, schema.JOURNAL_BYTES
    schema.RESERVE_BYTES, schema.MIN_RESERVE_BYTES, schema.JOURNAL_BYTES = SMALL_RESERVE
    try:
        yield
    finally:
        schema.RESERVE_BYTES, schema.MIN_RESERVE_BYTES, schema.JOURNAL_BYTES = sizes


def database_of(file: Path, events: Sequence[HistoryEvent], *, sightings: int = 0) -> Path:
    """Create a database without the store around it, with a history and `seen` projects."""
    file.touch()
    with closing(connect(file)) as db:
        schema.migrate(db, back_up=lambda: None)
        with transaction(db):
            write_events(db, events)
            for one in map(project, range(sightings)):
                write_observed(db, one.path, one.id, one.observed)
    return file


def make_unbound(folder: Path, changes: Sequence[Change | AuditRecord]) -> None:
    """Make the state folder of a store whose second anchor could never be written."""
    outside(folder).parent.mkdir(parents=True, exist_ok=True)
    outside(folder).write_bytes(b"in the way")
    append(folder, *changes)
    outside(folder).unlink()


@contextmanager
def later_version() -> Iterator[int]:
    """Let the stores of the block be of a version after the newest one, and yield its number."""
    with patch.object(schema, "MIGRATIONS", LATER_MIGRATIONS):
        yield len(LATER_MIGRATIONS)


def append(folder: Path, *changes: Change | AuditRecord) -> int | None:
    """Open, append at noon, and close."""
    with opened(folder) as store:
        return store.append(changes, NOON)


def back_up(store: Store, at: datetime) -> Path:
    """Make a complete backup as the daemon does."""
    head = store.begin_backup()
    assert head is not None
    return store.finish_backup(head, at)


def load(folder: Path) -> StoredState:
    """Open, load, and close."""
    with opened(folder) as store:
        return store.load()


def by_path(loaded: StoredState) -> dict[bytes, Project]:
    """Return the loaded projects, by path."""
    return {one.path: one for one in loaded.projects}


def is_approved(one: Project) -> bool:
    """Return whether anything would publish the project."""
    decision = one.ruling.decision
    return bool(one.ruling.grants) or bool(decision and decision.verdict is Verdict.APPROVED)


def edit(folder: Path, *statements: str) -> None:
    """Change the database as no code of rootsd does."""
    with closing(sqlite3.connect(folder / DATABASE_NAME)) as db, db:
        for statement in statements:
            db.execute(statement)


def lose_event(folder: Path, seq: int) -> None:
    """Remove one event from the history, bypassing the trigger that forbids it."""
    trigger = "CREATE TRIGGER event_no_delete BEFORE DELETE ON event"
    body = " BEGIN SELECT RAISE(ABORT, 'event is append-only'); END"
    delete = f"DELETE FROM event WHERE seq = {seq:d}"  # noqa: S608
    edit(folder, "DROP TRIGGER event_no_delete", delete, trigger + body)
