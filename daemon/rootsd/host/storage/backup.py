"""Verified copies of the decision database, in a folder beside it."""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rootsd.core.history import Head
from rootsd.host.private import (
    ensure_private_file,
    ensure_private_folder,
    names_in,
    sync_path,
    unusable,
)
from rootsd.host.storage.database import Database, StoreDamaged, connect_frozen, explained
from rootsd.host.storage.leftovers import stamp
from rootsd.host.storage.recovery import check
from rootsd.host.storage.rows import read_head

FOLDER_NAME = "backups"
PREFIX, SUFFIX = "decisions-", ".db"
NEW_NAME = "new"
KEPT = 3
INTERVAL = timedelta(days=1)


def backups(folder: Path) -> list[Path]:
    """The backups in the state folder `folder`, the newest first. Raises NotPrivate."""
    place = folder / FOLDER_NAME
    made = (name for name in names_in(place) if name.startswith(PREFIX) and name.endswith(SUFFIX))
    return [place / name for name in sorted(made, reverse=True)]


def due_in(folder: Path, at: datetime) -> timedelta:
    """How long from `at`, by its clock, until the newest backup is a day old; none where there is
    no backup, or only one of the future. Raises NotPrivate."""
    newest = next(iter(backups(folder)), None)
    if newest is None:
        return timedelta(0)
    try:
        age = at - datetime.fromtimestamp(newest.stat().st_mtime, UTC)
    except OSError as error:
        raise unusable(newest, error) from error
    return INTERVAL - age if timedelta(0) <= age < INTERVAL else timedelta(0)


def copy(db: Database, folder: Path) -> Head:
    """Copy `db` to where `keep` expects it; the head that the copy has to have. The longer part of
    a backup, to verify it, needs `db` no more.

    Raises StoreDamaged, DiskFull, StoreUnusable and NotPrivate.
    """
    place = folder / FOLDER_NAME
    ensure_private_folder(place)
    new = place / NEW_NAME
    try:
        new.unlink(missing_ok=True)
        ensure_private_file(new)  # so that it never has another mode
    except OSError as error:
        raise unusable(new, error) from error
    with explained(new):
        db.execute("VACUUM INTO ?", (str(new),))
        return read_head(db)


def keep(folder: Path, head: Head, at: datetime) -> Path:
    """Verify what `copy` made, and keep it with the two before it; its path.

    Raises StoreDamaged when it does not verify, DiskFull, StoreUnusable and NotPrivate; the older
    backups stay then.
    """
    place = folder / FOLDER_NAME
    new, final = place / NEW_NAME, place / f"{PREFIX}{stamp(at)}{SUFFIX}"
    try:
        with explained(new), closing(connect_frozen(new)) as made:
            if check(made).head != head:
                raise StoreDamaged("the copy ends elsewhere")
        sync_path(new)
        new.replace(final)
        for old in backups(folder)[KEPT:]:
            old.unlink()
        sync_path(place)
    except OSError as error:
        raise unusable(final, error) from error
    finally:
        with suppress(OSError):  # the next `copy` takes it away, too
            new.unlink(missing_ok=True)
    return final


def take(db: Database, folder: Path, at: datetime) -> Path:
    """Make a backup in one go; see `copy` and `keep`."""
    return keep(folder, copy(db, folder), at)
