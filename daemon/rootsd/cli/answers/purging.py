"""Remove what rootsd stored: the decisions, the second anchor, the configuration, and the logs."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from rootsd.cli.answers import lifecycle
from rootsd.cli.answers.invocation import Invocation
from rootsd.connect.record import ConnectRecord
from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.places import runtime_dir
from rootsd.places.base_folders import PLACE_VARIABLES
from rootsd.service import start_record
from rootsd.sync.record import SyncRecord


class ClientsConnected(RootsdError):
    """The record of what was changed in other programs' files is still needed."""


class FolderNotRemoved(RootsdError):
    """A folder could not be removed."""


def data_folders(invocation: Invocation) -> list[Path]:
    """Return the daemon's own folders that exist."""
    places = invocation.places
    lasting = (places.config, places.log, places.state, places.data)
    named = (*lasting, *(folder.path for folder in runtime_dir.find_runtime_dirs()))
    own = dict.fromkeys(
        [*(Path(os.fsdecode(name)) for name in named), start_record.start_folder()]
    )
    return [folder for folder in own if folder.is_dir() and not folder.is_symlink()]


def ensure_places_for_purge() -> None:
    """Raise PlacesMismatch if `purge_data` would remove other folders than the daemon's."""
    unset = " ".join(f"-u {name}" for name in PLACE_VARIABLES)
    start_record.refuse_place_changes(f"env {unset} rootsd service uninstall --purge")


def ensure_clients_are_disconnected(invocation: Invocation) -> None:
    """Raise ClientsConnected if a client has our entries: a purge would lose their record."""
    state = invocation.places.state
    synced = SyncRecord(state).clients().values()
    names = {*ConnectRecord(state).names(), *(each.client for each in synced)}
    if names:
        raise ClientsConnected(
            f"rootsd is still in the configuration of {', '.join(sorted(names))}",
            "rootsd disconnect --all",
        )


def purge_data(invocation: Invocation) -> list[Path]:
    """Stop the daemon, remove its own folders, and return the folders that existed.

    Holds the daemon's lock, so that no running daemon loses its store. Raises Busy and
    FolderNotRemoved.
    """
    lifecycle.shut_down(invocation)
    present = data_folders(invocation)
    state = Path(os.fsdecode(invocation.places.state))
    if state in present:
        with DaemonLock.acquire(state, LockRecord(os.getpid(), "purge", {})):
            if sys.platform == "linux":
                from rootsd.wall.session.kept_names import remove_walls

                with suppress(OSError):  # the next call names the folder that is left
                    remove_walls(invocation.places.state)
            _remove_folder(state)
    for folder in present:
        _remove_folder(folder)
    return present


def _remove_folder(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass  # removed already, together with a folder above it
    except OSError as error:
        shown = safe_label(str(folder), limit=None)
        raise FolderNotRemoved(
            f"{shown} cannot be removed: {error.strerror}", f"ls -la {shown}"
        ) from error
