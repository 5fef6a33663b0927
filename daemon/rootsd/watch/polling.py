"""Poll folder stamps where no events are available.

A sweep costs one lstat for each frontier folder, 4 ms for 2,000. It is slower to notice than a
watcher and says so: a parent that is swept is shown as such by `rootsd status`.
"""

from __future__ import annotations

from rootsd.disk.markers import ProjectFiles
from rootsd.watch.events import WatchOutcome, WatchPurpose

_MIN_INTERVAL_S = 2.0
_MAX_INTERVAL_S = 60.0
_MAX_CPU_SHARE = 0.005


def poll_interval(cost_s: float) -> float:
    """Seconds to the next sweep, so that sweeps take at most half a percent of a core."""
    return min(max(_MIN_INTERVAL_S, cost_s / _MAX_CPU_SHARE), _MAX_INTERVAL_S)


class PollingWatcher:
    """A `Watcher` that watches nothing and says why; whoever asks then sweeps."""

    def __init__(self, why: WatchOutcome = WatchOutcome.UNSUPPORTED) -> None:
        self._why = why

    def start(self) -> None:
        """There is nothing to start."""

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:  # noqa: ARG002
        """Always why not."""
        return self._why

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Nothing was watched."""

    def heed(self, files: ProjectFiles) -> None:
        """Nothing is told here."""

    def count(self) -> int:
        """None."""
        return 0

    def stop(self) -> None:
        """There is nothing to give back."""
