"""Identifies directories, so that one can be told from another that takes its path later.

An inode number alone is reused at once (on ext4 in 200 of 200 rounds of delete and recreate). The
kernel's file handle holds the inode's generation; where a file system gives none (overlayfs) the
birth time stands in. Sources: name_to_handle_at(2), statx(2), ioctl FS_IOC_GETFSUUID, statvfs(3).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from dataclasses import replace
from enum import Enum
from functools import lru_cache

from rootsd.core.model import GitEntry, Identity
from rootsd.host.disk.leads import may_follow
from rootsd.host.disk.reader import open_folder
from rootsd.host.vcs.gitdir import target_of_git_file

_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
_STATX_SIZE = 256
_BTIME_OFFSET = 80
_HANDLE_HEADER = struct.Struct("Ii")
_MAX_HANDLE = 128
# Types: to make one of them costs a tenth of what `create_string_buffer` does.
_HandleBuffer = ctypes.c_char * (_HANDLE_HEADER.size + _MAX_HANDLE)
_StatxBuffer = ctypes.c_char * _STATX_SIZE
_FS_IOC_GETFSUUID = 0x80111500


class Absence(Enum):
    """What a failure to reach a path says about it."""

    GONE = "gone"
    UNREACHABLE = "unreachable"


class _LinuxFacts:
    """Handle, birth time and file system id of an open folder, from the Linux kernel."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle_of = libc.name_to_handle_at
        self._handle_of.argtypes = [
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_int,
        ]
        self._statx = libc.statx
        self._statx.argtypes = [
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.c_uint,
            ctypes.c_void_p,
        ]

    def handle(self, fd: int) -> bytes | None:
        """The file handle, its type in front; None where the file system has none."""
        buffer = _HandleBuffer()
        _HANDLE_HEADER.pack_into(buffer, 0, _MAX_HANDLE, 0)
        mount_id = ctypes.c_int()
        if self._handle_of(fd, b"", buffer, ctypes.byref(mount_id), _AT_EMPTY_PATH) < 0:
            return None
        size, kind = _HANDLE_HEADER.unpack_from(buffer, 0)
        end = _HANDLE_HEADER.size + int(size)
        return struct.pack("i", kind) + buffer.raw[_HANDLE_HEADER.size : end]

    def born_ns(self, fd: int) -> int | None:
        """The birth time in nanoseconds, None where it is not kept."""
        buffer = _StatxBuffer()
        if self._statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) < 0:
            return None
        if not struct.unpack_from("I", buffer, 0)[0] & _STATX_BTIME:
            return None
        seconds, nanoseconds = struct.unpack_from("qI", buffer, _BTIME_OFFSET)
        return int(seconds) * 10**9 + int(nanoseconds)


if sys.platform == "linux":
    import fcntl

    _FACTS = _LinuxFacts()

    def _details(fd: int, _found: os.stat_result) -> tuple[bytes | None, int | None]:
        return _FACTS.handle(fd), _FACTS.born_ns(fd)

    def _file_system_uuid(fd: int) -> bytes | None:
        buffer = bytearray(17)
        try:
            fcntl.ioctl(fd, _FS_IOC_GETFSUUID, buffer)
        except OSError:
            return None
        return bytes(buffer[1 : 1 + buffer[0]])

else:

    def _details(_fd: int, found: os.stat_result) -> tuple[bytes | None, int | None]:
        born = getattr(found, "st_birthtime_ns", None)
        if born is None:
            born = int(getattr(found, "st_birthtime", 0) * 10**9) or None
        return None, born

    def _file_system_uuid(_fd: int) -> bytes | None:
        return None


def _file_system_of(fd: int) -> bytes:
    uuid = _file_system_uuid(fd)
    # An image made without a UUID answers with zeros.
    if uuid is not None and any(uuid):
        return _shared(b"uuid:" + uuid)
    return _shared(b"fsid:%x" % (os.fstatvfs(fd).f_fsid & 0xFFFFFFFFFFFFFFFF))


@lru_cache(maxsize=64)
def _shared(filesystem: bytes) -> bytes:
    """The same object each time: thousands of identities hold it."""
    return filesystem


def identify(path: bytes) -> Identity:
    """The identity of the directory at `path`, all of it from one descriptor.

    Raises OSError: NotADirectoryError also for a link, whatever it leads to; FileNotFoundError,
    PermissionError and so on as open(2) says; TimeoutError where its `.git` file leads to where
    nobody answers.
    """
    try:
        fd = open_folder(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotADirectoryError(errno.ENOTDIR, "a link, not a folder", path) from error
        raise
    try:
        entry = _git_entry(fd)
        target = _git_target(fd, path) if entry is GitEntry.FILE else None
        return replace(_identity_of(fd), git=entry, git_target=target)
    finally:
        os.close(fd)


def _identity_of(fd: int) -> Identity:
    found = os.fstat(fd)
    handle, born_ns = _details(fd, found)
    return Identity(
        filesystem=_file_system_of(fd),
        inode=found.st_ino,
        handle=handle,
        born_ns=born_ns,
        owner=found.st_uid,
    )


def _git_entry(fd: int) -> GitEntry:
    """Raises OSError where the folder may not be searched: then nothing can be said of it."""
    try:
        mode = os.lstat(b".git", dir_fd=fd).st_mode
    except FileNotFoundError:
        return GitEntry.NONE
    return GitEntry.FOLDER if stat.S_ISDIR(mode) else GitEntry.FILE


def _git_target(fd: int, path: bytes) -> Identity | None:
    """The directory that the file `.git` in the folder open at `fd`, `path`, leads to.

    Raises TimeoutError where a look there might not end: then nothing can be said of the folder.
    """
    target = target_of_git_file(path, fd)
    if target is None:
        return None
    if not may_follow(target):
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), target)
    try:
        leads_to = open_folder(target)
    except (OSError, ValueError):
        return None
    try:
        return _identity_of(leads_to)
    finally:
        os.close(leads_to)


def file_system(path: bytes) -> bytes:
    """The id of the file system that holds the directory `path`. Raises OSError."""
    fd = open_folder(path)
    try:
        return _file_system_of(fd)
    finally:
        os.close(fd)


def absence(path: bytes, within: bytes | None, filesystem: bytes | None) -> Absence | None:
    """Whether nothing is at `path` (proven), or nothing can be said; None if a directory is there.

    `within` is the configured parent, or None for a folder that lies in none: then the folder that
    should hold it must be there. `filesystem` is where the project was last seen: if its nearest
    living ancestor lies on another one, a file system was unmounted or mounted over, and an empty
    mount point proves nothing.
    """
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return None
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:
        return Absence.UNREACHABLE
    anchor = within if within is not None and within != path else os.path.dirname(path)
    try:
        if not stat.S_ISDIR(os.lstat(anchor).st_mode):
            return Absence.UNREACHABLE
        living = _nearest_living(path)
        same = filesystem is None or file_system(living) == filesystem
    except OSError:
        return Absence.UNREACHABLE
    return Absence.GONE if same else Absence.UNREACHABLE


def _nearest_living(path: bytes) -> bytes:
    """The nearest ancestor of `path` that is a directory. OSError if out of reach."""
    above = os.path.dirname(path)
    while above != os.path.dirname(above):
        try:
            if stat.S_ISDIR(os.lstat(above).st_mode):
                return above
        except (FileNotFoundError, NotADirectoryError):
            pass
        above = os.path.dirname(above)
    return above
