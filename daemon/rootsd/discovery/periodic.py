"""Schedule polls of unwatched folders, and snapshots of the trees.

These two jobs of discovery run at intervals:

* `PollScheduler` polls the parents that cannot be watched, and calls `DiscoveryEngine.sweep` for
  everything else without a watch. To limit the cost, it runs slow polls less often.
* `SnapshotWriter` writes the trees to a file every few minutes and at the end. The next start
  loads them and lists only the folders that changed since then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from rootsd.discovery.engine import DiscoveryEngine
from rootsd.discovery.parent_tree import ParentTree
from rootsd.discovery.path_watches import can_watch_for_return
from rootsd.disk.snapshot import TreeSnapshot, read_snapshots, write_snapshots
from rootsd.watch.events import WatchOutcome
from rootsd.watch.polling import poll_interval

ROOTS_POLL_INTERVAL_S = 60.0
# 10 ms of CPU time per minute. That is enough, because each published root has its own watch.
ROOTS_POLL_CPU_SHARE = 0.01 / 60.0


class PollScheduler:
    """Decides when the engine polls. One thread calls all methods."""

    def __init__(
        self,
        engine: DiscoveryEngine,
        monotonic: Callable[[], float],
        roots_interval_s: float = ROOTS_POLL_INTERVAL_S,
    ) -> None:
        self._engine = engine
        self._now = monotonic
        self._roots_interval_s = roots_interval_s
        self._parents: dict[bytes, float] = {}
        self._roots = monotonic() + roots_interval_s

    def due(self) -> float | None:
        """Return when `poll_if_due` has work, on the monotonic clock, or None for never."""
        due = [self._roots] if self._engine.has_anything() else []
        return min((*due, *self._parents.values()), default=None)

    def poll_if_due(self) -> None:
        """Poll the parents that are due, and sweep if that is due."""
        now = self._now()
        polled = [t for t in self._engine.trees if _needs_polling(t)]
        first = now + poll_interval(0.0)
        self._parents = {t.parent.path: self._parents.get(t.parent.path, first) for t in polled}
        for tree in polled:
            path = tree.parent.path
            if now >= self._parents[path]:
                self._engine.refresh(tree)
                end = self._now()
                # Waiting for a file system that does not respond uses no CPU.
                cost = end - now if tree.limit is not WatchOutcome.UNRESPONSIVE else 0.0
                self._parents[path] = end + poll_interval(cost)
        if now >= self._roots:
            self._engine.sweep()
            end = self._now()
            self._roots = end + max(self._roots_interval_s, (end - now) / ROOTS_POLL_CPU_SHARE)


def _needs_polling(tree: ParentTree) -> bool:
    if tree.limit is not None:
        return True
    return not tree.is_there and not can_watch_for_return(tree.parent.path)


log = logging.getLogger(__name__)

# After a crash, the next start lists the folders that changed since the last snapshot. The changes
# of a few minutes cost very little.
SNAPSHOT_INTERVAL_S = 300.0


class SnapshotWriter:
    """Writes snapshots to `file`. Does nothing if `file` is None. One thread calls all methods."""

    def __init__(self, file: Path | None, monotonic: Callable[[], float]) -> None:
        self._file = file
        self._now = monotonic
        self._earlier: dict[bytes, TreeSnapshot] | None = None
        self._written: dict[bytes, tuple[ParentTree, int]] = {}
        self._due = monotonic() + SNAPSHOT_INTERVAL_S

    def restore(self, tree: ParentTree) -> None:
        """Give a tree the snapshot of its parent from an earlier run, the first time only."""
        if self._earlier is None:
            self._earlier = read_snapshots(self._file) if self._file is not None else {}
        tree.use_snapshot(self._earlier.pop(tree.parent.path, None))

    def due(self) -> float | None:
        """Return when `write_if_due` has work, on the monotonic clock, or None without a file."""
        return self._due if self._file is not None else None

    def write_if_due(self, trees: Iterable[ParentTree]) -> None:
        """Write the snapshots if the interval has passed."""
        if self._now() >= self._due:
            self.write(trees)

    def write(self, trees: Iterable[ParentTree]) -> None:
        """Write the snapshots if the trees changed.

        If that fails, only log it: without the file, the next start scans everything.
        """
        self._due = self._now() + SNAPSHOT_INTERVAL_S
        changes = {t.parent.path: (t, t.changes) for t in trees}
        if self._file is None or changes == self._written:
            return
        snapshots = {
            path: snapshot
            for path, (tree, _) in changes.items()
            if (snapshot := tree.snapshot()) is not None
        }
        try:
            write_snapshots(self._file, snapshots)
        except OSError as error:
            log.warning("cannot save the index, so the next start scans: %s", error.strerror)
        self._written = changes
