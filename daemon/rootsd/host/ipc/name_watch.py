"""Tells when the name of a socket may have gone: at a logout, or when somebody tidies up.

Whoever waits has to look for himself, before the first wait, too. Source: inotify(7).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from contextlib import suppress

import anyio

_IN_MOVED_FROM, _IN_DELETE = 0x40, 0x200
_IN_DELETE_SELF, _IN_MOVE_SELF = 0x400, 0x800
_IN_ONLYDIR, _IN_DONT_FOLLOW, _IN_MASK_ADD = 0x1000000, 0x2000000, 0x20000000
_OF_ITSELF = _IN_DELETE_SELF | _IN_MOVE_SELF | _IN_ONLYDIR | _IN_DONT_FOLLOW | _IN_MASK_ADD
_OF_NAMES = _OF_ITSELF | _IN_DELETE | _IN_MOVED_FROM
_BUFFER = 1 << 16
_LONGEST_PAUSE_S = 60.0


class KernelNameWatch:
    """Linux: the kernel tells. Raises OSError where the user's inotify instances are used up."""

    def __init__(self, paths: Iterable[bytes]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for path in paths:
            folder = os.path.dirname(path)
            # One that is not there cannot be watched, and will be found missing.
            libc.inotify_add_watch(self._fd, folder, _OF_NAMES)
            libc.inotify_add_watch(self._fd, os.path.dirname(folder), _OF_ITSELF)

    async def wait(self) -> None:
        """Return when something has changed."""
        await anyio.wait_readable(self._fd)
        with suppress(BlockingIOError):
            os.read(self._fd, _BUFFER)

    def close(self) -> None:
        """Give the watch back."""
        os.close(self._fd)


class PatientNameWatch:
    """Elsewhere: it is time to look once a minute."""

    async def wait(self) -> None:
        """Return when it is time to look."""
        with anyio.move_on_after(_LONGEST_PAUSE_S):
            await anyio.Event().wait()

    def close(self) -> None:
        """Nothing is held."""


def watch_names(paths: Iterable[bytes]) -> KernelNameWatch | PatientNameWatch:
    """The best watch that this system has for the names of these files."""
    if sys.platform == "linux":
        with suppress(OSError):
            return KernelNameWatch(paths)
    return PatientNameWatch()
