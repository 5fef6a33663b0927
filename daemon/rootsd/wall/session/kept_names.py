"""List and remove what the programs of each name keep: what they installed, cached, and copied.

Private folders with worktrees count, too.

The state of agents and the reports of sessions stay. Programs filled these folders, so nothing
here follows a link.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from rootsd.core.errors import Busy
from rootsd.core.labels import safe_label
from rootsd.places.base_folders import WALLS
from rootsd.wall.git.private_worktrees import LEFT_PREFIX
from rootsd.wall.git.wall_folders import KEPT, LOCK, RUN_PREFIX, names_in, wall_folders
from rootsd.wall.kernel.own_storage import (
    CACHES,
    COPIES,
    DOOR,
    FOLDERS,
    IN_USE,
    remove_ended,
)
from rootsd.wall.kernel.removal import remove_tree
from rootsd.wall.system_calls import closing, open_below, open_path

_BLOCK = 512
_LOCK_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class KeptName(NamedTuple):
    """What the programs of one name keep in a folder. `size` is in bytes on the disk.

    `used` is the time of the last start, in seconds.
    """

    name: str
    folder: bytes
    size: int
    used: float
    is_running: bool


def kept_names(state: bytes) -> Iterator[KeptName]:
    """Yield the names that keep something, in the folder for our state."""
    walls = state + WALLS
    for each in names_in(walls):
        folder = walls + b"/" + each
        with suppress(OSError), closing(open_path(folder, os.O_DIRECTORY)) as place:
            if parts := [*_parts(place)]:
                size = sum(_size(place, part) for part in parts)
                used = max((_started(place, slot) for slot in _slots(place)), default=0.0)
                name = os.fsdecode(each)
                yield KeptName(name, folder, size, used, _is_running(place))


def remove_kept(kept: KeptName) -> None:
    """Remove what a name keeps. Raises Busy while a program of this name runs, and OSError."""
    with closing(open_path(kept.folder, os.O_DIRECTORY)) as place, _nobody_in(place, kept.name):
        for part in [*_parts(place)]:
            above, name = os.path.split(part)
            with closing(open_below(place, above, os.O_DIRECTORY)) as folder:
                remove_tree(os.fsdecode(name), folder)


def remove_left(walls: bytes) -> None:
    """Remove the private folders of programs that were killed with everything around them."""
    for folder in wall_folders(walls):
        if any(name.startswith(RUN_PREFIX) for name in names_in(folder)):
            with suppress(OSError), closing(os.open(folder + LOCK, _LOCK_FLAGS)) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_ended(folder)


def remove_walls(state: bytes) -> None:
    """Remove everything that walls have in the folder for our state. Raises OSError.

    Overlays and programs make folders there that their owner cannot list.
    """
    with suppress(FileNotFoundError), closing(open_path(state, os.O_DIRECTORY)) as place:
        remove_tree(os.fsdecode(WALLS[1:]), place)


def _parts(place: int) -> Iterator[bytes]:
    """Yield the folders of a name that hold something kept, relative to it."""
    slots = _slots(place)
    wanted = [KEPT + FOLDERS, *(b"/" + slot + each for slot in slots for each in (COPIES, CACHES))]
    for slot in slots:
        with suppress(OSError), closing(open_below(place, slot, os.O_DIRECTORY)) as folder:
            names = names_in(b"/proc/self/fd/%d" % folder)
            wanted += (b"/%s/%s" % (slot, each) for each in names if each.startswith(LEFT_PREFIX))
    for part in wanted:
        with suppress(OSError), closing(open_below(place, part[1:], os.O_DIRECTORY)) as folder:
            if os.listdir(b"/proc/self/fd/%d" % folder):
                yield part[1:]


def _slots(place: int) -> list[bytes]:
    """Return the folders of single walls, without links."""
    names = (name for name in names_in(b"/proc/self/fd/%d" % place) if name.isdigit())
    return [
        name
        for name in names
        if stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
    ]


def _started(place: int, slot: bytes) -> float:
    with suppress(OSError):
        return os.stat(slot + LOCK, dir_fd=place, follow_symlinks=False).st_mtime
    return 0.0


def _is_running(place: int) -> bool:
    try:
        with _nobody_in(place, ""):
            return False
    except Busy:
        return True


@contextmanager
def _nobody_in(place: int, name: str) -> Iterator[None]:
    """Keep programs of a name from starting. Raises Busy if one runs."""
    locks = [slot + LOCK for slot in _slots(place)]
    locks += [(KEPT + each)[1:] for each in (DOOR, IN_USE)]
    with ExitStack() as stack:
        for lock in locks:
            try:
                fd = stack.enter_context(closing(os.open(lock, _LOCK_FLAGS, dir_fd=place)))
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except FileNotFoundError:
                continue
            except BlockingIOError as error:
                shown = safe_label(name)
                raise Busy(f"{shown} runs behind the wall", "rootsd sessions") from error
        yield


def _size(place: int, part: bytes) -> int:
    """Return how many bytes a folder takes on the disk. What cannot be read counts as empty."""
    waiting, seen, size = [part], set[int](), 0
    while waiting:
        path = waiting.pop()
        with suppress(OSError), closing(open_below(place, path, os.O_DIRECTORY)) as folder:
            for name in os.listdir(b"/proc/self/fd/%d" % folder):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(path + b"/" + name)
                elif found.st_nlink == 1 or found.st_ino not in seen:
                    seen.add(found.st_ino)  # a file may have several names
                    size += found.st_blocks * _BLOCK
    return size
