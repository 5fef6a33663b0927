"""Make and verify backups of the decision database, in a folder beside it.

There are two kinds, with different names. The newest daily backups are for repairs. A backup from
before an upgrade has the format of the older version, so that a person can go back to it. Daily
backups do not replace it.
"""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rootsd.core.history import ChainHead
from rootsd.files.private_files import (
    ensure_private_file,
    ensure_private_folder,
    list_names,
    sync_path,
    unusable_error,
)
from rootsd.state.store.database import Database, StoreDamaged, connect_frozen, translate_errors
from rootsd.state.store.recovery import check, file_timestamp
from rootsd.state.store.rows import read_head

FOLDER_NAME = "backups"
PREFIX, SUFFIX = "decisions-", ".db"
UPGRADE_PREFIX = "before-upgrade-"
NEW_NAME = "new"
MAX_BACKUPS = 3
INTERVAL = timedelta(days=1)


def list_backups(folder: Path) -> list[Path]:
    """Return the backups in the state folder `folder`: the daily ones, then those from before an
    upgrade, each newest first. Raises NotPrivate.
    """
    return [*_list_kind(folder, PREFIX), *_list_kind(folder, UPGRADE_PREFIX)]


def _list_kind(folder: Path, prefix: str) -> list[Path]:
    place = folder / FOLDER_NAME
    made = (
        name for name in list_names(place) if name.startswith(prefix) and name.endswith(SUFFIX)
    )
    return [place / name for name in sorted(made, reverse=True)]


def due_in(folder: Path, at: datetime) -> timedelta:
    """Return how long after `at` the next daily backup is due, a day after the newest one.

    Return zero if there is none, or if the newest one is from the future. Raises NotPrivate.
    """
    newest = next(iter(_list_kind(folder, PREFIX)), None)
    if newest is None:
        return timedelta(0)
    try:
        age = at - datetime.fromtimestamp(newest.stat().st_mtime, UTC)
    except OSError as error:
        raise unusable_error(newest, error) from error
    return INTERVAL - age if timedelta(0) <= age < INTERVAL else timedelta(0)


def begin_copy(db: Database, folder: Path) -> ChainHead:
    """Copy `db` for `finish_copy`, and return the head that the copy must have.

    `finish_copy` takes longer and does not need `db`. Raises StoreDamaged, DiskFull, StoreUnusable
    and NotPrivate.
    """
    place = folder / FOLDER_NAME
    ensure_private_folder(place)
    new = place / NEW_NAME
    try:
        new.unlink(missing_ok=True)
        ensure_private_file(new)  # create it first, so that other users can never read it
    except OSError as error:
        raise unusable_error(new, error) from error
    with translate_errors(new):
        db.execute("VACUUM INTO ?", (str(new),))
        return read_head(db)


def finish_copy(folder: Path, head: ChainHead, at: datetime, prefix: str = PREFIX) -> Path:
    """Verify the copy of `begin_copy`, keep it with the two newest of its kind, and return its
    path.

    Raises StoreDamaged if the copy is not correct, DiskFull, StoreUnusable and NotPrivate. Older
    backups then stay.
    """
    place = folder / FOLDER_NAME
    new, final = place / NEW_NAME, place / f"{prefix}{file_timestamp(at)}{SUFFIX}"
    try:
        with translate_errors(new), closing(connect_frozen(new)) as made:
            if check(made).head != head:
                raise StoreDamaged("the copy ends with another event than the database")
        sync_path(new)
        new.replace(final)
        for old in _list_kind(folder, prefix)[MAX_BACKUPS:]:
            old.unlink()
        sync_path(place)
    except OSError as error:
        raise unusable_error(final, error) from error
    finally:
        with suppress(OSError):  # the next `begin_copy` removes it too
            new.unlink(missing_ok=True)
    return final


def make_backup(db: Database, folder: Path, at: datetime, prefix: str = PREFIX) -> Path:
    """Make a backup in one call: `begin_copy`, then `finish_copy`."""
    return finish_copy(folder, begin_copy(db, folder), at, prefix)
