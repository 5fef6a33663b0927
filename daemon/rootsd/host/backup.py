"""Verified copies of the decision database, in a folder beside it."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rootsd.host.database import Database, StoreDamaged, connect_frozen, explained, read_head
from rootsd.host.private import (
    ensure_private_folder,
    open_private_file,
    sync_path,
    unusable,
)
from rootsd.host.recovery import check, stamp

FOLDER_NAME = "backups"
PREFIX, SUFFIX = "decisions-", ".db"
NEW_NAME = "new"
KEPT = 3
INTERVAL = timedelta(days=1)


def backups(folder: Path) -> list[Path]:
    """The backups in the state folder `folder`, the newest first."""
    return sorted((folder / FOLDER_NAME).glob(f"{PREFIX}*{SUFFIX}"), reverse=True)


def is_due(folder: Path, at: datetime) -> bool:
    """Whether the newest backup is a day old, or of the future, by the clock that says `at`."""
    newest = next(iter(backups(folder)), None)
    if newest is None:
        return True
    try:
        made = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
    except OSError as error:
        raise unusable(newest, error) from error
    return not timedelta(0) <= at - made < INTERVAL


def take(db: Database, folder: Path, at: datetime) -> Path:
    """Copy `db`, verify the copy, and keep it with the two before it; its path.

    Raises StoreDamaged when the copy does not verify, DiskFull, StoreUnusable and NotPrivate; the
    older backups stay then.
    """
    place = folder / FOLDER_NAME
    ensure_private_folder(place)
    new, final = place / NEW_NAME, place / f"{PREFIX}{stamp(at)}{SUFFIX}"
    try:
        new.unlink(missing_ok=True)
        os.close(open_private_file(new))  # so that it never has another mode
        with explained(new):
            db.execute("VACUUM INTO ?", (str(new),))
            with closing(connect_frozen(new)) as copy:
                if check(copy).head != read_head(db):
                    raise StoreDamaged("the copy ends elsewhere")
        sync_path(new)
        new.replace(final)
        for old in backups(folder)[KEPT:]:
            old.unlink()
        sync_path(place)
    except OSError as error:
        raise unusable(final, error) from error
    finally:
        new.unlink(missing_ok=True)
    return final
