"""Schedule the polling of unwatched folders and the snapshots of the trees.

Two jobs of discovery run by the clock, not by events:

* `PollScheduler` looks at what no watch covers: parents without watches, and everything that
  `DiscoveryEngine.sweep` looks at. A poll that takes long runs less often, so that polling stays
  cheap.
* `SnapshotWriter` writes the trees to a file every few minutes and at the end. The next start
  reads them back, and lists only what changed since.
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
# A share of one core: 10 ms per minute. A published root has its own watch.
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
        """Return when `poll_if_due` has work, on the clock given, or None for never."""
        due = [self._roots] if self._engine.has_anything() else []
        return min((*due, *self._parents.values()), default=None)

    def poll_if_due(self) -> None:
        """Poll the parents that are due, and sweep the rest if that is due."""
        now = self._now()
        polled = [t for t in self._engine.trees if _needs_polling(t)]
        first = now + poll_interval(0.0)
        self._parents = {t.parent.path: self._parents.get(t.parent.path, first) for t in polled}
        for tree in polled:
            path = tree.parent.path
            if now >= self._parents[path]:
                self._engine.refresh(tree)
                end = self._now()
                # Waiting for a file system that does not answer takes time but no CPU.
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

# After a crash, the next start lists what changed since the last snapshot. A few minutes of
# changes cost next to nothing.
SNAPSHOT_INTERVAL_S = 300.0


class SnapshotWriter:
    """Writes snapshots to `file`, or does nothing if it is None. One thread calls all methods."""

    def __init__(self, file: Path | None, monotonic: Callable[[], float]) -> None:
        self._file = file
        self._now = monotonic
        self._earlier: dict[bytes, TreeSnapshot] | None = None
        self._written: dict[bytes, tuple[ParentTree, int]] = {}
        self._due = monotonic() + SNAPSHOT_INTERVAL_S

    def restore(self, tree: ParentTree) -> None:
        """Pass a tree the snapshot of its parent from an earlier run, once."""
        if self._earlier is None:
            self._earlier = read_snapshots(self._file) if self._file is not None else {}
        tree.use_snapshot(self._earlier.pop(tree.parent.path, None))

    def due(self) -> float | None:
        """Return when `write_if_due` has work, on the clock given, or None if there is no file."""
        return self._due if self._file is not None else None

    def write_if_due(self, trees: Iterable[ParentTree]) -> None:
        """Write the snapshots if the last write is long enough ago."""
        if self._now() >= self._due:
            self.write(trees)

    def write(self, trees: Iterable[ParentTree]) -> None:
        """Write the snapshots if the trees changed.

        A full disk does not stop discovery: without the file, the next start scans.
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
            log.warning("cannot save the index for a quick start: %s", error.strerror)
        self._written = changes
