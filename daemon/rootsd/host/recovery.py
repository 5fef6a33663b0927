"""Is the decision database whole, and what can be saved where it is not.

The chain of events is the truth. It is rebuilt, event by event, from whatever still holds them:
the damaged file first, then the backups. The damaged file is kept beside the new one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rootsd.core.fields import BadRecord
from rootsd.core.history import (
    START,
    BrokenChain,
    Event,
    Fold,
    Head,
    fold,
    verified,
)
from rootsd.core.model import Sighting
from rootsd.host.database import (
    Database,
    StoreDamaged,
    StoreUnusable,
    connect,
    connect_frozen,
    explained,
    read_events,
    read_fold,
    read_number,
    read_sightings,
    transaction,
    write_events,
    write_sighting,
)
from rootsd.host.migrate import APPLICATION_ID, layout, layout_of, migrate
from rootsd.host.private import open_private_file, sync_path, unusable

REBUILT_SUFFIX = ".rebuilt"
DAMAGED_MARK = ".damaged-"
JOURNAL_SUFFIX = "-journal"

Sources = dict[Path, Database]
_UNREADABLE = (StoreDamaged, StoreUnusable)


@dataclass(frozen=True, slots=True)
class Salvage:
    """What a rebuild saved: where the chain ends now, and where the damaged file lies, or None
    where there was none any more."""

    head: Head
    damaged: Path | None


def check(db: Database) -> Fold:
    """What the history of `db` comes to, after every part of it was verified.

    Pages, references, layout, the chain, and that `record` is its fold. Raises StoreDamaged; what
    SQLite raises is left to `explained`.
    """
    if read_number(db, "application_id") != APPLICATION_ID:
        raise StoreDamaged("it is not a database of rootsd")
    pages = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)")]
    if pages != ["ok"]:
        raise StoreDamaged("; ".join(pages))
    if db.execute("PRAGMA foreign_key_check").fetchone():
        raise StoreDamaged("a record names an event that is not there")
    if layout(db) != layout_of(read_number(db, "user_version")):
        raise StoreDamaged("its tables are not those of its version")
    try:
        state = fold(verified(read_events(db)))
        standing: dict[tuple[str, bytes], tuple[int, str | None]] = {}
        for subject, event in state.standing.items():
            event.outcome()
            standing[subject.kind.value, subject.key] = (event.seq, event.body)
        if read_fold(db) != standing:
            raise StoreDamaged("the records are not what the history comes to")
    except (BadRecord, BrokenChain) as error:
        raise StoreDamaged(str(error)) from error
    return state


def contains(db: Database, head: Head) -> bool:
    """Whether the chain of `db` passes through `head`."""
    if head == START:
        return True
    row = db.execute("SELECT hash FROM event WHERE seq = ?", (head.seq,)).fetchone()
    return bool(row) and row[0] == head.hash


def leftovers(file: Path) -> list[Path]:
    """The damaged files that earlier rebuilds of `file` put aside, the newest first."""
    aside = file.parent.glob(f"{file.name}{DAMAGED_MARK}*")
    return sorted((path for path in aside if not path.name.endswith(JOURNAL_SUFFIX)), reverse=True)


def rebuild(file: Path, sources: Sequence[Path], at: datetime) -> Salvage:
    """Put a whole database in the place of `file`, with the longest chain that `file` and
    `sources`, in this order, still hold.

    A crash at any point leaves either `file` as it was, or no `file` and the damaged one among
    `leftovers`. Raises StoreUnusable, DiskFull or NotPrivate.
    """
    rebuilt = file.with_name(file.name + REBUILT_SUFFIX)
    try:
        for old in (rebuilt, _journal(rebuilt)):
            old.unlink(missing_ok=True)
        with explained(rebuilt):
            head = _write_rebuilt(rebuilt, [file, *sources])
        _journal(rebuilt).unlink(missing_ok=True)
        damaged = _put_aside(file, at) if file.exists() else None
        rebuilt.replace(file)
        sync_path(file.parent)
    except OSError as error:
        raise unusable(file, error) from error
    return Salvage(head, damaged)


def stamp(at: datetime) -> str:
    """A moment, in UTC, as part of a file name; names sort as the moments do."""
    return at.strftime("%Y%m%dT%H%M%S.%fZ")


def _write_rebuilt(rebuilt: Path, files: Sequence[Path]) -> Head:
    os.close(open_private_file(rebuilt))  # so that it never has another mode
    with ExitStack() as stack:
        sources: Sources = {}
        for file in files:
            with suppress(*_UNREADABLE), explained(file):
                sources[file] = stack.enter_context(closing(connect_frozen(file)))
        db = stack.enter_context(closing(connect(rebuilt)))
        migrate(db, back_up=lambda: None)
        with transaction(db):
            write_events(db, _salvaged_events(sources))
            for row in _salvaged_sightings(sources):
                write_sighting(db, *row)
        head = check(db).head
    sync_path(rebuilt)
    return head


def _salvaged_events(sources: Sources) -> Iterator[Event]:
    head = START
    while (event := _following(sources, head)) is not None:
        yield event
        head = event.head


def _following(sources: Sources, head: Head) -> Event | None:
    """The event after `head`, from the first source that still holds it."""
    for file, db in sources.items():
        # Each event is looked up by its number: a page that cannot be read hides its own only.
        with suppress(*_UNREADABLE), explained(file):
            for event in verified(read_events(db, head.seq, 1), head):
                event.decided_by()
                event.outcome()
                return event
    return None


def _salvaged_sightings(sources: Sources) -> list[tuple[bytes, str, Sighting]]:
    """What the first source that has any tells; an older one would tell of an older disk."""
    rows: list[tuple[bytes, str, Sighting]] = []
    for file, db in sources.items():
        with suppress(*_UNREADABLE), explained(file):
            rows.extend(read_sightings(db))
        if rows:
            break
    return rows


def _put_aside(file: Path, at: datetime) -> Path:
    damaged = file.with_name(f"{file.name}{DAMAGED_MARK}{stamp(at)}")
    # The journal first: left behind, it would be played back into the new database.
    if _journal(file).exists():
        _journal(file).rename(_journal(damaged))
    file.rename(damaged)
    return damaged


def _journal(file: Path) -> Path:
    return file.with_name(file.name + JOURNAL_SUFFIX)
