"""Detect mounts that do not respond, and decide which paths are safe to follow.

A server that is down, or a stopped FUSE process, blocks every program that touches its files,
perhaps forever. So a thread that may be lost checks the mount first. Other threads touch the files
only if that thread returned in time. Local disks need no check: if they do not respond, nothing on
the machine does.

Anybody may have written the path in a `.git` file or in a worktree link. The path may lead to a
server that does not respond, or to a place that is mounted at the first access (autofs(5)).
Following the first would block us forever. Following the second would contact a machine that a
stranger chose.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from rootsd.disk.canonical import canonical_name, canonical_spelling
from rootsd.disk.markers import child
from rootsd.disk.mounts import (
    MountTable,
    innermost,
    list_macos_mounts,
    list_mounts,
    remote_mount_points,
)

MOUNT_TIMEOUT_S = 1.0
_MAX_LINKS = 40


def _statvfs(point: bytes) -> None:
    """Call statvfs(2). Unlike stat, the kernel never answers it from its cache. See statfs(2)."""
    try:
        os.statvfs(point)
    except OSError:
        return  # an error is a response too


def _current_remote_mounts() -> Callable[[], tuple[bytes, ...]]:
    found = list_mounts()
    points = remote_mount_points(list_macos_mounts() if found is None else found)
    return lambda: points


@dataclass(frozen=True, slots=True)
class _PendingCheck:
    thread: threading.Thread
    until: float

    def is_answered(self) -> bool:
        """Wait until the deadline at most, and return whether the mount responded."""
        self.thread.join(max(0.0, self.until - time.monotonic()))
        return not self.thread.is_alive()


class HungMountDetector:
    """Checks whether file systems that may hang respond. Several threads may use it.

    `remote` returns the mount points to check; the default is those of this moment. `ask` returns
    once the mount at a point has responded in any way.
    """

    def __init__(
        self,
        remote: Callable[[], tuple[bytes, ...]] | None = None,
        patience_s: float = MOUNT_TIMEOUT_S,
        ask: Callable[[bytes], None] = _statvfs,
    ) -> None:
        self._remote = remote or _current_remote_mounts()
        self._patience_s = patience_s
        self._ask = ask
        self._lock = threading.Lock()
        self._open: dict[bytes, _PendingCheck] = {}

    def answers(self, path: bytes) -> bool:
        """Return whether the mount that holds `path` responds within `patience_s`.

        After a timeout, the answer is False at once until the pending check ends.
        """
        point = innermost(self._remote(), path)
        if point is None:
            return True
        pending = self._pending_check(point)
        if not pending.is_answered():
            return False
        with self._lock:
            if self._open.get(point) is pending:
                del self._open[point]
        late = pending.until < time.monotonic()
        return self.answers(path) if late else True

    def _pending_check(self, point: bytes) -> _PendingCheck:
        """Return the pending check of a mount, or start one."""
        with self._lock:
            pending = self._open.get(point)
            if pending is None:
                thread = threading.Thread(
                    target=self._ask, args=(point,), name="mount-check", daemon=True
                )
                pending = _PendingCheck(thread, time.monotonic() + self._patience_s)
                self._open[point] = pending
                thread.start()
        return pending

    def real_path(self, path: bytes) -> bytes:
        """Return os.path.realpath of an absolute path in its canonical spelling.

        From a mount on that does not respond, the rest of the path stays as written.
        """
        if not self._remote():
            return canonical_spelling(os.path.realpath(path))
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
            if not self.answers(here):
                return os.path.normpath(os.path.join(here, *parts[::-1]))
            try:
                target = os.readlink(here) if links < _MAX_LINKS else b""
            except OSError:
                target = b""
            if not target:
                done = child(done, canonical_name(done, part))
                continue
            links += 1
            done = b"/" if target.startswith(b"/") else done
            parts += target.split(b"/")[::-1]
        return done


class FollowPolicy:
    """Decides by the current mounts which paths are safe to follow. Several threads may use it."""

    def __init__(self, mounted: MountTable, detector: HungMountDetector | None = None) -> None:
        self._mounted = mounted
        self._detector = detector or HungMountDetector(mounted.remote)

    def may_follow(self, path: bytes) -> bool:
        """Return whether a lookup of an absolute path ends and mounts nothing.

        Waits a second at most, and only for a mount that depends on another machine or program.
        """
        automounts = self._mounted.automounts()
        if automounts and innermost(automounts, path) is not None:
            mount = self._mounted.holding(path)
            if mount is not None and mount.is_automount:
                return False
        return self._detector.answers(path)


@cache
def _process_follow_policy() -> FollowPolicy:
    return FollowPolicy(MountTable())


def may_follow(path: bytes) -> bool:
    """Return the answer of `FollowPolicy.may_follow` for the mounts that this process sees."""
    return _process_follow_policy().may_follow(path)
