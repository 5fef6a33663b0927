"""Know the private folders of walls, and the names in them, without looking at what a session did.

Each start of a wall lists these folders, and finds nothing to do in most of them. So this module
imports little.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from rootsd.core.labels import safe_label

CHANGES, START = b"/changes", b"/start.json"
"""The folder in that of a wall, and the file in it about a session that has not ended."""
LOCK = b"/lock"
"""The name of the lock in a wall's folder, which its warden holds."""


def wall_folders(walls: bytes) -> Iterator[bytes]:
    """Yield the private folders of all walls."""
    for name in names_in(walls):
        for slot in names_in(walls + b"/" + name):
            if slot.isdigit():
                yield b"%s/%s/%s" % (walls, name, slot)


def has_ended(folder: bytes) -> bool:
    """Return whether no session of a wall lacks its report."""
    return not os.path.lexists(folder + CHANGES + START)


def program_of(folder: bytes) -> str:
    """Return the name of the sessions of a wall."""
    return safe_label(os.path.basename(os.path.dirname(folder)))


def names_in(folder: bytes, limit: int | None = None) -> list[bytes]:
    """Return the names in a folder, sorted; none if it cannot be read.

    A program can make a million, and a revoke waits. So it takes a `limit`, at which it stops.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.name for entry in islice(entries, limit))
    return []
