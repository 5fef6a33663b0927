"""Call the kernel for mounts, namespaces, and capabilities. Linux only, standard library only.

Each function is one system call or one short, fixed sequence. They take descriptors where they
can, because a path can be exchanged between two calls. Errors are OSErrors with the call's name.
Sources: mount_setattr(2), open_tree(2), move_mount(2), openat2(2), namespaces(7),
capabilities(7), linux/mount.h, linux/openat2.h.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum, IntFlag


class Namespace(IntFlag):
    """The kinds of namespaces, with the values of clone(2)."""

    MOUNTS = 0x20000
    CGROUP = 0x2000000
    HOST_NAME = 0x4000000
    IPC = 0x8000000
    USER = 0x10000000
    PROCESSES = 0x20000000
    NETWORK = 0x40000000


class MountFlag(IntFlag):
    """Flags of mount(2)."""

    NO_SUID = 2
    NO_DEVICES = 4
    NO_EXEC = 8
    BIND = 4096
    RECURSIVE = 16384
    PRIVATE = 1 << 18
    SLAVE = 1 << 19
    SHARED = 1 << 20


class Attribute(IntFlag):
    """Attributes of mount_setattr(2)."""

    READ_ONLY = 1
    NO_SUID = 2
    NO_DEVICES = 4
    NO_EXEC = 8


class ProcessOption(IntEnum):
    """The options of prctl(2) that the wall uses."""

    PARENT_DEATH_SIGNAL = 1
    SET_DUMPABLE = 4
    GET_SECCOMP = 21
    DROP_BOUNDING_CAPABILITY = 24
    CHILD_SUBREAPER = 36
    NO_NEW_PRIVILEGES = 38


class Depth(IntEnum):
    """Whether a call covers one mount or all mounts below it, too."""

    ONE = 0
    ALL = 0x8000  # AT_RECURSIVE


# The numbers of these calls are the same on every architecture.
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_AT_FDCWD, _AT_EMPTY_PATH = -100, 0x1000
_OPEN_TREE_CLONE = 1
_MOVE_FROM_EMPTY, _MOVE_TO_EMPTY = 0x4, 0x40
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 2, 4, 8
_MNT_DETACH = 2
_SIOCSIFFLAGS, _IFF_UP_RUNNING = 0x8914, 0x41
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_POSSIBLE_CAPABILITY = 63

_CLOCK_MONOTONIC = 1
_STATX_SIZE, _MOUNT_ROOT = 256, 0x2000  # STATX_ATTR_MOUNT_ROOT, since Linux 5.8

_libc = ctypes.CDLL(None, use_errno=True)


def is_supported_machine() -> bool:
    """Return whether the wall knows the system calls of this processor."""
    return os.uname().machine in _PIVOT_ROOT


def mount(
    source: bytes, target: bytes, file_system: bytes, flags: MountFlag, data: bytes = b""
) -> None:
    """Mount a file system at `target`."""
    result = _libc.mount(source, target, file_system, ctypes.c_ulong(flags), data or None)
    _check(result, f"mount {file_system.decode()} at {os.fsdecode(target)}")


def change_propagation(target: bytes, flags: MountFlag) -> None:
    """Make the mount at `target` shared, private, or a slave."""
    result = _libc.mount(None, target, None, ctypes.c_ulong(flags), None)
    _check(result, f"change the propagation of {os.fsdecode(target)}")


def bind(source: bytes, target: bytes) -> None:
    """Mount the tree at `source` at `target`, too."""
    flags = ctypes.c_ulong(MountFlag.BIND | MountFlag.RECURSIVE)
    _check(_libc.mount(source, target, None, flags, None), f"bind {os.fsdecode(target)}")


def detach(fd: int) -> None:
    """Unmount the mount whose root is open as `fd`, with all mounts in it.

    The descriptor finds the mount even if somebody has moved its mount point.
    """
    _check(_libc.umount2(b"/proc/self/fd/%d" % fd, _MNT_DETACH), "umount2")


def clone_tree(fd: int, depth: Depth) -> int:
    """Return a detached copy of the mount at `fd`."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH | depth
    return call(_OPEN_TREE, "open_tree", ctypes.c_int(fd), b"", ctypes.c_uint(flags))


def attach(tree: int, target: int) -> None:
    """Mount the detached `tree` on the file or folder `target`."""
    flags = ctypes.c_uint(_MOVE_FROM_EMPTY | _MOVE_TO_EMPTY)
    call(_MOVE_MOUNT, "move_mount", ctypes.c_int(tree), b"", ctypes.c_int(target), b"", flags)


def set_attributes(tree: int, attributes: Attribute, depth: Depth = Depth.ALL) -> None:
    """Add `attributes` to `tree`, and make it private to this namespace."""
    change = struct.pack("=QQQQ", attributes, 0, MountFlag.PRIVATE, 0)
    flags = ctypes.c_uint(_AT_EMPTY_PATH | depth)
    size = ctypes.c_size_t(len(change))
    call(_MOUNT_SETATTR, "mount_setattr", ctypes.c_int(tree), b"", flags, change, size)


