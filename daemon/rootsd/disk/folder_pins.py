"""Keep the kernel from forgetting folders of FUSE file systems.

The program behind FUSE numbers a folder when somebody looks at it, and again when the kernel has
forgotten it. So its number is the same only as long as the kernel keeps it, and a watch makes the
kernel do that. Unlike an open descriptor, a watch does not make an unmount fail. Source:
inotify(7).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Collection
from contextlib import suppress

_IN_DELETE_SELF = 0x400
_IN_ONLYDIR = 0x01000000
_MAX_READ = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)


class FolderPins:
    """The pinned folders. Without inotify, nothing is pinned. Only one thread may use it."""

    def __init__(self) -> None:
        self._fd = -1
        self._watches: dict[bytes, int] = {}

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def pin(self, path: bytes, fd: int) -> None:
        """Pin the folder open at `fd`, in place of the one that was pinned for `path`."""
        if sys.platform != "linux":
            return
        if self._fd < 0:
            self._fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        else:
            with suppress(BlockingIOError):
                os.read(self._fd, _MAX_READ)
        if self._fd < 0:
            return
        place = b"/proc/self/fd/%d" % fd
        watch = _libc.inotify_add_watch(self._fd, place, _IN_DELETE_SELF | _IN_ONLYDIR)
        before = self._watches.pop(path, watch)
        if before not in (watch, *self._watches.values()):
            _libc.inotify_rm_watch(self._fd, before)
        if watch >= 0:
            self._watches[path] = watch

    def keep_only(self, paths: Collection[bytes]) -> None:
        """Release all other folders."""
        for path in self._watches.keys() - set(paths):
            watch = self._watches.pop(path)
            if watch not in self._watches.values():
                _libc.inotify_rm_watch(self._fd, watch)
