"""The damaged databases that rebuilds put aside: a few are kept, and each sole copy."""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path

from rootsd.host.private import is_there, names_in, unusable
from rootsd.host.storage.database import (
    JOURNAL_SUFFIX,
    Database,
    StoreDamaged,
    StoreUnusable,
    connect_frozen,
    explained,
    journal_of,
)
from rootsd.host.storage.rows import read_head, read_head_at

DAMAGED_MARK = ".damaged-"
KEPT = 3


def stamp(at: datetime) -> str:
    """A moment, in UTC, as part of a file name; names sort as the moments do."""
    return at.strftime("%Y%m%dT%H%M%S.%fZ")


def leftovers(file: Path) -> list[Path]:
    """The damaged files that earlier rebuilds of `file` put aside, the newest first. Raises
    NotPrivate."""
    aside = (name for name in names_in(file.parent) if name.startswith(file.name + DAMAGED_MARK))
    names = sorted((name for name in aside if not name.endswith(JOURNAL_SUFFIX)), reverse=True)
    return [file.with_name(name) for name in names]


def put_aside(file: Path, at: datetime) -> Path:
    """Rename the damaged `file`, and its journal; the new path. Raises OSError."""
    while is_there(damaged := file.with_name(f"{file.name}{DAMAGED_MARK}{stamp(at)}")):
        at += timedelta(microseconds=1)
    # The journal first: left behind, it would be played back into the new database.
    if is_there(journal_of(file)):
        journal_of(file).rename(journal_of(damaged))
    file.rename(damaged)
    return damaged


def prune(file: Path, db: Database) -> None:
    """Remove the oldest leftovers of `file` but KEPT, except those that hold a decision which
    `db`, the database in use, does not. Raises NotPrivate."""
    for old in leftovers(file)[KEPT:]:
        if _holds_more(old, db):
            continue
        try:
            journal_of(old).unlink(missing_ok=True)
            old.unlink()
        except OSError as error:
            raise unusable(old, error) from error


def _holds_more(old: Path, db: Database) -> bool:
    """Whether `old` holds an event that `db` does not; True where that cannot be told."""
    unreadable = (StoreDamaged, StoreUnusable)
    try:
        with explained(old), closing(connect_frozen(old)) as frozen:
            last = read_head(db).seq
            with suppress(*unreadable), explained(old):
                last = max(last, read_head(frozen).seq)
            for seq in range(1, last + 1):
                # Looked up one by one: a page that cannot be read hides its own events only.
                with suppress(*unreadable), explained(old):
                    head = read_head_at(frozen, seq)
                    if head is not None and head != read_head_at(db, seq):
                        return True
    except StoreDamaged:
        return False
    except StoreUnusable:
        return True
    return False
