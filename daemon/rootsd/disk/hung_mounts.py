"""Detect mounts that do not respond, and decide which paths are safe to follow.

A server that is down, or a stopped FUSE process, blocks every program that touches its files,
perhaps forever. So a separate thread checks the mount first. If that thread does not return in
time, it is lost, but no other thread touches the mount. Local disks need no check: if they do not
respond, nothing on the machine works.

Anybody may have written the path in a `.git` file or in a worktree link. It may lead to a server
that does not respond; following it would block us forever. It may also lead to a folder that
autofs(5) mounts at the first access; following it would contact a machine that a stranger chose.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache

from msgspec import Struct

from rootsd.disk.canonical import canonical_name, canonical_spelling
from rootsd.disk.links import MAX_LINKS, MAX_PATH_BYTES
from rootsd.disk.markers import child
from rootsd.disk.mounts import (
    MountTable,
    innermost,
    list_macos_mounts,
    list_mounts,
    process_mounts,
    remote_mount_points,
)

MOUNT_TIMEOUT_S = 1.0


def _statvfs(point: bytes) -> None:
    """Call statvfs(2). Unlike stat(2), it never gets its answer from a cache. See statfs(2)."""
    try:
        os.statvfs(point)
    except OSError:
        return  # an error is a response too


def _current_remote_mounts() -> Callable[[], tuple[bytes, ...]]:
    found = list_mounts()
    points = remote_mount_points(list_macos_mounts() if found is None else found)
    return lambda: points


class _PendingCheck(Struct, frozen=True):
    thread: threading.Thread
    until: float

    def has_responded(self) -> bool:
        """Wait until the mount responds or the deadline passes. Return whether it responded."""
        self.thread.join(max(0.0, self.until - time.monotonic()))
        return not self.thread.is_alive()


class HungMountDetector:
    """Checks whether file systems that may hang respond. Several threads may use it.

    `remote` returns the mount points to check; by default, those that exist now. `query` returns
    as soon as the mount at a point has responded in any way.
    """

    def __init__(
        self,
        remote: Callable[[], tuple[bytes, ...]] | None = None,
        timeout_s: float = MOUNT_TIMEOUT_S,
        query: Callable[[bytes], None] = _statvfs,
    ) -> None:
        self._remote = remote or _current_remote_mounts()
        self._timeout_s = timeout_s
        self._query = query
        self._lock = threading.Lock()
        self._open: dict[bytes, _PendingCheck] = {}

    def responds(self, path: bytes) -> bool:
        """Return whether the mount that holds `path` responds within `timeout_s`.

        After a timeout, this returns False at once until the mount responds to the pending check.
        """
        point = innermost(self._remote(), path)
        if point is None:
            return True
        pending = self._pending_check(point)
        if not pending.has_responded():
            return False
        with self._lock:
            if self._open.get(point) is pending:
                del self._open[point]
        late = pending.until < time.monotonic()
        return self.responds(path) if late else True

    def _pending_check(self, point: bytes) -> _PendingCheck:
        """Return the pending check of a mount, or start one."""
        with self._lock:
            pending = self._open.get(point)
            if pending is None:
                thread = threading.Thread(
                    target=self._query, args=(point,), name="mount-check", daemon=True
                )
                pending = _PendingCheck(thread, time.monotonic() + self._timeout_s)
                self._open[point] = pending
                thread.start()
        return pending

    def real_path(self, path: bytes) -> bytes:
        """Return os.path.realpath of an absolute path, in its canonical spelling.

        Below a mount that does not respond, the rest of the path stays as it is.
        """
        if not self._remote():
            with suppress(OSError):  # a link that may not be read, such as /proc/1/root
                return canonical_spelling(os.path.realpath(path))
        try:
            real, rest = _resolve(path, self.responds)
        except OSError:  # the path is too long for a folder
            return path
        return os.path.normpath(os.path.join(real, *rest)) if rest else real


def _resolve(path: bytes, may_look: Callable[[bytes], bool]) -> tuple[bytes, list[bytes]]:
    """Return the real path of as much of an absolute path as `may_look` allows, and the rest.

    Raises OSError for a path longer than any folder can have.
    """
    done, links = b"/", 0
    parts = path.split(b"/")[::-1]
    while parts:
        part = parts.pop()
        if part in (b"", b"."):
            continue
        if part == b"..":
            done = os.path.dirname(done)
            continue
        here = child(done, part)
        if len(here) > MAX_PATH_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), done)
        if not may_look(here):
            return done, [part, *parts[::-1]]
        try:
            target = os.readlink(here) if links < MAX_LINKS else b""
        except OSError:
            target = b""
        if not target:
            done = child(done, canonical_name(done, part))
            continue
        links += 1
        done = b"/" if target.startswith(b"/") else done
        parts += target.split(b"/")[::-1]
    return done, []


def entered_mount(path: bytes, points: Collection[bytes]) -> bytes | None:
    """Return the first of the mount `points` that a lookup of an absolute path enters, or None.

    Nothing on any of these mounts is looked at. Raises OSError if no folder can have this path.
    """
    real, rest = _resolve(path, lambda part: innermost(points, part) is None)
    return innermost(points, child(real, rest[0])) if rest else None


class FollowPolicy:
    """Decides which paths are safe to follow. Several threads may use it."""

    def __init__(self, mounted: MountTable, detector: HungMountDetector | None = None) -> None:
        self._mounted = mounted
        self._detector = detector or HungMountDetector(mounted.remote)

    def may_follow(self, path: bytes) -> bool:
        """Return whether a lookup of an absolute path neither hangs nor mounts anything.

        Waits for one second at most, and only for mounts of other machines or programs.
        """
        automounts = self._mounted.automounts()
        if automounts and innermost(automounts, path) is not None:
            mount = self._mounted.holding(path)
            if mount is not None and mount.is_automount:
                return False
        return self._detector.responds(path)

    def follow(self, path: bytes) -> bytes:
        """Return the real path of an absolute path. See `follow` of this module."""
        real, rest = _resolve(path, self.may_follow)
        if rest:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), child(real, rest[0]))
        return real


@cache
def _process_follow_policy() -> FollowPolicy:
    return FollowPolicy(process_mounts())


def may_follow(path: bytes) -> bool:
    """Return whether `path` is safe to follow, by the policy for this process's mounts."""
    return _process_follow_policy().may_follow(path)


def follow(path: bytes) -> bytes:
    """Return the real path of an absolute path, by the policy for this process's mounts.

    Raises TimeoutError if a lookup on the way could hang or mount something, and another OSError
    if no folder can have this path.
    """
    if b"\0" in path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return _process_follow_policy().follow(path)
