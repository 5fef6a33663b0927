"""Distinguish an open file from another one with its inode number: by file handle or birth time.

File systems reuse inode numbers. The kernel's file handle includes the generation of the inode, so
it differs for a file that reuses the number. Only Linux has file handles, and not for every file
system. On overlayfs, the first change of a file copies it, and gives it another birth time. The
handle of the original stays, but since Linux 6.6 only, and only for comparison (AT_HANDLE_FID).
Where the kernel has no better one, it makes such a handle from the inode number alone, so only
those of overlayfs count. Sources: name_to_handle_at(2), statx(2), fs/overlayfs/overlayfs.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from rootsd.core.quick_tuple import NamedTuple

FUSE = 0x65735546
"""The type of all file systems that a program serves, and of virtiofs: <linux/magic.h>."""
_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_NO_AUTOMOUNT = 0x800
_AT_EMPTY_PATH = 0x1000
_AT_STATX_DONT_SYNC = 0x4000
_AT_HANDLE_FID = 0x200
_OVERLAY_HANDLE = 0xF8
_HANDLE_HEADER = struct.Struct("Ii")
_MAX_HANDLE = 128
_STATX_BTIME = 0x800
_BTIME_OFFSET = 80
_STATX_MNT_ID_UNIQUE = 0x4000
_MNT_ID_OFFSET = 144
# Creating an instance of these types costs a tenth of `create_string_buffer`.
_HandleBuffer = ctypes.c_char * (_HANDLE_HEADER.size + _MAX_HANDLE)
_StatxBuffer = ctypes.c_char * 256


class StatxFacts(NamedTuple):
    """What statx(2) adds to stat(2).

    * `born_ns`: the birth time in nanoseconds since the epoch, or None if there is none.
    * `mount_number`: the number of the mount that has the file. No other mount gets it until the
      machine starts again. None before Linux 6.8.
    """

    born_ns: int | None
    mount_number: int | None


if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _name_to_handle_at = _libc.name_to_handle_at
    _name_to_handle_at.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
    ]  # fmt: skip
    _statx = _libc.statx
    _statx.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p,
    ]  # fmt: skip

    _fstatfs = _libc.fstatfs
    _fstatfs.argtypes = [ctypes.c_int, ctypes.c_void_p]

    def file_handle(fd: int) -> bytes | None:
        """Return the type and the bytes of the handle, or None if the file system has none."""
        found = _read_handle(fd, _AT_EMPTY_PATH)
        if found is None and ctypes.get_errno() == errno.EOPNOTSUPP:
            found = _read_handle(fd, _AT_EMPTY_PATH | _AT_HANDLE_FID)
            if found is not None and found[0] != _OVERLAY_HANDLE:
                return None
        return None if found is None else struct.pack("i", found[0]) + found[1]

    def _read_handle(fd: int, flags: int) -> tuple[int, bytes] | None:
        buffer = _HandleBuffer()
        _HANDLE_HEADER.pack_into(buffer, 0, _MAX_HANDLE, 0)
        mount_id = ctypes.c_int()
        if _name_to_handle_at(fd, b"", buffer, ctypes.byref(mount_id), flags) < 0:
            return None
        size, kind = _HANDLE_HEADER.unpack_from(buffer, 0)
        return int(kind), buffer.raw[_HANDLE_HEADER.size : _HANDLE_HEADER.size + int(size)]

    def statx_facts(fd: int, found: os.stat_result) -> StatxFacts:  # noqa: ARG001
        """Return what statx(2) adds to `found`, the stat result of the open file."""
        buffer = _StatxBuffer()
        if _statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME | _STATX_MNT_ID_UNIQUE, buffer) < 0:
            return StatxFacts(None, None)
        return _facts_in(buffer)

    def mount_number_at(point: bytes) -> int | None:
        """Return the number of the mount at a mount point, without asking its server, or None."""
        buffer = _StatxBuffer()
        flags = _AT_SYMLINK_NOFOLLOW | _AT_NO_AUTOMOUNT | _AT_STATX_DONT_SYNC
        if _statx(_AT_FDCWD, point, flags, _STATX_MNT_ID_UNIQUE, buffer) < 0:
            return None
        return _facts_in(buffer).mount_number

    def file_system_type(fd: int) -> int:
        """Return the type of the file system, a number in <linux/magic.h>. Raises OSError."""
        buffer = _StatxBuffer()
        if _fstatfs(fd, buffer) < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        # It is a `long`, but an `unsigned int` on s390. All types have 32 bits.
        whole = int(struct.unpack_from("l", buffer, 0)[0]) & 0xFFFFFFFFFFFFFFFF
        return whole & 0xFFFFFFFF if sys.byteorder == "little" or whole < 1 << 32 else whole >> 32

    def _facts_in(buffer: ctypes.Array[ctypes.c_char]) -> StatxFacts:
        mask = struct.unpack_from("I", buffer, 0)[0]
        born_ns = mount_number = None
        if mask & _STATX_BTIME:
            seconds, nanoseconds = struct.unpack_from("qI", buffer, _BTIME_OFFSET)
            born_ns = int(seconds) * 10**9 + int(nanoseconds)
        if mask & _STATX_MNT_ID_UNIQUE:
            mount_number = int(struct.unpack_from("Q", buffer, _MNT_ID_OFFSET)[0])
        return StatxFacts(born_ns, mount_number)

    def read_birth_time_ns(fd: int, found: os.stat_result) -> int | None:  # noqa: ARG001
        """Return the birth time of the open file in nanoseconds, or None if there is none.

        `found` is its stat result. Raises OSError if statx(2) fails.
        """
        buffer = _StatxBuffer()
        if _statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return _facts_in(buffer).born_ns

else:

    def file_handle(fd: int) -> bytes | None:  # noqa: ARG001
        """Return None."""
        return None

    def statx_facts(fd: int, found: os.stat_result) -> StatxFacts:
        """Return the birth time of the open file, whose stat result is `found`."""
        return StatxFacts(read_birth_time_ns(fd, found), None)

    def mount_number_at(point: bytes) -> int | None:  # noqa: ARG001
        """Return None."""
        return None

    def file_system_type(fd: int) -> int:  # noqa: ARG001
        """Return 0."""
        return 0

    def read_birth_time_ns(fd: int, found: os.stat_result) -> int | None:  # noqa: ARG001
        """Return the birth time of the open file in nanoseconds, or None if there is none.

        `found` is its stat result.
        """
        born = getattr(found, "st_birthtime_ns", None)
        return born or int(getattr(found, "st_birthtime", 0) * 10**9) or None


def birth_time_ns_fd(fd: int, found: os.stat_result) -> int | None:
    """Return the birth time of the open file in nanoseconds, or None if it is unknown."""
    try:
        return read_birth_time_ns(fd, found)
    except OSError:
        return None
