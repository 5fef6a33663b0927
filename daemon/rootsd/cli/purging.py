"""Removes the data that lasts: decisions, the second anchor, configuration, logs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rootsd.cli import lifecycle
from rootsd.cli.session import Session
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.host import folders
from rootsd.host.lock import DaemonLock, LockRecord
from rootsd.host.service import record


class NotRemoved(RootsdError):
    """A folder is still there."""


def own_folders(session: Session) -> list[Path]:
    """Every folder of the daemon's own that is there."""
    places = session.places
    lasting = (places.config, places.log, places.state, places.data)
    named = (*lasting, *(folder.path for folder in folders.run_folders()))
    own = dict.fromkeys([*(Path(os.fsdecode(name)) for name in named), record.start_folder()])
    return [folder for folder in own if folder.is_dir() and not folder.is_symlink()]


def ensure_own_places() -> None:
    """Raise OtherPlaces where `purge` would take other folders than the daemon's."""
    if told := record.other_places():
        unset = " ".join(f"-u {name}" for name in record.PLACE_VARIABLES)
        raise record.OtherPlaces(told, f"env {unset} rootsd service uninstall --purge")


def purge(session: Session) -> list[Path]:
    """Remove every folder of the daemon's own; those that were there.

    Under the lock, so that no daemon loses its store while it runs. Raises Busy, NotRemoved.
    """
    lifecycle.end(session)
    present = own_folders(session)
    state = Path(os.fsdecode(session.places.state))
    if state in present:
        with DaemonLock.acquire(state, LockRecord(os.getpid(), "purge", {})):
            _remove(state)
    for folder in present:
        _remove(folder)
    return present


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass  # it lay in one of the others
    except OSError as error:
        shown = safe_label(str(folder), limit=None)
        raise NotRemoved(f"{shown} cannot be removed: {error.strerror}", f"ls -la {shown}") from (
            error
        )
