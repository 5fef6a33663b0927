"""The parts of the system that discovery uses, as the daemon passes them, without its ledger."""

from __future__ import annotations

import os
from collections.abc import Callable

from rootsd.core.paths import RefusedPlaces
from rootsd.discovery.service import DiscoveryDependencies
from rootsd.disk.safety import FolderSafety
from rootsd.disk.writers import is_private_group
from rootsd.processes.activity import folders_in_use, folders_of_tools

NO_PLACES = RefusedPlaces(home=b"/")


def folder_safety(
    uid: int | None = None,
    *,
    places: Callable[[], RefusedPlaces] = lambda: NO_PLACES,
    mounted: Callable[[], object] = lambda: None,
    responds: Callable[[bytes], bool] = lambda _path: True,
    is_private: Callable[[int, int], bool] = is_private_group,
) -> FolderSafety:
    """Return the checks for this user where nothing is refused or silent."""
    return FolderSafety(
        os.getuid() if uid is None else uid,
        places=places,
        mounted=mounted,
        responds=responds,
        is_private=is_private,
    )


def this_system(**changes: object) -> DiscoveryDependencies:
    """Return what discovery uses of this system, apart from `changes`."""
    parts = {
        "find_in_use": folders_in_use,
        "find_tools": folders_of_tools,
        "safety": folder_safety(),
        **changes,
    }
    return DiscoveryDependencies(**parts)  # type: ignore[arg-type]
