"""Turn off copy-on-write for new files in a folder, so that writes need no new blocks.

On btrfs each write takes new blocks. A full disk would then refuse writes for which the store has
reserved room. In a folder with the no-copy-on-write flag (`chattr +C`), new files are written in
place.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from contextlib import suppress
from pathlib import Path

# linux/fs.h, asm-generic/ioctl.h: _IOR('f', 1, long) and _IOW('f', 2, long)
_LONG = struct.Struct("l")
_GETFLAGS = 2 << 30 | _LONG.size << 16 | ord("f") << 8 | 1
_SETFLAGS = 1 << 30 | _LONG.size << 16 | ord("f") << 8 | 2
_FLAGS = struct.Struct("I")  # the kernel uses an int here, although the number says long
_NOCOW = 0x00800000


def write_in_place(folder: Path) -> bool:
    """Set the flag on `folder`, and return whether new files in it are written in place now.

    Return False if the file system has no such flag. Most of them need none. See ioctl_iflags(2).
    """
    if sys.platform != "linux":
        return False
    # Ignore errors. The code that writes to the folder reports them.
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _mark(fd)
        finally:
            os.close(fd)
        return True
    return False


def _mark(folder: int) -> None:
    (flags,) = _FLAGS.unpack_from(fcntl.ioctl(folder, _GETFLAGS, bytes(_LONG.size)))
    if not flags & _NOCOW:
        fcntl.ioctl(folder, _SETFLAGS, _FLAGS.pack(flags | _NOCOW).ljust(_LONG.size, b"\0"))
