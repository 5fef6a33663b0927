"""Find the walls that run, without a daemon, as `rootsd down` must if the daemon has died.

The front of a wall writes its pid into the lock of the wall's folder, which its warden holds. A
pid counts only while the lock is held, and only if that process has a waiter: see
`rootsd.wall.kernel.supervision`.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import NamedTuple

from rootsd.core.wall import WAITER_NAME
from rootsd.disk.process_stat import process_stats
from rootsd.wall.git.wall_folders import LOCK, program_of, wall_folders
from rootsd.wall.system_calls import closing

_MAX_DIGITS = 20


class RunningWall(NamedTuple):
    """A wall by the name of its programs, and the process that started it."""

    name: str
    front: int


def claim(lock: int) -> None:
    """Write this process's pid into a lock that it holds. Raises OSError."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)


def running_walls(walls: bytes) -> list[RunningWall]:
    """Return the walls in the folder `walls` whose wardens and fronts live."""
    found = []
    fronts = {stat.parent for stat in process_stats() if stat.name == WAITER_NAME}
    for folder in wall_folders(walls):
        with suppress(OSError, ValueError):
            front = _holder(folder + LOCK)
            if front in fronts:
                found.append(RunningWall(program_of(folder), front))
    return found


def folder_of(walls: bytes, front: int) -> bytes | None:
    """Return the private folder of the wall that a process has started, or None."""
    for folder in wall_folders(walls):
        with suppress(OSError, ValueError):
            if _holder(folder + LOCK) == front:
                return folder
    return None


def _holder(file: bytes) -> int:
    """Return the pid in a lock, or 0 if nobody holds it. Raises OSError and ValueError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with closing(os.open(file, flags)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(os.read(lock, _MAX_DIGITS))
    return 0
