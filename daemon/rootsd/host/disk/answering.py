"""Finds out whether file systems answer, without waiting for one that does not.

A server that is down, or a FUSE process that was stopped, holds whoever looks at its files until
it comes back, perhaps for ever. So a thread that may be lost asks first; only where it returned in
time do others look. Local disks are not asked: they answer, or the whole machine stands still.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from rootsd.host.disk.markers import child
from rootsd.host.disk.mounts import innermost, mounts, remote_points
from rootsd.host.disk.spelling import listed_name, spelled
from rootsd.host.disk.volumes import volumes

PATIENCE_S = 1.0
_MOST_LINKS = 40


def _ask(point: bytes) -> None:
    """Unlike a stat this is never answered from what the kernel remembers. See statfs(2)."""
    try:
        os.statvfs(point)
    except OSError:
        return  # an error is an answer


def _mounted_now() -> Callable[[], tuple[bytes, ...]]:
    found = mounts()
    points = remote_points(volumes() if found is None else found)
    return lambda: points


@dataclass(frozen=True, slots=True)
class _Question:
    thread: threading.Thread
    until: float

    def is_answered(self) -> bool:
        """Wait as long as there is time; whether there was an answer."""
        self.thread.join(max(0.0, self.until - time.monotonic()))
        return not self.thread.is_alive()


class Answering:
    """Asks the file systems that may not answer; may be used by several threads.

    `remote` tells where those are mounted, by default where they are now; `ask` returns once the
    one at a point has answered anything.
    """

    def __init__(
        self,
        remote: Callable[[], tuple[bytes, ...]] | None = None,
        patience_s: float = PATIENCE_S,
        ask: Callable[[bytes], None] = _ask,
    ) -> None:
        self._remote = remote or _mounted_now()
        self._patience_s = patience_s
        self._ask = ask
        self._lock = threading.Lock()
        self._open: dict[bytes, _Question] = {}

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

    def _question(self, point: bytes) -> _Question:
        """The one that nobody has answered yet, or a new one."""
        with self._lock:
            question = self._open.get(point)
            if question is None:
                thread = threading.Thread(
                    target=self._ask, args=(point,), name="answering", daemon=True
                )
                question = _Question(thread, time.monotonic() + self._patience_s)
                self._open[point] = question
                thread.start()
        return question

    def real_path(self, path: bytes) -> bytes:
        """As os.path.realpath of an absolute path, and as its folders spell it; as it is written
        from where nobody answers."""
        if not self._remote():
            return spelled(os.path.realpath(path))
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
                target = os.readlink(here) if links < _MOST_LINKS else b""
            except OSError:
                target = b""
            if not target:
                done = child(done, listed_name(done, part))
                continue
            links += 1
            done = b"/" if target.startswith(b"/") else done
            parts += target.split(b"/")[::-1]
        return done
