"""Distinguish an open file from another one with its inode number: by file handle or birth time.

File systems reuse inode numbers. The kernel's file handle includes the generation of the inode, so
it differs for a file that reuses the number. Only Linux has file handles, and not for every file
system. Sources: name_to_handle_at(2), statx(2).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_AT_EMPTY_PATH = 0x1000
_HANDLE_HEADER = struct.Struct("Ii")
_MAX_HANDLE = 128
_STATX_BTIME = 0x800
_BTIME_OFFSET = 80
# Creating an instance of these types costs a tenth of `create_string_buffer`.
_HandleBuffer = ctypes.c_char * (_HANDLE_HEADER.size + _MAX_HANDLE)
_StatxBuffer = ctypes.c_char * 256


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

    def file_handle(fd: int) -> bytes | None:
        """Return the type and the bytes of the handle, or None if the file system has none."""
        buffer = _HandleBuffer()
        _HANDLE_HEADER.pack_into(buffer, 0, _MAX_HANDLE, 0)
        mount_id = ctypes.c_int()
        if _name_to_handle_at(fd, b"", buffer, ctypes.byref(mount_id), _AT_EMPTY_PATH) < 0:
            return None
        size, kind = _HANDLE_HEADER.unpack_from(buffer, 0)
        end = _HANDLE_HEADER.size + int(size)
        return struct.pack("i", kind) + buffer.raw[_HANDLE_HEADER.size : end]

    def read_birth_time_ns(fd: int, found: os.stat_result) -> int | None:  # noqa: ARG001
        """Return the birth time of the open file in nanoseconds, or None if there is none.

        `found` is its stat result. Raises OSError if statx(2) fails.
        """
        buffer = _StatxBuffer()
        if _statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        if not struct.unpack_from("I", buffer, 0)[0] & _STATX_BTIME:
            return None
        seconds, nanoseconds = struct.unpack_from("qI", buffer, _BTIME_OFFSET)
        return int(seconds) * 10**9 + int(nanoseconds)

else:

    def file_handle(fd: int) -> bytes | None:  # noqa: ARG001
        """Return None."""
        return None

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
