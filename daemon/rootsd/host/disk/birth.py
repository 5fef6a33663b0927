"""Tells when a file was born, which no program can set. Sources: statx(2), stat(2) of macOS."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from rootsd.host.disk.reader import open_any, stat_inside

_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
_BTIME_OFFSET = 80
# A type: to make one of it costs a tenth of what `create_string_buffer` does.
_StatxBuffer = ctypes.c_char * 256

if sys.platform == "linux":
    _statx = ctypes.CDLL(None, use_errno=True).statx
    _statx.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p,
    ]  # fmt: skip

    def read_birth(fd: int, found: os.stat_result) -> int | None:  # noqa: ARG001
        """Return the birth time of the open file in nanoseconds, or None if it is not kept.

        `found` is its stat result. Raises OSError if the system cannot tell.
        """
        buffer = _StatxBuffer()
        if _statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        if not struct.unpack_from("I", buffer, 0)[0] & _STATX_BTIME:
            return None
        seconds, nanoseconds = struct.unpack_from("qI", buffer, _BTIME_OFFSET)
        return int(seconds) * 10**9 + int(nanoseconds)

    def born_ns_of(fd: int, found: os.stat_result) -> int | None:
        """Return the birth time of the open file in nanoseconds, or None if it is not known."""
        try:
            return read_birth(fd, found)
        except OSError:
            return None

    def born_ns(path: bytes, dir_fd: int | None = None) -> int | None:
        """The same of what lies at `path`, a link itself; None also where nothing does."""
        try:
            fd = open_any(path, dir_fd)
        except (OSError, ValueError):
            return None
        try:
            return born_ns_of(fd, os.fstat(fd))
        finally:
            os.close(fd)

else:

    def read_birth(fd: int, found: os.stat_result) -> int | None:  # noqa: ARG001
        """Return the birth time of the open file in nanoseconds, or None if it is not kept.

        `found` is its stat result.
        """
        born = getattr(found, "st_birthtime_ns", None)
        return born or int(getattr(found, "st_birthtime", 0) * 10**9) or None

    born_ns_of = read_birth

    def born_ns(path: bytes, dir_fd: int | None = None) -> int | None:
        """The same of what lies at `path`, a link itself; None also where nothing does."""
        try:
            return born_ns_of(-1, stat_inside(path, dir_fd))
        except (OSError, ValueError):
            return None
