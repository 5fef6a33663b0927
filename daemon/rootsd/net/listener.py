"""Create private listening sockets, and notice when their names are removed.

The name of a socket can disappear at a logout, or when a person cleans up. A name watch then wakes
its caller, which must check the names itself. The caller must also check them before the first
wait. Source: inotify(7).
"""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

import anyio

from rootsd.files.private_files import ensure_private_folder, unusable_error
from rootsd.net.unix_socket import address_of

SOCKET_MODE = 0o600
# The number of connections that are accepted in total. With a longer backlog, honest clients would
# wait behind connections that are going to be refused.
_BACKLOG = 1024  # the kernel limits it to net.core.somaxconn


class Listener:
    """A listening socket and its name in the file system.

    With `keeps_name`, `close` does not remove the name, which belongs to the service manager.
    """

    def __init__(self, listening: socket.socket, path: bytes, *, keeps_name: bool = False) -> None:
        self.socket = listening
        self.path = path
        self._keeps_name = keeps_name
        self._identity = _identity_of(path)

    def has_name(self) -> bool:
        """Return whether the name still leads to a socket, even to one of a later daemon."""
        return _identity_of(self.path) is not None

    def close(self) -> None:
        """Stop listening. Remove the name, unless it now belongs to another daemon's socket."""
        self.socket.close()
        identity, self._identity = self._identity, None
        if identity and not self._keeps_name and _identity_of(self.path) == identity:
            os.unlink(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def listen(path: bytes, *, backlog: int = _BACKLOG) -> Listener:
    """Listen at `path` with mode 0600, in a private folder that is created if it is missing.

    This replaces a stale socket in one step: a client finds either the old socket, which refuses,
    or the new one. The caller's lock ensures that no other daemon is running. Raises NotPrivate.
    """
    folder = Path(os.fsdecode(path)).parent
    ensure_private_folder(folder.parent)
    ensure_private_folder(folder)
    listening = socket.socket(socket.AF_UNIX)
    try:
        _bind(listening, path, backlog)
    except OSError as error:
        listening.close()
        raise unusable_error(Path(os.fsdecode(path)), error) from error
    listening.settimeout(0)
    return Listener(listening, path)


def _bind(listening: socket.socket, path: bytes, backlog: int) -> None:
    temporary = path + b".%d" % os.getpid()
    if sys.platform != "darwin":
        # On Linux, the name takes its mode from the descriptor, so it is 0600 from the start.
        # macOS does not allow this; there, the 0700 folder protects the name.
        os.fchmod(listening.fileno(), SOCKET_MODE)
    _remove_socket(temporary)
    with address_of(temporary) as address:
        listening.bind(address)
    try:
        os.chmod(temporary, SOCKET_MODE)
        listening.listen(backlog)
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _remove_socket(path: bytes) -> None:
    """Remove the socket of a daemon with our pid that was killed between bind and rename."""
    found = _identity_of(path)
    if found is not None:
        os.unlink(path)


def _identity_of(path: bytes) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISSOCK(found.st_mode) else None


_IN_MOVED_FROM, _IN_DELETE = 0x40, 0x200
_IN_DELETE_SELF, _IN_MOVE_SELF = 0x400, 0x800
_IN_ONLYDIR, _IN_DONT_FOLLOW, _IN_MASK_ADD = 0x1000000, 0x2000000, 0x20000000
_OF_ITSELF = _IN_DELETE_SELF | _IN_MOVE_SELF | _IN_ONLYDIR | _IN_DONT_FOLLOW | _IN_MASK_ADD
_OF_NAMES = _OF_ITSELF | _IN_DELETE | _IN_MOVED_FROM
_BUFFER = 1 << 16
_MAX_PAUSE_S = 60.0


class InotifyNameWatch:
    """A name watch by inotify. Raises OSError if the user has no inotify instance left."""

    def __init__(self, paths: Iterable[bytes]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for path in paths:
            folder = os.path.dirname(path)
            # A missing folder cannot be watched. The caller's check finds it missing.
            libc.inotify_add_watch(self._fd, folder, _OF_NAMES)
            libc.inotify_add_watch(self._fd, os.path.dirname(folder), _OF_ITSELF)

    async def wait(self) -> None:
        """Wait until a name may have changed."""
        await anyio.wait_readable(self._fd)
        with suppress(BlockingIOError):
            os.read(self._fd, _BUFFER)

    def close(self) -> None:
        """Release the watch."""
        os.close(self._fd)


class PollingNameWatch:
    """A name watch that wakes its caller once a minute."""

    async def wait(self) -> None:
        """Wait for a minute."""
        with anyio.move_on_after(_MAX_PAUSE_S):
            await anyio.Event().wait()

    def close(self) -> None:
        """Do nothing, because this watch holds no resource."""


def watch_socket_names(paths: Iterable[bytes]) -> InotifyNameWatch | PollingNameWatch:
    """Return the best watch on this system for the names of these files."""
    if sys.platform == "linux":
        with suppress(OSError):
            return InotifyNameWatch(paths)
    return PollingNameWatch()