def attach_copy(source: int, target: int, attributes: Attribute, depth: Depth) -> None:
    """Mount a copy of the mount at `source` on `target`, with these attributes."""
    with closing(clone_tree(source, depth)) as tree:
        set_attributes(tree, attributes, depth)
        attach(tree, target)


def open_path(path: bytes, flags: int = 0) -> int:
    """Open the absolute `path` with O_PATH. A symbolic link anywhere in it gives ELOOP."""
    return _openat2(_AT_FDCWD, path, flags, _NO_LINKS | _NO_MAGIC_LINKS)


def open_below(folder: int, path: bytes, flags: int = 0) -> int:
    """Open `path` below `folder` with O_PATH, without following links or leaving `folder`."""
    return _openat2(folder, path, flags, _NO_LINKS | _NO_MAGIC_LINKS | _BENEATH)


def interval_timer(seconds: int) -> int:
    """Return a descriptor that is readable after `seconds`. See timerfd_create(2)."""
    fd = _check(_libc.timerfd_create(_CLOCK_MONOTONIC, os.O_CLOEXEC), "timerfd_create")
    interval = struct.pack("@llll", 0, 0, seconds, 0)
    _check(_libc.timerfd_settime(fd, 0, interval, None), "timerfd_settime")
    return fd


def is_mount_root(fd: int) -> bool:
    """Return whether the file open as `fd` is the root of its mount, and so mounted there."""
    found = ctypes.create_string_buffer(_STATX_SIZE)
    flags = ctypes.c_int(_AT_EMPTY_PATH)
    _check(_libc.statx(ctypes.c_int(fd), b"", flags, ctypes.c_uint(0), found), "statx")
    (attributes,) = struct.unpack_from("=Q", found, 8)
    return bool(attributes & _MOUNT_ROOT)


@contextmanager
def closing(fd: int) -> Iterator[int]:
    """Close `fd` at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


def enter(fd: int, namespace: Namespace) -> None:
    """Move this process into the namespace that is open as `fd`."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(namespace)), "setns")


def make_namespaces(namespaces: Namespace) -> None:
    """Move this process into new namespaces, one of users among them.

    In there, this user and group are mapped to themselves, and nobody else is.
    """
    uid, gid = os.geteuid(), os.getegid()  # Not later: without a map, all ids read as 65534.
    _check(_libc.unshare(ctypes.c_int(namespaces | Namespace.USER)), "unshare")
    for name, text in (
        ("setgroups", b"deny"),
        ("uid_map", b"%d %d 1" % (uid, uid)),
        ("gid_map", b"%d %d 1" % (gid, gid)),
    ):
        try:
            with open(f"/proc/self/{name}", "wb", buffering=0) as file:
                file.write(text)
        except OSError as error:
            raise OSError(error.errno, f"{name}: {error.strerror}") from error


def pivot_here() -> None:
    """Make the working directory the root folder, and detach the old root."""
    call(_PIVOT_ROOT[os.uname().machine], "pivot_root", b".", b".")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")


def set_process_option(option: ProcessOption, value: int) -> None:
    """Call prctl(2)."""
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option.name}")


def drop_capabilities() -> None:
    """Permanently drop all capabilities, for this process and all that it starts.

    The empty bounding set matters for the user root, who would get capabilities at each execve.
    """
    for number in range(_LAST_POSSIBLE_CAPABILITY + 1):
        option = ProcessOption.DROP_BOUNDING_CAPABILITY
        if _libc.prctl(option, ctypes.c_ulong(number), 0, 0, 0) < 0:
            break
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, bytes(24)), "capset")
    set_process_option(ProcessOption.NO_NEW_PRIVILEGES, 1)


def close_from(first: int) -> None:
    """Close all descriptors from `first` on."""
    with suppress(OSError):
        highest = max((int(name) for name in os.listdir("/proc/self/fd")), default=first)
        os.closerange(first, highest + 1)
        return
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def bring_up_loopback() -> None:
    """Make 127.0.0.1 work in a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        request = struct.pack("16sh14x", b"lo", _IFF_UP_RUNNING)
        fcntl.ioctl(channel, _SIOCSIFFLAGS, request)


def _openat2(folder: int, path: bytes, flags: int, resolve: int) -> int:
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC | flags, 0, resolve)
    size = ctypes.c_size_t(len(how))
    return call(_OPENAT2, os.fsdecode(path), ctypes.c_int(folder), path, how, size)


def call(number: int, name: str, *arguments: object) -> int:
    """Make a system call by its number, and return its result."""
    return _check(int(_libc.syscall(ctypes.c_long(number), *arguments)), name)


def _check(result: int, name: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result
