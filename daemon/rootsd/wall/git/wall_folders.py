"""Know the private folders of walls, and the names in them, without looking at what a session did.

Each start of a wall lists these folders, and finds nothing to do in most of them. So this module
imports little.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from rootsd.core.labels import safe_label
from rootsd.wall.system_calls import closing

CHANGES, START = b"/changes", b"/start.json"
"""The folder in that of a wall, and the file in it about a session that has not ended."""
LOCK = b"/lock"
"""The name of the lock in a wall's folder, which its warden holds."""
KEPT = b"/kept"
"""The folder beside those of walls for what all programs of their name keep."""
RUN_PREFIX = b"run-"
"""The beginning of the names of private folders in that of a wall, which go with a start."""


def wall_folders(walls: bytes) -> Iterator[bytes]:
    """Yield the private folders of all walls."""
    for name in names_in(walls):
        for slot in names_in(walls + b"/" + name):
            if slot.isdigit():
                yield b"%s/%s/%s" % (walls, name, slot)


def has_ended(folder: bytes) -> bool:
    """Return whether no session of a wall lacks its report."""
    return not os.path.lexists(folder + CHANGES + START)


def is_abandoned(folder: bytes) -> bool:
    """Return whether all parts of a session were killed, and something of it is left."""
    is_clean = has_ended(folder) and not any(n.startswith(RUN_PREFIX) for n in names_in(folder))
    return not is_clean and not is_held(folder + LOCK)


def is_held(lock: bytes) -> bool:
    """Return whether a process holds a lock. Nobody holds one that is not there."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(OSError), closing(os.open(lock, flags)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


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
