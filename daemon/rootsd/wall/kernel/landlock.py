"""Restrict this process's access to files, TCP, signals, and abstract sockets with Landlock.

A ruleset refuses everything that no `allow` names. By default that includes all TCP, from version
4 on. No version of Landlock so far covers chmod, chown, utime, extended attributes, and UDP.

`restrict_to_attached` is a rule of another kind. It allows everything below `/`, which seems to
allow all. But Landlock looks for the rule from the file upward. A folder that has been unmounted
hangs below nothing, so no open descriptor or working directory in it is of any use. This makes a
lazy unmount a real revocation.
Source: landlock(7), linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from enum import Enum, IntEnum, IntFlag

from rootsd.wall.system_calls import ProcessOption, call, closing, set_process_option

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_VERSION = 1
_PATH_BENEATH = 1
_NEWEST_KNOWN = 5
_TCP_SINCE = 4
SCOPES_SINCE = 6
"""The version that limits signals and abstract sockets."""
_ALL_TCP = 3  # to bind and to connect
_SCOPE_SIGNALS = 2
_ALL_SCOPES = 3  # abstract sockets and signals


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
# How many of the rights each version knows.
_KNOWN_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


def version() -> int:
    """Return the version of Landlock in the kernel, or 0 if it is missing or disabled."""
    if sys.platform != "linux":
        return 0
    try:
        return _create(b"", _CREATE_VERSION)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
            return 0
        raise


class Coverage(Enum):
    """What a ruleset refuses besides files, where the kernel's version can."""

    TCP = "TCP"
    OUTSIDE = "signals and abstract sockets to processes that are not restricted by it"


READ_ALL = READ | Right.EXECUTE
"""The rights on files that are to be read and run."""
_ALL = ~Right(0)
NO_DEVICES = Right.MAKE_CHARACTER_DEVICE | Right.MAKE_BLOCK_DEVICE


class Ruleset:
    """The accesses that stay allowed. Raises OSError (ENOSYS) if the kernel has no Landlock.

    `offered` is the version to use, by default the kernel's.
    """

    def __init__(self, coverage: Coverage = Coverage.TCP, offered: int | None = None) -> None:
        offered = version() if offered is None else offered
        if not offered:
            raise OSError(errno.ENOSYS, "this kernel offers no Landlock")
        self._handled = Right((1 << _KNOWN_RIGHTS[min(offered, _NEWEST_KNOWN)]) - 1)
        attributes = struct.pack("=Q", self._handled)
        if coverage is Coverage.TCP and offered >= _TCP_SINCE:
            attributes += struct.pack("=Q", _ALL_TCP)
        if coverage is Coverage.OUTSIDE and offered >= SCOPES_SINCE:
            attributes += struct.pack("=QQ", 0, _ALL_SCOPES)
        self._fd = _create(attributes)

    def allow(self, path: bytes, rights: Right) -> None:
        """Keep `rights` for `path` and everything below it. Raises OSError if it is missing."""
        with closing(os.open(path, os.O_PATH | os.O_CLOEXEC)) as fd:
            self.allow_open(fd, rights)

    def allow_open(self, fd: int, rights: Right) -> None:
        """Keep `rights` for the file or folder that is open as `fd`. O_PATH is enough."""
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights & self._handled, fd)
        place = ctypes.c_int(self._fd), ctypes.c_int(_PATH_BENEATH)
        call(_ADD_RULE, "landlock_add_rule", *place, rule, ctypes.c_uint32(0))

    def take(self) -> int:
        """Return the descriptor of the rules for `restrict_by`, and give it up."""
        fd, self._fd = self._fd, -1
        return fd

    def restrict(self) -> None:
        """Drop all other rights, for this thread and all that it starts later.

        Call this once, before the process starts a second thread: other threads would keep their
        rights. Raises OSError.
        """
        restrict_by(self._fd)
        os.close(self._fd)


def restrict_by(rules: int) -> None:
    """Do what `Ruleset.restrict` does, with the descriptor of a ruleset."""
    set_process_option(ProcessOption.NO_NEW_PRIVILEGES, 1)
    call(_RESTRICT_SELF, "landlock_restrict_self", ctypes.c_int(rules), ctypes.c_uint32(0))


def restrict_signals(outside: int) -> None:
    """From now on, signal only processes that have, or will have, this restriction from here.

    `outside` is a process of the same user that lacks it. Raises OSError, also if the kernel would
    still let this process signal `outside`. Needs version 6.
    """
    with closing(_create(struct.pack("=QQQ", 0, 0, _SCOPE_SIGNALS))) as rules:
        restrict_by(rules)
    try:
        os.kill(outside, 0)
    except PermissionError:
        return
    raise OSError(errno.ENOTSUP, "Landlock does not limit signals")


class AttachedGuarantee(IntEnum):
    """What `restrict_to_attached` achieves, by the version of Landlock."""

    NOTHING = 0
    """Version 1 would refuse every rename between folders, so nothing is restricted."""
    FOLDERS = 2
    TRUNCATE = 3
    """Truncating by path is covered, too."""
    DEVICES = 5
    ABSTRACT_SOCKETS = 6
    """Abstract sockets and signals do not leave the restricted processes."""


def attached_guarantee() -> AttachedGuarantee:
    """Return what `restrict_to_attached` would achieve here."""
    offered = version()
    return max(each for each in AttachedGuarantee if each <= offered)


def restrict_to_attached() -> AttachedGuarantee:
    """From now on, refuse every access to files that do not hang below this process's `/`.

    Mounting and tracing other processes are refused, too. Raises OSError.
    """
    guarantee = attached_guarantee()
    if guarantee is not AttachedGuarantee.NOTHING:
        rules = Ruleset(Coverage.OUTSIDE)
        rules.allow(b"/", _ALL)
        rules.restrict()
    return guarantee


def _create(attributes: bytes, flags: int = 0) -> int:
    """Return the descriptor of a ruleset, or the version of Landlock."""
    size = ctypes.c_size_t(len(attributes))
    number, name = _CREATE_RULESET, "landlock_create_ruleset"
    return call(number, name, attributes or None, size, ctypes.c_uint32(flags))
