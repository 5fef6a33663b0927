"""Schedule the polling of unwatched folders and the snapshots of the trees.

When to look at what nothing tells of: parents without watches, and what no watch covers.

When the trees of the parents are written down, and who gets them back at the next start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from rootsd.discovery.engine import DiscoveryEngine
from rootsd.discovery.parent_tree import ParentTree
from rootsd.discovery.tracked import can_watch_for_return
from rootsd.disk.snapshot import TreeSnapshot, read_snapshots, write_snapshots
from rootsd.watch.events import WatchOutcome
from rootsd.watch.polling import poll_interval

ROOTS_POLL_INTERVAL_S = 60.0
# Of a core, over time: 10 ms in a minute. A root that is published has a watch of its own.
ROOTS_POLL_CPU_SHARE = 0.01 / 60.0


class PollScheduler:
    """Sweeps an explorer by the clock given. One thread calls all methods."""

    def __init__(
        self,
        explorer: DiscoveryEngine,
        monotonic: Callable[[], float],
        roots_interval_s: float = ROOTS_POLL_INTERVAL_S,
    ) -> None:
        self._explorer = explorer
        self._now = monotonic
        self._roots_interval_s = roots_interval_s
        self._parents: dict[bytes, float] = {}
        self._roots = monotonic() + roots_interval_s

    def due(self) -> float | None:
        """When `sweep_what_is_due` has something to do, on the clock given; None for never."""
        due = [self._roots] if self._explorer.has_anything() else []
        return min((*due, *self._parents.values()), default=None)

    def sweep_what_is_due(self) -> None:
        """Sweep the parents that are polled, and the rest, if it is time to."""
        now = self._now()
        polled = [t for t in self._explorer.territories if _needs_polling(t)]
        first = now + poll_interval(0.0)
        self._parents = {t.parent.path: self._parents.get(t.parent.path, first) for t in polled}
        for territory in polled:
            path = territory.parent.path
            if now >= self._parents[path]:
                self._explorer.revisit(territory)
                end = self._now()
                # To find out that somebody does not answer takes time, and no work.
                cost = end - now if territory.limit is not WatchOutcome.SILENT else 0.0
                self._parents[path] = end + poll_interval(cost)
        if now >= self._roots:
            self._explorer.sweep()
            end = self._now()
            self._roots = end + max(self._roots_interval_s, (end - now) / ROOTS_POLL_CPU_SHARE)


def _needs_polling(territory: ParentTree) -> bool:
    if territory.limit is not None:
        return True
    return not territory.is_there and not can_watch_for_return(territory.parent.path)


log = logging.getLogger(__name__)

# A restart after a crash lists what moved since; minutes of that cost nothing.
SNAPSHOT_INTERVAL_S = 300.0


class SnapshotWriter:
    """Keeps trees in a file, or nothing where there is none. One thread calls all methods."""

    def __init__(self, file: Path | None, monotonic: Callable[[], float]) -> None:
        self._file = file
        self._now = monotonic
        self._memory: dict[bytes, TreeSnapshot] | None = None
        self._kept: dict[bytes, tuple[ParentTree, int]] = {}
        self._due = monotonic() + SNAPSHOT_INTERVAL_S

    def remind(self, territory: ParentTree) -> None:
        """Give a parent's tree, once, what was kept of it in an earlier life."""
        if self._memory is None:
            self._memory = read_snapshots(self._file) if self._file is not None else {}
        territory.remember(self._memory.pop(territory.parent.path, None))

    def due(self) -> float | None:
        """When `keep_if_due` has something to do, on the clock given; None if there is no file."""
        return self._due if self._file is not None else None

    def keep_if_due(self, territories: Iterable[ParentTree]) -> None:
        """Write the trees down, unless that was done a short time ago."""
        if self._now() >= self._due:
            self.keep(territories)

    def keep(self, territories: Iterable[ParentTree]) -> None:
        """Write the trees down if they changed. A disk that takes nothing more is no reason to
        stop: without the file, the next start scans."""
        self._due = self._now() + SNAPSHOT_INTERVAL_S
        changes = {t.parent.path: (t, t.changes) for t in territories}
        if self._file is None or changes == self._kept:
            return
        trees = {path: tree for path, (t, _) in changes.items() if (tree := t.kept()) is not None}
        try:
            write_snapshots(self._file, trees)
        except OSError as error:
            log.warning("the index for a quick start cannot be kept: %s", error.strerror)
        self._kept = changes
