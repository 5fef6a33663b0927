"""Cover paths in a root: mount something over them, which a program cannot take away.

A *protection* is a mount of a file or folder on itself, mostly read-only, or that of a link to a
private copy. A *mask* is an empty file or folder over a denied one. All are *covers*. They belong
to the file and not to its name.
The kernel drops a cover when a process outside replaces the file below it, for example with
`git config`. If such a process moves the file away, the cover moves with it, and a new file at the
old path has none. `uncovered` finds what lost its cover.

A program must not move a cover away itself. So the folders between a root and its covers, and
between a root and the roots inside it, are *held*: mounted on themselves.

All paths are relative to a root, which is given as an open descriptor.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from rootsd.wall.git.entries import NodeKind, folders_above
from rootsd.wall.git.protected import ProtectedPath, Protection
from rootsd.wall.system_calls import (
    Attribute,
    Depth,
    attach_copy,
    closing,
    detach,
    is_mount_root,
    open_below,
    open_path,
)

_MAX_RENAME_TRIES = 10_000
_MOUNT_POINT_FIELD = 4  # in a line of /proc/self/mountinfo; see proc_pid_mountinfo(5)


def protect(root: int, each: ProtectedPath) -> None:
    """Protect a file that may be replaced at this moment; do nothing if there is none."""
    is_locked = each.protection is not Protection.HELD
    attributes = Attribute.READ_ONLY if is_locked else Attribute(0)
    depth = Depth.ALL if each.kind is NodeKind.FOLDER else Depth.ONE

    def mount(point: int) -> None:
        # A second hold would hide the covers below from `release`, and the kernel lets nobody
        # replace a file that anything is mounted on.
        if is_locked or not is_mount_root(point):
            attach_copy(point, point, attributes, depth)

    _mount_on(root, each.path, mount, os.O_NOFOLLOW)


def _mount_on(root: int, path: bytes, mount: Callable[[int], object], flags: int) -> None:
    """Open a path below `root` with these flags, and let `mount` mount something on it.

    Do nothing if there is no such path. It may be replaced at this moment: the kernel drops the
    old mount in the middle of a rename, or when somebody outside removes the path. Until that is
    over, the name still leads to the old file, on which nothing can be mounted (ENOENT).
    """
    for _ in range(_MAX_RENAME_TRIES):
        try:
            point = open_below(root, path, flags)
        except FileNotFoundError:
            return
        with closing(point), suppress(FileNotFoundError):
            mount(point)
            return
    raise OSError(errno.EBUSY, f"{os.fsdecode(path)} is replaced all the time outside")


def release(root: int, path: bytes) -> None:
    """Take the protection of a file away, if it has one. Raises OSError."""
    with suppress(FileNotFoundError), closing(open_below(root, path, os.O_NOFOLLOW)) as found:
        if is_mount_root(found):
            detach(found)


def cover(
    root: int, path: bytes, stand_in: Callable[[int], bytes], flags: int = os.O_NOFOLLOW
) -> None:
    """Cover a path below `root`, which is opened with these flags; do nothing if there is none.

    `stand_in` returns the file, folder, or link to show in place of what is open as its argument.
    Raises OSError.
    """

    def mount(point: int) -> None:
        with closing(open_path(stand_in(point), os.O_NOFOLLOW)) as source:
            attach_copy(source, point, Attribute.READ_ONLY, Depth.ONE)

    _mount_on(root, path, mount, flags)


def hold_above(root: int, path: bytes) -> None:
    """Mount the folders between `root` and `path` on themselves, so that they stay in place."""

    def mount(point: int) -> None:
        if not is_mount_root(point):
            attach_copy(point, point, Attribute(0), Depth.ALL)

    for above in folders_above(path):
        _mount_on(root, above, mount, os.O_DIRECTORY)


def uncovered(root: int, paths: Iterable[bytes]) -> set[bytes]:
    """Return those of the paths that exist and have no cover."""
    return {path for path in paths if not _is_covered(root, path)}


def _is_covered(root: int, path: bytes) -> bool:
    """Return whether something is mounted on `path`, or nothing can be reached there."""
    try:
        found = open_below(root, path, os.O_NOFOLLOW)
    except OSError:
        return True
    with closing(found):
        return is_mount_root(found)


def merge(
    known: Iterable[ProtectedPath], found: Iterable[ProtectedPath]
) -> tuple[ProtectedPath, ...]:
    """Return all protected paths, outermost first. What exists now counts for its kind."""
    merged = {each.path: each for each in (*known, *found)}
    return tuple(sorted(merged.values(), key=lambda each: (each.path.count(b"/"), each.path)))


def names_on_the_way(paths: Iterable[bytes]) -> dict[bytes, dict[bytes, bytes]]:
    """Return the folders on the way to covers, each with the names in it that lead there.

    For each name, the value is its path.
    """
    wanted: dict[bytes, dict[bytes, bytes]] = {}
    for path in paths:
        for each in (*folders_above(path), path):
            folder, name = os.path.split(each)
            wanted.setdefault(folder or b".", {})[name] = each
    return wanted


def mount_points() -> set[bytes]:
    """Return the paths of all mount points that this process sees."""
    with open("/proc/self/mountinfo", "rb") as lines:
        return {_unescape(line.split(b" ", 5)[_MOUNT_POINT_FIELD]) for line in lines}


def _unescape(path: bytes) -> bytes:
    r"""Return a path of mountinfo without its escapes, such as `\040` for a space."""
    if b"\\" not in path:
        return path
    first, *rest = path.split(b"\\")
    return first + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in rest)
