"""A folder held open for a look, so that all that is said of it is said of one folder.

To ask for what is in it from there costs a quarter of what the whole path costs, and nothing can
come in the way above it.
"""

from __future__ import annotations

import os
import stat
from types import TracebackType
from typing import Self

from rootsd.host.disk.birth import born_ns
from rootsd.host.disk.reader import (
    is_one_name,
    names_of,
    open_folder,
    read_small,
    read_tail,
    stat_inside,
)

_CLOSED = -1
# Some sandboxes refuse faccessat2(2), and then nothing would seem to be there.
_ACCESS_ANSWERS = os.access(b"/", os.F_OK, follow_symlinks=False)


class Opened:
    """The folder at the absolute path `path`, which no link leads to; close it at once: a
    descriptor that is held makes an unmount fail.

    Names are of what is in it, with slashes where that lies deeper. No link is followed there
    either, and a name that leads out of the folder finds nothing. Of a folder that cannot be
    opened `failure` tells why, and nothing is in it.
    """

    __slots__ = ("failure", "fd", "path")

    def __init__(self, path: bytes, name: bytes | None = None, dir_fd: int | None = None) -> None:
        self.path = path
        self.fd = _CLOSED
        self.failure: OSError | ValueError | None = None
        try:
            self.fd = open_folder(path if name is None else name, dir_fd)
        except (OSError, ValueError) as failure:
            self.failure = failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hold it no more: from then on nothing is in it. Again is harmless."""
        fd, self.fd = self.fd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)

    def folder(self, name: bytes) -> Opened:
        """A folder in it, held open as well; to be closed by itself."""
        return Opened(self.path + b"/" + name, name, self.fd)

    def read(self, name: bytes, cap: int) -> bytes | None:
        """As `rootsd.host.disk.reader.read_small`."""
        return read_small(name, cap, self.fd)

    def read_tail(self, name: bytes, size: int) -> bytes | None:
        """As `rootsd.host.disk.reader.read_tail`."""
        return read_tail(name, size, self.fd)

    def stat(self, name: bytes) -> os.stat_result:
        """As lstat(2). Raises OSError, and ValueError for a NUL byte."""
        return stat_inside(name, self.fd)

    def born_ns(self, name: bytes) -> int | None:
        """As `rootsd.host.disk.birth.born_ns`."""
        return born_ns(name, self.fd)

    def exists(self, name: bytes) -> bool:
        """Whether anything, a link as well, is there."""
        try:
            if _ACCESS_ANSWERS and is_one_name(name):
                # In half the time that lstat(2) takes.
                return os.access(name, os.F_OK, dir_fd=self.fd, follow_symlinks=False)
            self.stat(name)
        except (OSError, ValueError):
            return False
        return True

    def is_folder(self, name: bytes) -> bool:
        """Whether a folder is there."""
        try:
            return stat.S_ISDIR(self.stat(name).st_mode)
        except (OSError, ValueError):
            return False

    def names(self) -> frozenset[bytes]:
        """What is in it; nothing if it cannot be listed."""
        # Of no descriptor os.listdir gives what is in the working directory.
        return frozenset() if self.fd == _CLOSED else names_of(self.fd)

    def names_in(self, name: bytes) -> frozenset[bytes]:
        """What is in a folder in it; nothing if that cannot be listed."""
        with self.folder(name) as folder:
            return folder.names()
