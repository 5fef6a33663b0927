"""Decide which roots a program gets from the static engine. Pure.

The static engine grants rights when a program starts, and it can only grant rights to whole
folders. So it cannot mask a folder inside a root, or make a folder in a writable root read-only.
In the first case, `fixed_roots` leaves the root out. In the second case, it makes the whole root
read-only.

`missing` compares two sets of roots. It finds roots that a running program has but may no longer
have (*lost*), and roots that it may have but gets only at its next start (*waiting*).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    DesiredMount,
)
from rootsd.core.paths import ancestors

HOLDS_HIDDEN = "it holds a folder that must be hidden, which --static cannot do"


class FixedRoots(NamedTuple):
    """The roots that a program gets at its start, and why it does not get the others."""

    shown: dict[bytes, DesiredMount]
    refused: dict[bytes, str]


def fixed_roots(desired: Mapping[bytes, DesiredMount]) -> FixedRoots:
    """Return which of the `desired` mounts a program gets at its start."""
    refused = {path: HOLDS_HIDDEN for path, mount in desired.items() if mount.masks}
    narrowed = {
        above
        for path, mount in desired.items()
        if mount.access is Access.READ
        for above in ancestors(path)
        if above in desired
    }
    shown = {
        path: mount._replace(access=Access.READ) if path in narrowed else mount
        for path, mount in desired.items()
        if path not in refused
    }
    return FixedRoots(shown, refused)


def missing(
    wanted: Mapping[bytes, DesiredMount], held: Mapping[bytes, DesiredMount]
) -> tuple[bytes, ...]:
    """Return the paths in `wanted` that a program with `held` cannot use, sorted."""
    return tuple(sorted(path for path in wanted if not _is_held(path, wanted, held)))


def _is_held(
    path: bytes, wanted: Mapping[bytes, DesiredMount], held: Mapping[bytes, DesiredMount]
) -> bool:
    """Return whether `held` has this folder, or a folder above it that is also in `wanted`."""
    access = wanted[path].access
    return any(
        each in wanted
        and each in held
        and wanted[each].identity == held[each].identity
        and access in (Access.READ, held[each].access)
        for each in (path, *ancestors(path))
    )
