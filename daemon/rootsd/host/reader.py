"""Reads small regular files of hostile repositories: never blocks, never follows, never reads on.

A repository may hold a FIFO, a device or a link where a file is expected; opened the usual way the
first hangs the program, the others lead anywhere. What is not a small regular file reads as None.
"""

from __future__ import annotations

import os
import stat

REF_CAP = 4 << 10
NOTE_CAP = 256
CONFIG_CAP = 256 << 10
PACKED_REFS_CAP = 4 << 20

_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def read_small(path: bytes, cap: int, dir_fd: int | None = None) -> bytes | None:
    """The first `cap` bytes of a regular file; None for anything else, or if it cannot be read.

    `path` may be relative to the folder open at `dir_fd`. Only the last component is kept from
    being a link, see open(2).
    """
    try:
        fd = os.open(path, _FILE_FLAGS, dir_fd=dir_fd)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return os.read(fd, cap)
    except OSError:
        return None
    finally:
        os.close(fd)


def read_tail(path: bytes, size: int) -> bytes | None:
    """The last `size` bytes of a regular file that is at least that long, else None."""
    try:
        fd = os.open(path, _FILE_FLAGS)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size < size:
            return None
        return os.pread(fd, size, found.st_size - size)
    except OSError:
        return None
    finally:
        os.close(fd)


def open_folder(path: bytes) -> int:
    """A descriptor of the folder itself, never of one that a link leads to.

    The caller closes it at once: a descriptor that is held makes an unmount fail. Raises OSError.
    """
    return os.open(path, _FOLDER_FLAGS)


def names_in(path: bytes) -> frozenset[bytes]:
    """The names in a folder; empty if it cannot be listed."""
    try:
        return frozenset(os.listdir(path))
    except OSError:
        return frozenset()


def join(base: bytes, path: bytes) -> bytes:
    """`path` as meant from folder `base`; `..` is resolved here and never by the kernel.

    What is checked is then what is opened, wherever links lie on the way.
    """
    return os.path.normpath(os.path.join(base, path))
