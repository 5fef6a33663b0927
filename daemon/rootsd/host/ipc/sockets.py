"""Listening sockets that nobody else can reach, from the first moment on."""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path
from typing import Self

from rootsd.host.ipc.address import address_of
from rootsd.host.private import ensure_private_folder, unusable

SOCKET_MODE = 0o600
# As many as are let in at all: behind more, an honest client would wait for the refusal of others.
_BACKLOG = 1024  # the kernel cuts it to net.core.somaxconn


class Listener:
    """A listening socket and the name it has in the file system. A context manager.

    `keeps_name`: the name belongs to whoever made it, and is there for the next daemon.
    """

    def __init__(self, listening: socket.socket, path: bytes, *, keeps_name: bool = False) -> None:
        self.socket = listening
        self.path = path
        self._keeps_name = keeps_name
        self._identity = _identity_of(path)

    def has_name(self) -> bool:
        """Whether its name leads to a socket still, be it that of a successor."""
        return _identity_of(self.path) is not None

    def close(self) -> None:
        """Stop listening. The name goes too, unless another daemon has put its own there."""
        self.socket.close()
        identity, self._identity = self._identity, None
        if identity and not self._keeps_name and _identity_of(self.path) == identity:
            os.unlink(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def listen(path: bytes, *, backlog: int = _BACKLOG) -> Listener:
    """Listen at `path`, mode 0600, in a folder that is ours alone; makes the folder.

    A stale socket is replaced in one step: clients find the old one, which refuses, or ours,
    which answers, and never nothing. That no living daemon is replaced is the lock's task.
    Raises NotPrivate.
    """
    folder = Path(os.fsdecode(path)).parent
    ensure_private_folder(folder.parent)
    ensure_private_folder(folder)
    listening = socket.socket(socket.AF_UNIX)
    try:
        _bind(listening, path, backlog)
    except OSError as error:
        listening.close()
        raise unusable(Path(os.fsdecode(path)), error) from error
    listening.settimeout(0)
    return Listener(listening, path)


def _bind(listening: socket.socket, path: bytes, backlog: int) -> None:
    temporary = path + b".%d" % os.getpid()
    if sys.platform != "darwin":
        # On Linux the name takes its mode from the descriptor: 0600 from birth. The 0700 folder
        # covers for macOS, which refuses this.
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
    """Remove what a daemon with our pid left when it was killed between bind and rename."""
    found = _identity_of(path)
    if found is not None:
        os.unlink(path)


def _identity_of(path: bytes) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISSOCK(found.st_mode) else None
