"""Say when to poll folders for which the system reports no events.

One poll costs an lstat for each frontier folder: 4 ms for 2,000 folders. Polling notices changes
later than a watcher does, so `rootsd status` says which parents are polled.
"""

from __future__ import annotations

from rootsd.disk.markers import ProjectFiles
from rootsd.watch.events import WatchOutcome, WatchPurpose

_MIN_INTERVAL_S = 2.0
_MAX_INTERVAL_S = 60.0
_MAX_CPU_SHARE = 0.005


def poll_interval(cost_s: float) -> float:
    """Return the seconds until the next poll. Polls take at most 0.5 % of a core."""
    return min(max(_MIN_INTERVAL_S, cost_s / _MAX_CPU_SHARE), _MAX_INTERVAL_S)


class PollingWatcher:
    """A `Watcher` that watches nothing. Its owner has to poll."""

    def __init__(self, reason: WatchOutcome = WatchOutcome.UNSUPPORTED) -> None:
        self._reason = reason

    def start(self) -> None:
        """Do nothing."""

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:  # noqa: ARG002
        """Return the reason why this watcher watches nothing."""
        return self._reason

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Do nothing."""

    def set_project_files(self, files: ProjectFiles) -> None:
        """Do nothing."""

    def count(self) -> int:
        """Return 0."""
        return 0

    def stop(self) -> None:
        """Do nothing."""
