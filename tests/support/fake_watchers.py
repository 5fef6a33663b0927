"""Watchers without threads: one only records, and one reads events when a test asks."""

from __future__ import annotations

import itertools
import queue
from pathlib import Path

from rootsd.disk.markers import ProjectFiles
from rootsd.watch.events import EventOverflow, EventResolver, FileEvent, WatchOutcome, WatchPurpose
from rootsd.watch.inotify import InotifyWatcher
from support.report_collector import HANG_S
from support.repositories import raw


class Clock:
    """A monotonic clock that a test advances."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now


class RecordingWatcher:
    """A `Watcher` that accepts up to `budget` watches and posts no events."""

    def __init__(self, budget: int = 1_000_000) -> None:
        self.watched: set[tuple[bytes, WatchPurpose]] = set()
        self.budget = budget

    def start(self) -> None:
        """Do nothing."""

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        """Record the watch."""
        if len(self.watched) >= self.budget:
            return WatchOutcome.LIMIT
        self.watched.add((folder, purpose))
        return WatchOutcome.WATCHED

    def unwatch(self, folder: bytes, purpose: WatchPurpose) -> None:
        """Remove the watch."""
        self.watched.discard((folder, purpose))

    def set_project_files(self, files: ProjectFiles) -> None:
        """Do nothing."""

    def count(self) -> int:
        """Return the number of watches."""
        return len(self.watched)

    def stop(self) -> None:
        """Do nothing."""

    def folders(self, purpose: WatchPurpose) -> set[bytes]:
        """Return the folders that are watched for a purpose."""
        return {folder for folder, its in self.watched if its is purpose}


class PumpedInotify:
    """The real inotify watcher. `pump` reads its events."""

    def __init__(self, barrier: Path) -> None:
        barrier.mkdir()
        self._barrier = barrier
        self._turn = itertools.count()
        self._queue: queue.SimpleQueue[EventResolver] = queue.SimpleQueue()
        self.watcher = InotifyWatcher(self._queue.put)
        self.watcher.watch(raw(barrier), WatchPurpose.FRONTIER)
        self.watcher.start()

    def pump(self) -> list[FileEvent | EventOverflow]:
        """Return the events since the last call."""
        last = self._barrier / str(next(self._turn))
        last.mkdir()
        reported: list[FileEvent | EventOverflow] = []
        while True:
            for item in self._queue.get(timeout=HANG_S)():
                if not isinstance(item, FileEvent) or item.folder != raw(self._barrier):
                    reported.append(item)
                elif item.name == raw(last).rpartition(b"/")[2]:
                    return reported
