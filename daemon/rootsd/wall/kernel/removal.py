"""Remove a folder in which a program behind the wall may have made anything.

Folders may be nested to any depth, and their modes may forbid everything. So this walks down and
up again with at most three descriptors and without recursion, and paths are never longer than one
name. It follows no link and enters no other file system. On the way up, `..` must be the folder
that it came from. Another process may remove the same folder at the same time.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from rootsd.wall.system_calls import closing

_FolderId = tuple[int, int]
_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(name: str, above: int) -> None:
    """Remove the folder `name` in the open folder `above`, with everything in it.

    Does nothing if there is no such folder. Raises OSError if something is left.
    """
    try:
        device = os.stat(name, dir_fd=above, follow_symlinks=False).st_dev
    except FileNotFoundError:  # another process was faster
        return
    waiting = [name]  # the folders that are to be removed from `here`
    levels: list[
        tuple[list[str], _FolderId]
    ] = []  # the same for each folder above, and what it is
    here = os.open(".", _PLACE, dir_fd=above)
    try:
        while waiting or levels:
            if waiting:
                child = _opened(waiting[-1], here)
                if child < 0:
                    waiting.pop()
                    continue
                levels.append((waiting, _identity(here)))
                here = _replaced(here, child)
                if _identity(here)[0] != device:
                    raise OSError(errno.EXDEV, "another file system is mounted there")
                waiting = _remove_files(here)
            else:
                waiting, expected = levels.pop()
                here = _replaced(here, os.open("..", _PLACE, dir_fd=here))
                if _identity(here) != expected:
                    raise OSError(errno.ESTALE, "the folder was moved")
                with suppress(FileNotFoundError):
                    os.rmdir(waiting.pop(), dir_fd=here)
    finally:
        os.close(here)


def _opened(name: str, above: int) -> int:
    """Open a folder after a change of its mode, which may forbid it. Return -1 if it is gone."""
    try:
        with closing(os.open(name, _PLACE, dir_fd=above)) as place:
            os.chmod(f"/proc/self/fd/{place}", 0o700)  # chmod(2) cannot leave links alone
            return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
    except FileNotFoundError:
        return -1


def _remove_files(folder: int) -> list[str]:
    """Remove everything but folders, and return the names of those."""
    with os.scandir(folder) as found:
        entries = list(found)
    folders = []
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        else:
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=folder)
    return folders


def _replaced(fd: int, other: int) -> int:
    os.close(fd)
    return other


def _identity(folder: int) -> _FolderId:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino
