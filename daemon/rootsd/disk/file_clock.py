"""Tell which change times are so old that the file cannot have changed just now.

A file that changes twice within a tick of the clock has the same change time (ctime) both times.
So a ctime proves only that nothing changed later if it is older than a tick. This module compares
it with the clock, and so it must know when that clock is set: after a step forward, a ctime of a
moment ago looks old. For a while after such a step, the clock from before counts.

A ctime from the future is never old enough. That costs time, but no change is missed. A file
server whose clock is more than two seconds behind is not noticed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

# How far the clock for file times may lag behind the clock that rootsd reads.
_SLACK_NS = 2 * 10**9
_STEP_NS = 10**8


class FileClock:
    """The clock of file times, in nanoseconds. Any thread may use it."""

    def __init__(self, now: Callable[[], int], monotonic: Callable[[], int]) -> None:
        self._now = now
        self._monotonic = monotonic
        self._lock = Lock()
        self._offset = now() - monotonic()
        self._offset_before = self._offset
        self._stepped_at: int | None = None

    def cutoff(self) -> int:
        """Return the ctime before which a file cannot have changed since this call."""
        with self._lock:
            elapsed = self._monotonic()
            offset = self._now() - elapsed
            if self._stepped_at is not None and elapsed > self._stepped_at + _SLACK_NS:
                self._stepped_at = None
            if offset > self._offset + _STEP_NS:
                is_first = self._stepped_at is None
                before = self._offset if is_first else min(self._offset, self._offset_before)
                self._offset_before, self._stepped_at = before, elapsed
            self._offset = offset
            trusted = offset if self._stepped_at is None else min(offset, self._offset_before)
            return elapsed + trusted - _SLACK_NS


_clock = FileClock(lambda: time.time_ns(), time.monotonic_ns)  # noqa: PLW0108 - tests set it


def racy_cutoff_ns() -> int:
    """Return the ctime in ns before which a folder cannot have changed since this call."""
    return _clock.cutoff()
