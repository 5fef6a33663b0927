"""Follow projects that are being created until each of them is complete or given up.

Discovery finds a project as soon as its marker appears. Then a clone, checkout, or copy may run
for minutes, and rootsd must not propose an incomplete project. So the project is a `Candidate`
until one of these happens:

* It is complete. `Candidates` returns a `CandidateResult`, and rootsd proposes the project.
* It was quiet for a long time but is still incomplete. Then `Candidates` gives it up: it returns a
  result with the reason, but keeps the watches, because a resumed fetch can complete the project.
* Its folder is gone, or is no longer a project.

How a check works: `project_state` (`rootsd.vcs.probe`) reads the files that show the state of the
project, such as markers, locks, and the index. For git, the result is exact. Other states look
complete too early, for example while a program copies a project without a lock. So each `Stage`
has a quiet period. After it, the state counts as final if no process works in the folder.

No clock but the monotonic one decides, because the change times of files may be of another clock.
Whether a copy still runs shows in two looks at the names in the folder. Writes do not count: a
program may write there all the time. For the same reason, a project that looks complete does not
wait for ever. After `PROGRAM_PATIENCE_S`, only a VCS or copy tool delays it.

When checks happen: an event in a progress folder leads to a check (`handle`). A timer covers
changes that no watch reports: `next_due` returns when the service must call `due`. Nothing here
sleeps or blocks.

Most projects that a scan finds are complete, and git shows that at once. The same holds for a
checkout of another VCS that was reported before. `_settle_at_once` returns their result without a
watch or a quiet period.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Collection, Iterable

from rootsd.core.model import Identity, ProjectKind
from rootsd.discovery.candidate import (
    PROGRAM_PATIENCE_S,
    Arrival,
    Candidate,
    CandidateResult,
    is_significant_event,
)
from rootsd.processes.activity import FindFoldersInUse
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.repository import is_git
from rootsd.vcs.probe import progress_folders, project_state
from rootsd.vcs.registry import is_vcs_temporary_file
from rootsd.vcs.stages import CompleteProject, NoProject, PendingProject, Stage
from rootsd.watch.events import FileEvent, FileEventKind, Watcher, WatchOutcome, WatchPurpose

_RECHECK_WHILE_IN_USE_S = 0.02
_MAX_CHECK_INTERVAL_S = 1.0
# How long a VCS or copy tool delays a project that looks complete while it creates nothing. A
# server of a VCS runs for days.
_TOOL_PATIENCE_S = 600.0
_TIMER_GRANULARITY_S = 0.1
# Some systems allow few watches. Above this number of unused ones, remove them at once.
_MAX_UNUSED_WATCHES = 64


class Candidates:
    """All candidates. One thread calls all methods.

    `monotonic` is the clock for quiet periods. `responds` tells whether the file system of a path
    responds.
    """

    def __init__(
        self,
        watcher: Watcher,
        find_in_use: FindFoldersInUse,
        monotonic: Callable[[], float],
        responds: Callable[[bytes], bool],
        find_tools: FindFoldersInUse,
    ) -> None:
        self._watcher = watcher
        self._find_in_use = find_in_use
        self._find_tools = find_tools
        self._now = monotonic
        self._responds = responds
        self._all: dict[bytes, Candidate] = {}
        self._unconfirmed: dict[bytes, CompleteProject | PendingProject] = {}
        self._watch_users: dict[bytes, set[bytes]] = {}
        self._unused_watches: list[bytes] = []
        self._deferred: list[Candidate] = []
        self._timers: list[tuple[float, int, bytes]] = []
        self._sequence = itertools.count()

    def __len__(self) -> int:
        """Return the number of projects being created, without those given up."""
        return len(self.being_created())

    def being_created(self) -> frozenset[bytes]:
        """Return the paths of the projects being created.

        Some of them were reported as complete before, and changed since then.
        """
        return frozenset(path for path, each in self._all.items() if each.given_up is None)

    def awaiting_quiet(self) -> frozenset[bytes]:
        """Return the paths of the projects being created in which no process is known to work.

        Each of them is settled after a quiet period of a few seconds at most.
        """
        return frozenset(path for path in self.being_created() if not self._all[path].is_in_use)

    def at_work(self, paths: Collection[bytes]) -> frozenset[bytes]:
        """Return those of `paths` that a program creates now, or in which one works."""
        followed = self.being_created().intersection(paths)
        return followed | (self._find_in_use(paths) if paths else frozenset())

    def consider(
        self, path: bytes, kind: ProjectKind, arrival: Arrival, known: Identity | None = None
    ) -> CandidateResult | None:
        """Check a folder with a marker. Return None if there is no result yet.

        Then the candidate is followed. Its watches are set before the check, so a change during
        the check causes an event. `known` is the identity of the project that was reported at this
        path before, or None.
        """
        candidate = self._all.get(path)
        if candidate is None:
            candidate = Candidate(path, kind, arrival, self._now(), known)
            if arrival is not Arrival.CREATED and (settled := self._settle_at_once(candidate)):
                return settled
            self._all[path] = candidate
        candidate.kind = kind
        return self._check(candidate)

    def handle(self, event: FileEvent) -> list[CandidateResult]:
        """Handle a change in a watched folder inside candidates."""
        settled = []
        followed = sorted(self._watch_users.get(event.folder, ()))
        if event.kind is FileEventKind.SELF:
            # The watch may have ended or moved away with the folder. `_check` sets it again.
            self._forget_watch(event.folder)
        for path in followed:
            candidate = self._all[path]
            is_activity = event.kind is not FileEventKind.MODIFIED
            if is_vcs_temporary_file(event.name) and not candidate.is_checkout_folder(
                event.folder
            ):
                candidate.saw_vcs_activity = is_activity = True
            if is_activity:
                candidate.quiet_since = self._now()
            if candidate.given_up is not None or is_significant_event(event):
                candidate.postponements = 0
                settled.append(self._check(candidate))
            elif is_activity and not candidate.is_overdue(self._now()):
                # Events must not put off the check of an overdue candidate for ever.
                candidate.postponements = 0
                self._schedule_check(candidate)
        return [end for end in settled if end is not None]

    def restart_quiet_time(self, path: bytes) -> None:
        """Restart the quiet period of the candidate at `path`, because its own folder changed."""
        if (candidate := self._all.get(path)) is not None:
            candidate.quiet_since = self._now()
            if path in self._unconfirmed:
                self._schedule_check(candidate)

    def handle_overflow(self) -> list[CandidateResult]:
        """Set the watches of all candidates and check them again, because events were lost.

        Candidates that were given up are deferred to `catch_up`: few of them ever change.
        """
        self._deferred = [each for each in self._all.values() if each.given_up is not None]
        return self._check_again(each for each in self._all.values() if each.given_up is None)

    @property
    def has_deferred_work(self) -> bool:
        """Whether there is deferred work for `catch_up`."""
        return bool(self._deferred)

    def catch_up(self, most: int) -> list[CandidateResult]:
        """Check up to `most` of the deferred candidates."""
        todo, self._deferred = self._deferred[:most], self._deferred[most:]
        return self._check_again(each for each in todo if self._all.get(each.path) is each)

    def _check_again(self, some: Iterable[Candidate]) -> list[CandidateResult]:
        settled = []
        for candidate in list(some):
            for folder in list(candidate.folders):
                if self._watcher.watch(folder, WatchPurpose.PROGRESS) is not WatchOutcome.WATCHED:
                    self._forget_watch(folder)
            candidate.quiet_since, candidate.postponements = self._now(), 0
            settled.append(self._check(candidate))
        return [end for end in settled if end is not None]

    def sweep(self) -> list[CandidateResult]:
        """Check the candidates that were given up. Some may have no watch to report a change."""
        return self.check([p for p, each in self._all.items() if each.given_up is not None])

    def check(self, paths: Iterable[bytes]) -> list[CandidateResult]:
        """Check the candidates at `paths`, because something outside of them changed."""
        followed = [self._all[path] for path in paths if path in self._all]
        return [end for each in followed if (end := self._check(each)) is not None]

    def due(self) -> list[CandidateResult]:
        """Check the candidates whose timers are due, and confirm the results that need it."""
        settled, now = [], self._now()
        while self._timers and self._timers[0][0] <= now:
            when, _, path = heapq.heappop(self._timers)
            candidate = self._all.get(path)
            if candidate is not None and candidate.check_at == when:
                settled.append(self._check(candidate))
        return [*(end for end in settled if end is not None), *self._confirm_idle()]

    def next_due(self) -> float | None:
        """Return when to call `due`, on the monotonic clock, or None if nothing is pending."""
        if self._unconfirmed:
            return self._now()
        while self._timers:
            when, _, path = self._timers[0]
            candidate = self._all.get(path)
            if candidate is not None and candidate.check_at == when:
                return when
            # The check was postponed, or the candidate is settled. A clone leaves dozens of such
            # timers; without this, each would wake the thread.
            heapq.heappop(self._timers)
        return None

    @property
    def has_unused_watches(self) -> bool:
        """Whether `remove_unused_watches` has watches to remove."""
        return bool(self._unused_watches)

    def remove_unused_watches(self) -> None:
        """Remove the watches that are no longer needed.

        This is a separate step, because callers wait for results. Each removal causes an event,
        which wakes another thread.
        """
        unused, self._unused_watches = self._unused_watches, []
        for folder in unused:
            if folder not in self._watch_users:
                self._watcher.unwatch(folder, WatchPurpose.PROGRESS)

    def drop(self, path: bytes) -> bool:
        """Drop the candidate at `path`, and return whether there was one."""
        candidate = self._all.pop(path, None)
        if candidate is None:
            return False
        self._unconfirmed.pop(path, None)
        self._unwatch(candidate)
        return True

    def _settle_at_once(self, candidate: Candidate) -> CandidateResult | None:
        """Return the result if the candidate is final now, else None. Set no watches.

        Most projects that a scan finds are old and complete, and a moved project is complete.
        """
        with OpenProject(candidate.path) as project:
            state = project_state(project, candidate.kind)
            match state:
                case CompleteProject(kind=kind, main_checkout=main):
                    if candidate.stage_to_wait_for(state, project) is None:
                        return candidate.result(project, kind, None, main)
                case PendingProject() if candidate.arrival is Arrival.MOVED:
                    return None
                case PendingProject(kind=kind, stage=Stage.IN_USE, main_checkout=main):
                    if candidate.missing_part(Stage.IN_USE, project) is None:
                        return candidate.result(project, kind, None, main)
                case PendingProject(kind=kind, stage=stage) if not is_git(kind):
                    if (
                        candidate.is_known(project)
                        and candidate.missing_part(stage, project) is None
                    ):
                        return candidate.result(project, kind)
                case PendingProject() | NoProject():
                    pass
        return None

    def _check(self, candidate: Candidate) -> CandidateResult | None:
        self._unconfirmed.pop(candidate.path, None)
        if not self._responds(candidate.path):
            self._set_timer(candidate, self._now() + _MAX_CHECK_INTERVAL_S)
            return None
        if not candidate.folders and self._is_already_complete(candidate):
            return None
        self._watch(candidate)
        with OpenProject(candidate.path) as project:
            return self._check_open_project(project, candidate)

    def _check_open_project(
        self, project: OpenProject, candidate: Candidate
    ) -> CandidateResult | None:
        state = project_state(project, candidate.kind)
        if isinstance(state, NoProject):
            self.drop(candidate.path)
            return CandidateResult(candidate.path, None)
        candidate.kind = state.kind
        stage = candidate.stage_to_wait_for(state, project)
        if stage is None:
            self.drop(candidate.path)
            return candidate.result(project, state.kind, None, state.main_checkout)
        if candidate.stays_given_up(stage):
            return None
        candidate.enter(stage, now := self._now())
        since, period = candidate.idle_since(), stage.quiet_period
        if (
            period.ignore_processes_after_s is not None
            and now >= since + period.ignore_processes_after_s
        ):
            return self._stop_waiting(candidate, state, project)
        is_due = now >= since + period.length_s or candidate.is_overdue(now)
        if is_due or candidate.is_copy_complete(project):
            self._unconfirmed[candidate.path] = state
        else:
            self._schedule_check(candidate)
        return None

    def _is_already_complete(self, candidate: Candidate) -> bool:
        """Return whether a copy was complete before discovery found it, as after an overflow.

        Such a copy needs no watch and no quiet period. `_confirm_idle` settles it, or watches it
        if it changes.
        """
        with OpenProject(candidate.path) as project:
            state = project_state(project, candidate.kind)
            if (
                isinstance(state, NoProject)
                or candidate.stage_to_wait_for(state, project) is not Stage.COPYING
            ):
                return False
            candidate.kind = state.kind
            candidate.enter(Stage.COPYING, self._now())
            if not candidate.is_copy_complete(project):
                return False
        self._unconfirmed[candidate.path] = state
        return True

    def _confirm_idle(self) -> list[CandidateResult]:
        """Settle the candidates in which no process works. List the processes once for all.

        The check has read each state. Now this lists the processes and reads each state again. A
        result counts only if both states are equal. That is safe in each case:

        * A process that worked between the two reads is in the list.
        * A process that ended before the list was created has already written everything that the
          second read shows.
        * A process that started later found a project at rest.
        """
        unconfirmed, self._unconfirmed = self._unconfirmed, {}
        at_work = self._delayed(unconfirmed.keys()) if unconfirmed else frozenset()
        settled = []
        for path, state in unconfirmed.items():
            candidate = self._all[path]
            candidate.is_in_use = path in at_work
            with OpenProject(path) as project:
                if not candidate.is_in_use and project_state(project, candidate.kind) == state:
                    settled.append(self._stop_waiting(candidate, state, project))
                    continue
            self._watch(candidate)
            self._schedule_check(candidate)
        return [end for end in settled if end is not None]

    def _delayed(self, paths: Collection[bytes]) -> frozenset[bytes]:
        """Return the candidates that wait for a process."""
        in_use, now = self._find_in_use(paths), self._now()
        overdue = {path for path in in_use if self._all[path].is_overdue(now)}
        at_work = self._find_tools(overdue) if overdue else frozenset()
        return in_use - overdue | {p for p in at_work if self._is_tool_at_work(self._all[p])}

    def _is_tool_at_work(self, candidate: Candidate) -> bool:
        """Return whether the tool in the folder created something lately."""
        if self._now() < candidate.idle_since() + _TOOL_PATIENCE_S:
            return True
        if candidate.stage is not Stage.COPYING or not candidate.is_growing():
            return False
        candidate.quiet_since = self._now()
        return True

    def _stop_waiting(
        self, candidate: Candidate, state: CompleteProject | PendingProject, project: OpenProject
    ) -> CandidateResult | None:
        stage = candidate.stage_to_wait_for(state, project)
        if (
            stage is Stage.COPYING
            and not is_git(candidate.kind)
            and candidate.is_growing()
            and not candidate.is_overdue(self._now())
        ):
            # Only the progress folders are watched, but the copy grows in another folder.
            candidate.quiet_since = self._now()
            self._schedule_check(candidate)
            return None
        outcome = None if stage is None else candidate.missing_part(stage, project)
        if outcome is None:
            self.drop(candidate.path)
            return candidate.result(project, state.final_kind, None, state.main_checkout)
        candidate.check_at = None
        if candidate.given_up is outcome:
            return None
        # Keep the watches: a resumed fetch can complete the project.
        candidate.given_up = outcome
        return candidate.result(project, candidate.kind, outcome, state.main_checkout)

    def _schedule_check(self, candidate: Candidate) -> None:
        """Schedule the next useful check, at the end of the quiet period at the latest."""
        self._unconfirmed.pop(candidate.path, None)
        if candidate.stage is None:
            return  # `consider` has not checked it yet
        now, period = self._now(), candidate.stage.quiet_period
        # Check again soon, because not every change causes an event. Check less often the longer
        # the candidate stays the same.
        pause = min(period.recheck_s * 2 ** min(candidate.postponements, 8), _MAX_CHECK_INTERVAL_S)
        candidate.postponements += 1
        left = candidate.idle_since() + period.length_s - now
        pause = max(pause, _RECHECK_WHILE_IN_USE_S) if left <= 0 else min(pause, left)
        if (since := candidate.unobjectionable_since) is not None:
            overdue_in = since + PROGRAM_PATIENCE_S - now
            pause = min(pause, overdue_in) if overdue_in > 0 else pause
        when = now + pause
        if pause >= _TIMER_GRANULARITY_S:
            # Round up, so that many candidates share one wake-up and one list of processes.
            when = math.ceil(when / _TIMER_GRANULARITY_S) * _TIMER_GRANULARITY_S
        self._set_timer(candidate, when)

    def _set_timer(self, candidate: Candidate, when: float) -> None:
        candidate.check_at = when
        heapq.heappush(self._timers, (when, next(self._sequence), candidate.path))

    def _watch(self, candidate: Candidate) -> None:
        for folder in progress_folders(candidate.path, candidate.kind):
            if folder in candidate.folders:
                continue
            # If a folder does not exist yet, the next check tries again.
            if self._watcher.watch(folder, WatchPurpose.PROGRESS) is WatchOutcome.WATCHED:
                candidate.folders.add(folder)
                self._watch_users.setdefault(folder, set()).add(candidate.path)

    def _unwatch(self, candidate: Candidate) -> None:
        for folder in candidate.folders:
            users = self._watch_users[folder]
            users.discard(candidate.path)
            if not users:
                del self._watch_users[folder]
                self._unused_watches.append(folder)
        if len(self._unused_watches) > _MAX_UNUSED_WATCHES:
            self.remove_unused_watches()

    def _forget_watch(self, folder: bytes) -> None:
        for path in self._watch_users.pop(folder, ()):
            self._all[path].folders.discard(folder)
        self._watcher.unwatch(folder, WatchPurpose.PROGRESS)
