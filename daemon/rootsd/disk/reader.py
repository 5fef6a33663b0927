"""Read files and folders of hostile repositories: never block, never follow links.

A repository may have a FIFO, a device, or a link where a program expects a file. Opening a FIFO in
the usual way hangs the program, and a link may lead anywhere. So the functions that read return
None for everything but regular files.

No function follows a link in any component of an absolute path. So it does no harm if someone
replaces a folder with a link between a check and a read. The same is true for a name inside an
open folder. Such a name cannot lead out of the folder either.

An `OpenFolder` is open during a whole check, so each answer is about the same folder. A lookup in
an open folder takes a quarter of the time of a lookup by its whole path.

Sources: openat2(2); open(2) and stat(2) on macOS.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Callable
from typing import Self

from rootsd.disk.inode import birth_time_ns_fd

REF_CAP = 4 << 10
NOTE_CAP = 256
CONFIG_CAP = 256 << 10
_MAX_SEARCHED, _PIECE = 64 << 20, 1 << 20
_MIN_READ_BYTES = 4 << 10

_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# For the stat of an entry, even if it is a link, without opening it. macOS has no O_PATH.
_ANY_FLAGS = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC

_ENCODING = sys.getfilesystemencoding()
_ON_ERROR = sys.getfilesystemencodeerrors()

_OPENAT2 = 437  # the same on every architecture
_AT_FDCWD = -100
_NO_LINKS = 0x04 | 0x02  # RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS
_HOW = struct.Struct("QQQ")
_NO_FOLLOW_ANY = 0x20000000  # macOS: O_NOFOLLOW for each component


def _open_by_components(path: bytes, flags: int, dir_fd: int | None = None) -> int:
    """Open an absolute path, or one in the folder open at `dir_fd`, one folder at a time.

    Raises OSError.
    """
    *above, last = [part for part in path.split(b"/") if part] or [b"."]
    current = os.open(b"/" if dir_fd is None else b".", _FOLDER_FLAGS, dir_fd=dir_fd)
    try:
        for part in above:
            below = os.open(part, _FOLDER_FLAGS, dir_fd=current)
            os.close(current)
            current = below
        return os.open(last, flags, dir_fd=current)
    finally:
        os.close(current)


if sys.platform == "linux":
    _syscall = ctypes.CDLL(None, use_errno=True).syscall
    _syscall.argtypes = [
        ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t,
    ]  # fmt: skip
    _syscall.restype = ctypes.c_long
    _OPEN_HOW = {
        flags: _HOW.pack(flags, 0, _NO_LINKS) for flags in (_FILE_FLAGS, _FOLDER_FLAGS, _ANY_FLAGS)
    }

    def _open_by_openat2(path: bytes, flags: int, dir_fd: int | None = None) -> int:
        if b"\0" in path:
            raise ValueError("embedded null byte")
        start = _AT_FDCWD if dir_fd is None else dir_fd
        fd = int(_syscall(_OPENAT2, start, path, _OPEN_HOW[flags], _HOW.size))
        if fd < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), path)
        return fd

    def _offers_openat2() -> bool:
        """Return whether openat2(2) works. Kernels before 5.6 and some sandboxes lack it."""
        try:
            os.close(_open_by_openat2(b"/", _FOLDER_FLAGS))
        except OSError:
            return False
        return True

    _open_canonical = _open_by_openat2 if _offers_openat2() else _open_by_components

else:

    def _open_canonical(path: bytes, flags: int, dir_fd: int | None = None) -> int:
        return os.open(path, flags | _NO_FOLLOW_ANY, dir_fd=dir_fd)


def _open(path: bytes, flags: int, dir_fd: int | None = None) -> int:
    """Open `path` without following any link, and return the descriptor.

    `path` is absolute, or relative to the folder open at `dir_fd`. Raises OSError.
    """
    if dir_fd is None:
        return _open_canonical(path, flags)
    if is_single_component(path):
        return os.open(path, flags, dir_fd=dir_fd)
    return _open_canonical(path, flags, dir_fd)


def is_single_component(path: bytes) -> bool:
    """Return whether a path inside a folder is a direct entry. Then no link can be on the way.

    Raises OSError (EXDEV) for a path that leads out of the folder.
    """
    if b"/" not in path and path != b"..":
        return True
    if path.startswith(b"/") or b".." in path.split(b"/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    return False


def read_small(path: bytes, cap: int, dir_fd: int | None = None) -> bytes | None:
    """Return the first `cap` bytes of a regular file, or None for anything else or on failure.

    `path` is absolute, or relative to the folder open at `dir_fd`.
    """

    def read(fd: int, file_size: int) -> bytes:
        # Do not allocate `cap` bytes if the file is small: a buffer of megabytes takes four times
        # as long as the read. Some file systems report the size 0 for every file.
        room = max(file_size, _MIN_READ_BYTES) if file_size else cap
        return os.read(fd, min(cap, room))

    return _read_regular_file(path, dir_fd, read)


def read_tail(path: bytes, size: int, dir_fd: int | None = None) -> bytes | None:
    """Return the last `size` bytes of a regular file that is at least that long, else None."""

    def read(fd: int, file_size: int) -> bytes | None:
        return os.pread(fd, size, file_size - size) if file_size >= size else None

    return _read_regular_file(path, dir_fd, read)


def file_contains(path: bytes, text: bytes) -> bool:
    """Return whether a regular file at an absolute path contains `text`.

    This reads the file in pieces. A file of more than `_MAX_SEARCHED` bytes counts as containing
    every text.
    """

    def search(fd: int, file_size: int) -> bytes | None:
        if file_size > _MAX_SEARCHED:
            return text
        tail, at = b"", 0
        while piece := os.pread(fd, min(_PIECE, _MAX_SEARCHED - at), at):
            if text in tail + piece:
                return text
            tail, at = piece[-len(text) :], at + len(piece)
        return None

    return _read_regular_file(path, None, search) is not None


def _read_regular_file(
    path: bytes, dir_fd: int | None, read: Callable[[int, int], bytes | None]
) -> bytes | None:
    """Return what `read` returns for the descriptor and size of a regular file, else None."""
    try:
        fd = _open(path, _FILE_FLAGS, dir_fd)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(fd)
        return read(fd, found.st_size) if stat.S_ISREG(found.st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)


def open_folder(path: bytes, dir_fd: int | None = None) -> int:
    """Open a folder without following any link, and return the descriptor.

    Close it soon, because an open descriptor makes an unmount fail. Raises OSError, and ValueError
    for a path with a NUL byte.
    """
    return _open(path, _FOLDER_FLAGS, dir_fd)


def open_path(path: bytes, dir_fd: int | None = None) -> int:
    """Return a descriptor that allows stat but not reading, of a file, folder, or link.

    Linux only. Raises OSError (ELOOP for a link on the way), and ValueError for a NUL byte.
    """
    return _open(path, _ANY_FLAGS, dir_fd)


if sys.platform == "linux":

    def stat_no_follow(path: bytes, dir_fd: int | None = None) -> os.stat_result:
        """Return the lstat(2) result. Raises the errors of `open_path`: no link on the way."""
        if dir_fd is not None and is_single_component(path):
            return os.lstat(path, dir_fd=dir_fd)
        fd = open_path(path, dir_fd)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

else:

    def stat_no_follow(path: bytes, dir_fd: int | None = None) -> os.stat_result:
        """Return the lstat(2) result. Raises OSError, also for a link on the way."""
        if dir_fd is not None and is_single_component(path):
            return os.lstat(path, dir_fd=dir_fd)
        above, name = os.path.split(path)
        fd = open_folder(above, dir_fd)
        try:
            return os.lstat(name or b".", dir_fd=fd)
        finally:
            os.close(fd)


def exists_no_follow(path: bytes) -> bool:
    """Return whether an absolute path exists; a link counts. False if a link is on the way."""
    try:
        stat_no_follow(path)
    except (OSError, ValueError):
        return False
    return True


def is_folder_no_follow(path: bytes) -> bool:
    """Return whether an absolute path is a folder. False if a link is on the way."""
    try:
        return stat.S_ISDIR(stat_no_follow(path).st_mode)
    except (OSError, ValueError):
        return False


def is_link(path: bytes) -> bool:
    """Return whether an absolute path is a symbolic link. False if a link is on the way."""
    try:
        return stat.S_ISLNK(stat_no_follow(path).st_mode)
    except (OSError, ValueError):
        return False


def list_names(path: bytes) -> frozenset[bytes]:
    """Return the names in a folder; empty if it cannot be listed."""
    try:
        fd = open_folder(path)
    except (OSError, ValueError):
        return frozenset()
    try:
        return list_names_fd(fd)
    finally:
        os.close(fd)


def list_names_fd(fd: int) -> frozenset[bytes]:
    """Return the names in the folder open at `fd`; empty if it cannot be listed."""
    try:
        names = os.listdir(fd)
    except OSError:
        return frozenset()
    # This does the same as os.fsencode, in a third of the time.
    return frozenset([name.encode(_ENCODING, _ON_ERROR) for name in names])


def resolve_path(base: bytes, path: bytes) -> bytes:
    """Return `path`, relative to the folder `base`, as an absolute path without `..`.

    The kernel would resolve `..` after following links. This resolves it in the text, so the path
    that rootsd checks is the path that it opens.
    """
    return os.path.normpath(os.path.join(base, path))


if sys.platform == "linux":

    def birth_time_ns(path: bytes, dir_fd: int | None = None) -> int | None:
        """Return the birth time in nanoseconds of an entry, even of a link itself, or None."""
        try:
            fd = open_path(path, dir_fd)
        except (OSError, ValueError):
            return None
        try:
            return birth_time_ns_fd(fd, os.fstat(fd))
        finally:
            os.close(fd)

else:

    def birth_time_ns(path: bytes, dir_fd: int | None = None) -> int | None:
        """Return the birth time in nanoseconds of an entry, even of a link itself, or None."""
        try:
            return birth_time_ns_fd(-1, stat_no_follow(path, dir_fd))
        except (OSError, ValueError):
            return None


_CLOSED = -1
# Some sandboxes refuse faccessat2(2), and then every entry would seem to be absent.
_CAN_USE_ACCESS = os.access(b"/", os.F_OK, follow_symlinks=False)


class OpenFolder:
    """An open folder, at the absolute path `path`. A link on the way counts as a failure.

    Names are relative to the folder and may contain slashes. No method follows a link, and a name
    that leads out of the folder finds nothing. If the folder cannot be opened, `failure` is the
    error, and the folder seems to be empty.

    Close it soon, because an open descriptor makes an unmount fail.
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor. Then the folder seems to be empty. A second call does nothing."""
        fd, self.fd = self.fd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)

    def folder(self, name: bytes) -> OpenFolder:
        """Open a folder inside this one. The caller must close it."""
        return OpenFolder(self.path + b"/" + name, name, self.fd)

    def read(self, name: bytes, cap: int) -> bytes | None:
        """Read a file as `rootsd.disk.reader.read_small` does."""
        return read_small(name, cap, self.fd)

    def read_tail(self, name: bytes, size: int) -> bytes | None:
        """Read the end of a file as `rootsd.disk.reader.read_tail` does."""
        return read_tail(name, size, self.fd)

    def stat(self, name: bytes) -> os.stat_result:
        """Return the lstat(2) result. Raises OSError, and ValueError for a NUL byte."""
        return stat_no_follow(name, self.fd)

    def born_ns(self, name: bytes) -> int | None:
        """Return the birth time as `rootsd.disk.reader.birth_time_ns` does."""
        return birth_time_ns(name, self.fd)

    def exists(self, name: bytes) -> bool:
        """Return whether an entry exists; a link counts."""
        try:
            if _CAN_USE_ACCESS and is_single_component(name):
                # Takes half the time of lstat(2).
                return os.access(name, os.F_OK, dir_fd=self.fd, follow_symlinks=False)
            self.stat(name)
        except (OSError, ValueError):
            return False
        return True

    def is_folder(self, name: bytes) -> bool:
        """Return whether an entry is a folder."""
        try:
            return stat.S_ISDIR(self.stat(name).st_mode)
        except (OSError, ValueError):
            return False

    def names(self) -> frozenset[bytes]:
        """Return the names in the folder; empty if it cannot be listed."""
        # os.listdir(-1) would list the working directory.
        return frozenset() if self.fd == _CLOSED else list_names_fd(self.fd)

    def names_in(self, name: bytes) -> frozenset[bytes]:
        """Return the names in a folder inside this one; empty if that cannot be listed."""
        with self.folder(name) as folder:
            return folder.names()
