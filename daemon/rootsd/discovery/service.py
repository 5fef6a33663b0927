"""Run discovery in one thread with one queue.

The thread owns all state of discovery. File events, requests, and timers reach `DiscoveryEngine`
from this thread only, so discovery needs no locks. The thread repeats these steps:

1. Empty the queue. Gather events into a batch, and handle the batch before the next request.
2. Run the polls and check the candidates that are due.
3. Pass new observations to `report`.
4. Do a portion of the deferred work, and pass on what it found.
5. Pass the states of the parents to `on_status` if one of them changed.

Both callbacks run in this thread. `rootsd.daemon.discovery_adapter` passes their arguments on to
the event loop.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from rootsd.core.inputs import Observation
from rootsd.core.labels import safe_label
from rootsd.core.model import Parent, Project
from rootsd.discovery.engine import DiscoveryEngine
from rootsd.discovery.parent_tree import ParentTree
from rootsd.discovery.periodic import PollScheduler, SnapshotWriter
from rootsd.discovery.status import ParentReport, ScanCost, report_for
from rootsd.disk.mounts import MountWatch
from rootsd.disk.safety import FolderSafety
from rootsd.processes.activity import FindFoldersInUse
from rootsd.watch.backend import best_watcher
from rootsd.watch.events import EventOverflow, EventResolver, FileEvent, PostResolver, Watcher
from rootsd.wire.scans import ScanProgressItem

# If more events are queued, checking everything is cheaper than handling each event.
_MAX_QUEUED_SIGNALS = 65_536
_BATCH = 4_096
# The deferred work between two checks of the queue: this many projects take 5 ms.
_CATCH_UP_BATCH = 64

# Meanwhile, the event loop can handle the reports without competing for Python's lock.
_TIDY_DELAY_S = 0.005

_STOP_TIMEOUT_S = 10.0

T = TypeVar("T")
ReportCallback = Callable[[Sequence[Observation]], None]
StatusCallback = Callable[[tuple[ParentReport, ...]], None]
ScanProgressCallback = Callable[[ScanProgressItem], None]


class DiscoveryDependencies(Struct, frozen=True):
    """The parts of the system that discovery uses. Tests pass fakes."""

    find_in_use: FindFoldersInUse
    find_tools: FindFoldersInUse
    safety: FolderSafety
    monotonic: Callable[[], float] = time.monotonic
    watcher: Callable[[PostResolver], Watcher] = best_watcher


class _Task(Struct, frozen=True):
    """A request: code to run in the discovery thread."""

    action: Callable[[], None]


class _SettleWaiter(Struct, frozen=True):
    """A caller of `when_settled`; `deadline` is on the monotonic clock."""

    parent: bytes
    deadline: float
    future: Future[frozenset[bytes]]


class Discovery:
    """Finds projects below the parents and reports each change.

    Any thread may call the methods, and all but `stop` return at once. `report` gets observations
    in batches, in order. A project that is being created is reported when it is complete or given
    up. If a bug ends the thread, it calls `on_death`. `index` is the file for the snapshots of the
    trees.
    """

    def __init__(
        self,
        *,
        report: ReportCallback,
        on_status: StatusCallback,
        on_death: Callable[[], None],
        dependencies: DiscoveryDependencies,
        index: Path | None = None,
    ) -> None:
        self._report = report
        self._on_status = on_status
        self._on_death = on_death
        self._monotonic = dependencies.monotonic
        self._queue: queue.SimpleQueue[EventResolver | _Task] = queue.SimpleQueue()
        self._events_lost = False
        self._stopping = False
        self._watcher = dependencies.watcher(self._post)
        self._mounts = MountWatch(self._mounts_did_change)
        self._engine = DiscoveryEngine(
            self._watcher,
            dependencies.safety,
            dependencies.find_in_use,
            dependencies.monotonic,
            dependencies.find_tools,
        )
        self._snapshots = SnapshotWriter(index, dependencies.monotonic)
        self._scanning: bytes | None = None
        self._settling: list[_SettleWaiter] = []
        self._status: tuple[ParentReport, ...] = ()
        self._polls = PollScheduler(self._engine, dependencies.monotonic)
        self._thread = threading.Thread(target=self._run, name="discovery", daemon=True)

    def start(self, parents: Sequence[Parent], known: Mapping[bytes, Project]) -> None:
        """Watch and scan `parents`. Then check each project in `known` that no scan found."""
        self._watcher.start()
        self._mounts.start()
        self._thread.start()
        self._queue.put(_Task(lambda: self._engine.load(known)))
        self.set_parents(parents)

    def set_parents(self, parents: Sequence[Parent]) -> None:
        """Use these parents from now on, and scan new and changed ones."""
        self._queue.put(_Task(partial(self._set_parents, tuple(parents))))

    def set_roots(self, paths: AbstractSet[bytes], missing: Mapping[bytes, Project]) -> None:
        """Watch each approved root in `paths`, and each checkout whose Git directory one includes.

        The approved roots in `missing` are gone. Discovery checks whether they return, or whether
        something else appears in their place.
        """
        self._queue.put(_Task(lambda: self._engine.set_roots(paths, missing)))

    def scan(
        self, parent: bytes | None, progress: ScanProgressCallback | None = None
    ) -> Future[ScanCost]:
        """Scan everything below `parent`, or below all parents if it is None.

        The discovery thread calls `progress`. The result is set after everything was reported.
        """
        return self._ask(partial(self._scan, parent, progress))

    def when_settled(self, parent: bytes | None, timeout_s: float) -> Future[frozenset[bytes]]:
        """Wait until each new project below `parent`, or below all parents, is reported.

        This does not wait for projects in which a process works, and not longer than `timeout_s`
        seconds. The result has the paths of all projects that are still being created.
        """
        future: Future[frozenset[bytes]] = Future()

        def begin() -> None:
            deadline = self._monotonic() + timeout_s
            self._settling.append(_SettleWaiter(parent or b"/", deadline, future))

        self._queue.put(_Task(begin))
        return future

    def recheck(self, paths: Sequence[bytes]) -> Future[None]:
        """Check these paths and report them even if nothing changed."""
        return self._ask(partial(self._engine.recheck, paths))

    def release(self, paths: AbstractSet[bytes]) -> None:
        """Stop tracking these folders, which a person named and took back."""
        self._queue.put(_Task(partial(self._engine.release, paths)))

    def probe(self, path: bytes) -> Future[Observation]:
        """Check one folder, inside or outside of the parents, and report it."""
        return self._ask(lambda: self._engine.probe(path))

    def at_work(self, paths: Collection[bytes]) -> Future[frozenset[bytes]]:
        """Return those of `paths` that a program creates now, or in which one works."""
        return self._ask(lambda: self._engine.candidates.at_work(paths))

    def scan_worktrees(self, mains: Sequence[bytes]) -> Future[None]:
        """Find the worktrees of these repositories and report them."""
        return self._ask(partial(self._engine.scan_worktrees, mains))

    def outside_worktrees(self) -> Future[tuple[bytes, ...]]:
        """Return the worktrees of followed repositories that lie in no parent."""
        return self._ask(self._engine.outside_worktrees)

    def watches(self) -> int:
        """Return the number of kernel watches."""
        return self._watcher.count()

    def stop(self) -> None:
        """End all threads, remove all watches, and drop queued work. May be called again."""
        if self._stopping:
            return

        def end() -> None:
            self._stopping = True

        self._queue.put(_Task(end))
        if self._thread.ident is not None:
            # The thread may be blocked by a file system that no longer responds. The end of the
            # daemon must not wait for that.
            self._thread.join(_STOP_TIMEOUT_S)
        self._mounts.stop()
        self._watcher.stop()

    # Other threads call these

    def _post(self, signal: EventResolver) -> None:
        if self._queue.qsize() < _MAX_QUEUED_SIGNALS:
            self._queue.put(signal)
        else:
            self._events_lost = True

    def _mounts_did_change(self) -> None:
        self._queue.put(_Task(self._engine.mounts_changed))

    def _ask(self, question: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()

        def answer() -> None:
            if future.set_running_or_notify_cancel():
                found = question()
                self._report_found()
                future.set_result(found)

        self._queue.put(_Task(answer))
        return future

    # The discovery thread runs these

    def _run(self) -> None:
        try:
            while not self._stopping:
                first = self._next()
                # The receiver of the reports has already run, so this does not delay it.
                self._engine.candidates.remove_unused_watches()
                if first is not None:
                    self._handle_queue(first)
                self._polls.poll_if_due()
                self._engine.tick()
                self._report_found()
                if self._engine.has_deferred_work():
                    self._engine.catch_up(_CATCH_UP_BATCH)
                    self._report_found()
                self._report_status()
                self._answer_settled()
                self._snapshots.write_if_due(self._engine.trees)
            self._snapshots.write(self._engine.trees)
        finally:
            if not self._stopping:
                # There is a bug. threading.excepthook gets the exception, and the daemon must end.
                self._on_death()

    def _next(self) -> EventResolver | _Task | None:
        """Return the next item of the queue, or None if a timer is due first."""
        try:
            return self._queue.get(timeout=self._time_left())
        except queue.Empty:
            return None

    def _handle_queue(self, item: EventResolver | _Task) -> None:
        """Handle everything in the queue. Handle events before the request that follows them."""
        events: list[FileEvent | EventOverflow] = []
        while True:
            if isinstance(item, _Task):
                self._handle_events(events)
                events = []
                item.action()
            else:
                events += item()
            if len(events) >= _BATCH or self._stopping or self._queue.empty():
                break
            item = self._queue.get()
        self._handle_events(events)

    def _handle_events(self, events: Sequence[FileEvent | EventOverflow]) -> None:
        if events:
            self._engine.handle(events)
        if self._events_lost:
            self._events_lost = False
            self._engine.handle((EventOverflow(),))

    def _time_left(self) -> float | None:
        """Return the seconds until the next timer is due, or None if there is none."""
        if self._engine.has_deferred_work():
            return 0.0
        known = (self._polls.due(), self._engine.next_due(), self._snapshots.due())
        now = self._monotonic()
        deadlines = (waiting.deadline for waiting in self._settling)
        left = [max(0.0, time - now) for time in (*known, *deadlines) if time is not None]
        if self._engine.candidates.has_unused_watches:
            left.append(_TIDY_DELAY_S)
        return min(left, default=None)

    def _report_found(self) -> None:
        observations = self._engine.take()
        if observations:
            self._report(observations)

    def _report_status(self) -> None:
        in_work = {self._scanning, *self._engine.unexplored}
        status = tuple(
            report_for(tree, scanning=tree.parent.path in in_work) for tree in self._engine.trees
        )
        if status != self._status:
            self._status = status
            self._on_status(status)

    def _answer_settled(self) -> None:
        """Answer the callers of `when_settled` that have nothing left to wait for."""
        now, waiting = self._monotonic(), self._settling
        self._settling = []
        for each in waiting:
            if now < each.deadline and self._engine.unsettled(each.parent):
                self._settling.append(each)
            elif each.future.set_running_or_notify_cancel():
                each.future.set_result(self._engine.candidates.being_created())

    # Requests, in the discovery thread

    def _set_parents(self, parents: Sequence[Parent]) -> None:
        for tree in self._engine.set_parents(parents):
            self._snapshots.restore(tree)
            self._explore(tree)
        self._engine.recheck_orphans()

    def _explore(self, tree: ParentTree) -> None:
        self._scanning = tree.parent.path
        self._report_status()
        self._engine.explore(tree)
        self._engine.tick()
        self._scanning = None
        self._report_found()
        self._report_status()

    def _scan(self, parent: bytes | None, progress: ScanProgressCallback | None) -> ScanCost:
        begin = self._monotonic()
        self._report_found()
        chosen = [t for t in self._engine.trees if parent in (None, t.origin.path)]
        for tree in chosen:
            path = tree.parent.path
            report_progress = None if progress is None else _progress_for(progress, path)
            self._engine.rescan(tree, report_progress)
        self._engine.recheck_orphans()
        self._engine.tick()
        self._report_status()
        return ScanCost(sum(len(tree) for tree in chosen), self._monotonic() - begin)


def _progress_for(progress: ScanProgressCallback, path: bytes) -> Callable[[int, int], None]:
    return lambda folders, projects: progress(
        ScanProgressItem(folders=folders, projects=projects, parent=safe_label(path, limit=None))
    )
