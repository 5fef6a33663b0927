"""Detect mounts that do not respond, and decide which paths are safe to follow.

Finds out whether file systems answer, without waiting for one that does not.

A server that is down, or a FUSE process that was stopped, holds whoever looks at its files until
it comes back, perhaps for ever. So a thread that may be lost asks first; only where it returned in
time do others look. Local disks are not asked: they answer, or the whole machine stands still.

Tells where the text of a project may be followed to.

What a `.git` file or a link between worktrees names, anybody may have written: a place on a server
that does not answer, or one that is mounted only because somebody looks there (autofs(5)). To look
at the first would hold us up for ever; the second would reach out to a machine of a stranger's
choice.
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
    """Unlike a stat this is never answered from what the kernel remembers. See statfs(2)."""
    try:
        os.statvfs(point)
    except OSError:
        return  # an error is an answer


def _current_remote_mounts() -> Callable[[], tuple[bytes, ...]]:
    found = list_mounts()
    points = remote_mount_points(list_macos_mounts() if found is None else found)
    return lambda: points


@dataclass(frozen=True, slots=True)
class _PendingCheck:
    thread: threading.Thread
    until: float

    def is_answered(self) -> bool:
        """Wait as long as there is time; whether there was an answer."""
        self.thread.join(max(0.0, self.until - time.monotonic()))
        return not self.thread.is_alive()


class HungMountDetector:
    """Asks the file systems that may not answer; may be used by several threads.

    `remote` tells where those are mounted, by default where they are now; `ask` returns once the
    one at a point has answered anything.
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
        """Whether what holds `path` answers within `patience_s`.

        Where it did not, this is False at once, until the first question is answered.
        """
        point = innermost(self._remote(), path)
        if point is None:
            return True
        question = self._question(point)
        if not question.is_answered():
            return False
        with self._lock:
            if self._open.get(point) is question:
                del self._open[point]
        late = question.until < time.monotonic()
        return self.answers(path) if late else True

    def _question(self, point: bytes) -> _PendingCheck:
        """The one that nobody has answered yet, or a new one."""
        with self._lock:
            question = self._open.get(point)
            if question is None:
                thread = threading.Thread(
                    target=self._ask, args=(point,), name="answering", daemon=True
                )
                question = _PendingCheck(thread, time.monotonic() + self._patience_s)
                self._open[point] = question
                thread.start()
        return question

    def real_path(self, path: bytes) -> bytes:
        """As os.path.realpath of an absolute path, and as its folders spell it; as it is written
        from where nobody answers."""
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
    """Judges by what is mounted now; may be used by several threads."""

    def __init__(self, mounted: MountTable, answering: HungMountDetector | None = None) -> None:
        self._mounted = mounted
        self._answering = answering or HungMountDetector(mounted.remote)

    def may_follow(self, path: bytes) -> bool:
        """Whether a look at an absolute path ends, and mounts nothing. Waits a second at most, and
        only where another machine or program has to answer."""
        automounts = self._mounted.automounts()
        if automounts and innermost(automounts, path) is not None:
            mount = self._mounted.holding(path)
            if mount is not None and mount.is_automount:
                return False
        return self._answering.answers(path)


@cache
def _process_follow_policy() -> FollowPolicy:
    return FollowPolicy(MountTable())


def may_follow(path: bytes) -> bool:
    """As `Leads.may_follow`, by what this process sees mounted."""
    return _process_follow_policy().may_follow(path)
