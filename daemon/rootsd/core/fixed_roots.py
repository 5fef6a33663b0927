"""Decide what a program sees whose view cannot change while it runs. Pure.

The static engine gives rights when a program starts, and can only add rights for whole folders. So
it cannot mask a folder inside a root, nor make a folder in a writable root read-only. In both
cases the program gets less: `fixed_roots` leaves the root out, or gives it read-only.

`missing` compares two sets. Roots that a running program has and may no longer have are *lost*;
roots that it may have and lacks are *waiting* for its next start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rootsd.core.paths import ancestors
from rootsd.core.view import DesiredMount, MountAccess

HOLDS_HIDDEN = "it holds a folder that must be hidden, which --static cannot do"


class FixedRoots(NamedTuple):
    """The roots that a program gets at its start, and the reasons for those that it does not."""

    shown: dict[bytes, DesiredMount]
    refused: dict[bytes, str]


def fixed_roots(desired: Mapping[bytes, DesiredMount]) -> FixedRoots:
    """Return the part of `desired` that can be given to a program for good."""
    refused = {path: HOLDS_HIDDEN for path, mount in desired.items() if mount.masks}
    narrowed = {
        above
        for path, mount in desired.items()
        if mount.access is MountAccess.READ
        for above in ancestors(path)
        if above in desired
    }
    shown = {
        path: mount._replace(access=MountAccess.READ) if path in narrowed else mount
        for path, mount in desired.items()
        if path not in refused
    }
    return FixedRoots(shown, refused)


def missing(
    wanted: Mapping[bytes, DesiredMount], held: Mapping[bytes, DesiredMount]
) -> tuple[bytes, ...]:
    """Return the paths of `wanted` that somebody who has `held` cannot use, sorted."""
    return tuple(sorted(path for path in wanted if not _is_held(path, wanted, held)))


def _is_held(
    path: bytes, wanted: Mapping[bytes, DesiredMount], held: Mapping[bytes, DesiredMount]
) -> bool:
    """Whether `held` has this folder, itself or as a part of a folder that both have."""
    access = wanted[path].access
    return any(
        each in wanted
        and each in held
        and wanted[each].identity == held[each].identity
        and access in (MountAccess.READ, held[each].access)
        for each in (path, *ancestors(path))
    )
