"""Restrict this process's access to files and TCP with Landlock.

A ruleset refuses everything that no `allow` names, and from version 4 on all TCP. No version of
Landlock so far covers chmod, chown, utime, extended attributes, and UDP.
Source: landlock(7), linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from enum import IntFlag

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38
_NEWEST_KNOWN = 5
_TCP_SINCE = 4
_ALL_TCP = 3  # to bind and to connect


class Right(IntFlag):
    """The rights on files. The values are the kernel's."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_FOLDER = 1 << 3
    REMOVE_FOLDER = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHARACTER_DEVICE = 1 << 6
    MAKE_FOLDER = 1 << 7
    MAKE_FILE = 1 << 8
    MAKE_SOCKET = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK_DEVICE = 1 << 11
    MAKE_LINK = 1 << 12
    MOVE_BETWEEN_FOLDERS = 1 << 13
    TRUNCATE = 1 << 14
    CONTROL_DEVICE = 1 << 15


READ = Right.READ_FILE | Right.READ_FOLDER
# All rights that ordinary files in a folder need; no programs, devices, FIFOs, or sockets.
WRITE = (
    READ
    | Right.WRITE_FILE
    | Right.REMOVE_FOLDER
    | Right.REMOVE_FILE
    | Right.MAKE_FOLDER
    | Right.MAKE_FILE
    | Right.MAKE_LINK
    | Right.MOVE_BETWEEN_FOLDERS
    | Right.TRUNCATE
)
_FILE_RIGHTS = (
    Right.EXECUTE
    | Right.WRITE_FILE
    | Right.READ_FILE
    | Right.TRUNCATE
    | Right.CONTROL_DEVICE
)  # fmt: skip
_RIGHTS_BY_VERSION = {
    1: (1 << 13) - 1,
    2: (1 << 14) - 1,
    3: (1 << 15) - 1,
    4: (1 << 15) - 1,
    5: (1 << 16) - 1,
}

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the version of Landlock in the kernel, or 0 if it is missing or disabled."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_VERSION))
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
            return 0
        raise


class Ruleset:
    """The accesses that stay allowed. Raises OSError (ENOSYS) if the kernel has no Landlock."""

    def __init__(self) -> None:
        offered = version()
        if not offered:
            raise OSError(errno.ENOSYS, "this kernel offers no Landlock")
        self._handled = Right(_RIGHTS_BY_VERSION[min(offered, _NEWEST_KNOWN)])
        attributes = struct.pack("=Q", self._handled)
        if offered >= _TCP_SINCE:
            attributes += struct.pack("=Q", _ALL_TCP)
        self._fd = _call(
            _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)
        )

    def allow(self, path: bytes, rights: Right) -> None:
        """Keep `rights` for `path` and everything below it. Raises OSError if it is missing."""
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                rights &= _FILE_RIGHTS
            rule = struct.pack("=Qi", rights & self._handled, fd)
            _call(
                _ADD_RULE,
                ctypes.c_int(self._fd),
                ctypes.c_int(_PATH_BENEATH),
                rule,
                ctypes.c_uint32(0),
            )
        finally:
            os.close(fd)

    def restrict(self) -> None:
        """Drop all other rights, for this thread and all that it starts later.

        Call this once, before the process starts a second thread: other threads would keep their
        rights. Raises OSError.
        """
        if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "new privileges cannot be given up")
        _call(_RESTRICT_SELF, ctypes.c_int(self._fd), ctypes.c_uint32(0))
        os.close(self._fd)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
