"""Run discovery in one thread that owns all its state and is fed by one queue.

What happens on the disk, what is ordered, and what time brings all pass through the thread's
queue, so that nothing needs a lock. Results leave by `report` and `on_status`, called from the
thread.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from rootsd.core.inputs import Observation
from rootsd.core.model import Parent, Project
from rootsd.discovery.engine import DiscoveryEngine
from rootsd.discovery.parent_tree import ParentTree
from rootsd.discovery.periodic import PollScheduler, SnapshotWriter
from rootsd.discovery.status import DiscoveryStatus, ScanProgress, ScanSummary, report_for
from rootsd.disk.mounts import MountWatch
from rootsd.disk.safety import FolderSafety
from rootsd.system.processes import FindFoldersInUse, folders_in_use
from rootsd.watch.backend import best_watcher
from rootsd.watch.events import EventOverflow, EventResolver, FileEvent, PostResolver, Watcher

# Beyond this a look at everything is cheaper than each hint.
_MAX_QUEUED_SIGNALS = 65_536
_BATCH = 4_096
# Remembered projects looked at between two looks into the queue: 5 ms.
_CATCH_UP_BATCH = 64

# In which the event loop takes in what was reported, with Python's lock to itself.
_TIDY_DELAY_S = 0.005

_STOP_TIMEOUT_S = 10.0

T = TypeVar("T")
ReportCallback = Callable[[Sequence[Observation]], None]
StatusCallback = Callable[[DiscoveryStatus], None]
ScanProgressCallback = Callable[[ScanProgress], None]


def _default_surroundings() -> FolderSafety:
    return FolderSafety(os.getuid())


@dataclass(frozen=True, slots=True)
class DiscoveryDependencies:
    """How discovery perceives what is not in the trees; tests put their own in."""

    worked_on: FindFoldersInUse = folders_in_use
    monotonic: Callable[[], float] = time.monotonic
    watcher: Callable[[PostResolver], Watcher] = best_watcher
    surroundings: FolderSafety = field(default_factory=_default_surroundings)


@dataclass(frozen=True, slots=True)
class _Task:
    """Something to do in the thread, unlike a hint of what happened."""

    action: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _SettleWaiter:
    """A caller of `when_settled`; `deadline` is on the monotonic clock."""

    parent: bytes
    deadline: float
    future: Future[frozenset[bytes]]


def _do_nothing() -> None:
    pass


class Discovery:
    """Finds projects below the parents and keeps telling what became of them.

    All methods may be called from any thread and return at once. `report` gets observations in
    batches, in order; a project being made is not reported until it is whole or given up.
    `on_death` is called, from the thread, if a bug ended it. `index` is the file that keeps the
    trees for a quick start.
    """

    def __init__(
        self,
        *,
        report: ReportCallback,
        on_status: StatusCallback,
        senses: DiscoveryDependencies | None = None,
        on_death: Callable[[], None] = _do_nothing,
        index: Path | None = None,
    ) -> None:
        self._report = report
        self._on_status = on_status
        self._on_death = on_death
        senses = senses or DiscoveryDependencies()
        self._monotonic = senses.monotonic
        self._queue: queue.SimpleQueue[EventResolver | _Task] = queue.SimpleQueue()
        self._lossy = False
        self._stopping = False
        self._watcher = senses.watcher(self._post)
        self._mounts = MountWatch(self._mounts_did_change)
        self._explorer = DiscoveryEngine(
            self._watcher, senses.surroundings, senses.worked_on, senses.monotonic
        )
        self._keeping = SnapshotWriter(index, senses.monotonic)
        self._scanning: bytes | None = None
        self._settling: list[_SettleWaiter] = []
        self._status = DiscoveryStatus()
        self._sweeping = PollScheduler(self._explorer, senses.monotonic)
        self._thread = threading.Thread(target=self._run, name="discovery", daemon=True)

    def start(self, parents: Sequence[Parent], known: Mapping[bytes, Project]) -> None:
        """Watch and scan `parents`, then look at each project of `known` that was not found."""
        self._watcher.start()
        self._mounts.start()
        self._thread.start()
        self._queue.put(_Task(lambda: self._explorer.know(known)))
        self.set_parents(parents)

    def set_parents(self, parents: Sequence[Parent]) -> None:
        """Use these parents from now on; new and changed ones are scanned."""
        self._queue.put(_Task(partial(self._set_parents, tuple(parents))))

    def set_roots(self, paths: AbstractSet[bytes], awaited: Mapping[bytes, Project]) -> None:
        """The approved roots: each gets a watch of its own. The `awaited` are gone, and may come
        back, or something else in their place."""
        self._queue.put(_Task(lambda: self._explorer.set_roots(paths, awaited)))

    def scan(
        self, parent: bytes | None, progress: ScanProgressCallback | None = None
    ) -> Future[ScanSummary]:
        """Look at everything below `parent`, or below all, now.

        `progress` is called from the thread. The result is there after everything was reported.
        """
        return self._ask(partial(self._scan, parent, progress))

    def when_settled(self, parent: bytes | None, patience_s: float) -> Future[frozenset[bytes]]:
        """Wait until each new project below `parent`, or below all parents, is reported.

        The wait ends early for a project that a process works on, and for all of them after
        `patience_s` seconds. The result holds the paths of all projects that are still being made.
        """
        future: Future[frozenset[bytes]] = Future()

        def begin() -> None:
            deadline = self._monotonic() + patience_s
            self._settling.append(_SettleWaiter(parent or b"/", deadline, future))

        self._queue.put(_Task(begin))
        return future

    def doubt(self, paths: Sequence[bytes]) -> None:
        """Somebody could not see these: look again, and report what is seen in any case."""
        self._queue.put(_Task(partial(self._explorer.doubt, paths)))

    def probe(self, path: bytes) -> Future[Observation]:
        """Look at one folder, inside or outside every parent; it is reported, too."""
        return self._ask(lambda: self._explorer.probe(path))

    def follow(self, mains: Sequence[bytes]) -> Future[None]:
        """Look at the worktrees of these repositories now; what is seen is reported."""
        return self._ask(partial(self._explorer.follow, mains))

    def stop(self) -> None:
        """End all threads and give all watches back; what waits in the queue is dropped.

        Again is harmless.
        """
        if self._stopping:
            return

        def end() -> None:
            self._stopping = True

        self._queue.put(_Task(end))
        if self._thread.ident is not None:
            # It may look at a file system that just then stopped to answer; a daemon that was told
            # to stop does not wait for that.
            self._thread.join(_STOP_TIMEOUT_S)
        self._mounts.stop()
        self._watcher.stop()
        self._explorer.close()

    # From other threads into the queue

    def _post(self, signal: EventResolver) -> None:
        if self._queue.qsize() < _MAX_QUEUED_SIGNALS:
            self._queue.put(signal)
        else:
            self._lossy = True

    def _mounts_did_change(self) -> None:
        self._queue.put(_Task(self._explorer.mounts_changed))

    def _ask(self, question: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()

        def answer() -> None:
            if future.set_running_or_notify_cancel():
                found = question()
                self._flush()
                future.set_result(found)

        self._queue.put(_Task(answer))
        return future

    # The thread

    def _run(self) -> None:
        try:
            while not self._stopping:
                first = self._next()
                # Who was told of something has had the machine since.
                self._explorer.candidates.tidy()
                if first is not None:
                    self._follow_up(first)
                self._sweeping.sweep_what_is_due()
                self._explorer.tick()
                self._flush()
                self._answer_the_settled()
                if self._explorer.is_behind():
                    self._explorer.catch_up(_CATCH_UP_BATCH)
                    self._flush()
                self._keeping.keep_if_due(self._explorer.territories)
            self._keeping.keep(self._explorer.territories)
        finally:
            if not self._stopping:
                # A bug: the exception goes to threading.excepthook, the daemon must not go on.
                self._on_death()

    def _next(self) -> EventResolver | _Task | None:
        """What comes next in the queue; None once time has brought something to do."""
        try:
            return self._queue.get(timeout=self._time_left())
        except queue.Empty:
            return None

    def _follow_up(self, item: EventResolver | _Task) -> None:
        """Work off what is queued: hints are gathered, and dealt with before the next order."""
        hints: list[FileEvent | EventOverflow] = []
        while True:
            if isinstance(item, _Task):
                self._deal_with(hints)
                hints = []
                item.action()
            else:
                hints += item()
            if len(hints) >= _BATCH or self._stopping or self._queue.empty():
                break
            item = self._queue.get()
        self._deal_with(hints)

    def _deal_with(self, hints: Sequence[FileEvent | EventOverflow]) -> None:
        if hints:
            self._explorer.happened(hints)
        if self._lossy:
            self._lossy = False
            self._explorer.happened((EventOverflow(),))

    def _time_left(self) -> float | None:
        """Seconds to the next thing to do; None for ever."""
        if self._explorer.is_behind():
            return 0.0
        known = (self._sweeping.due(), self._explorer.candidates.next_due(), self._keeping.due())
        now = self._monotonic()
        deadlines = (waiting.deadline for waiting in self._settling)
        left = [max(0.0, time - now) for time in (*known, *deadlines) if time is not None]
        if self._explorer.candidates.is_untidy:
            left.append(_TIDY_DELAY_S)
        return min(left, default=None)

    def _flush(self) -> None:
        observations = self._explorer.take()
        if observations:
            self._report(observations)
        status = self._status_now()
        if status != self._status:
            self._status = status
            self._on_status(status)

    def _answer_the_settled(self) -> None:
        """Answer the callers of `when_settled` that have nothing more to wait for."""
        now, waiting = self._monotonic(), self._settling
        self._settling = []
        for each in waiting:
            if now < each.deadline and self._explorer.unsettled(each.parent):
                self._settling.append(each)
            elif each.future.set_running_or_notify_cancel():
                each.future.set_result(self._explorer.candidates.being_made())

    # Orders, carried out in the thread

    def _set_parents(self, parents: Sequence[Parent]) -> None:
        for territory in self._explorer.set_parents(parents):
            self._keeping.remind(territory)
            self._explore(territory)
        self._explorer.recheck_strays()

    def _explore(self, territory: ParentTree) -> None:
        self._scanning = territory.parent.path
        self._flush()
        self._explorer.explore(territory)
        self._explorer.tick()
        self._scanning = None
        self._flush()

    def _scan(self, parent: bytes | None, progress: ScanProgressCallback | None) -> ScanSummary:
        begin = self._monotonic()
        self._flush()
        self._explorer.take_tally()
        chosen = [t for t in self._explorer.territories if parent in (None, t.parent.path)]
        for territory in chosen:
            path = territory.parent.path
            tell = None if progress is None else _progress_for(progress, path)
            self._explorer.rescan(territory, tell)
        self._explorer.recheck_strays()
        self._explorer.tick()
        tally = self._explorer.take_tally()
        return ScanSummary(
            new=tally.new,
            gone=tally.gone,
            changed=tally.changed,
            folders=sum(len(territory) for territory in chosen),
            projects=sum(territory.count_projects() for territory in chosen),
            seconds=self._monotonic() - begin,
            being_made=self._explorer.candidates.being_made(),
        )

    def _status_now(self) -> DiscoveryStatus:
        return DiscoveryStatus(
            parents=tuple(
                report_for(territory, scanning=self._scanning == territory.parent.path)
                for territory in self._explorer.territories
            ),
            watches=self._watcher.count(),
            being_made=len(self._explorer.candidates),
        )


def _progress_for(progress: ScanProgressCallback, path: bytes) -> Callable[[int, int], None]:
    return lambda folders, projects: progress(ScanProgress(path, folders, projects))
