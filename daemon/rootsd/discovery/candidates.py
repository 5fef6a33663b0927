"""Track projects that are still being created until each is complete or given up.

Discovery sees a project as soon as its marker appears. A clone, checkout or copy may then still
run for minutes, and an incomplete project must not be proposed. Each such project is a `Candidate`
until one of these happens:

* It is complete. `Candidates` returns a `CandidateResult`, and the project is proposed.
* It was quiet for a long time and is still incomplete. It is given up: reported with the reason,
  but watched on, because a resumed fetch can complete it.
* Its folder is gone, or is no project.

How a candidate is judged. `project_state` (`rootsd.vcs.probe`) reads the files that show the state
of the project: markers, locks, the index. For git this is exact. Some states can only be told from
an earlier stage by waiting, such as a copy that has no lock. Each `Stage` says how long the folder
must be quiet. After that time, the state is believed only if no process works in the folder.

When a candidate is judged. Nothing here sleeps or blocks. The folders in which its tool works are
watched, so an event leads to the next look (`handle`). A timer covers what no watch reports:
`next_due` tells the service when to call `due`.

A scan finds mostly old, complete projects. `_settle_at_once` reports those without a watch or a
wait.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from rootsd.core.model import Identity, IncompleteReason, ProjectKind
from rootsd.disk.markers import marker_in
from rootsd.disk.reader import list_names
from rootsd.system.processes import FindFoldersInUse
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.copies import interrupted_copy, is_complete_copy
from rootsd.vcs.git.repository import GIT_STATE_FILES, is_git
from rootsd.vcs.git.submodules import lacks_submodules
from rootsd.vcs.git.worktrees import may_have_worktrees
from rootsd.vcs.probe import (
    changed_within,
    incomplete_reason,
    progress_folders,
    project_state,
    seconds_since_change,
)
from rootsd.vcs.registry import is_vcs_temporary_file
from rootsd.vcs.stages import CompleteProject, NoProject, PendingProject, Stage
from rootsd.watch.events import FileEvent, FileEventKind, Watcher, WatchOutcome, WatchPurpose

# A project that a scan finds unchanged for longer than this counts as quiet for that long.
OLD_AFTER_S = 10.0

_CREATED_AT_ONCE_BY_GIT = frozenset((ProjectKind.GIT_WORKTREE, ProjectKind.GIT_SUBMODULE))


class Arrival(Enum):
    """How a candidate became known. It decides how long the candidate must be quiet."""

    FOUND = "found by a scan"
    MOVED = "moved here as a whole"
    MADE = "created while discovery watched"


@dataclass(frozen=True, slots=True)
class CandidateResult:
    """The result of a candidate: its kind, or None if it is no project.

    `incomplete` is the reason if it was given up. `identity` is the identity of the folder that
    was judged, or None if it could not be read. `has_links`: it may have worktrees elsewhere.
    """

    path: bytes
    kind: ProjectKind | None
    incomplete: IncompleteReason | None = None
    main_checkout: bytes | None = None
    identity: Identity | None = field(default=None, compare=False)
    has_links: bool = field(default=False, compare=False)


@dataclass(slots=True)
class Candidate:
    """The state of one candidate, with the times since when it holds.

    `saw_vcs_at_work`: a lock or temporary file of a VCS came or went, so this is more than a copy.
    `is_worked_on`: the last look at the processes found one that works in the folder. `due`: when
    to look next. `pauses`: how often the look was postponed. `folders`: the watched folders.
    """

    path: bytes
    kind: ProjectKind
    arrival: Arrival
    quiet_since: float
    stage: Stage | None = None
    stage_since: float = 0.0
    due: float | None = None
    pauses: int = 0
    saw_vcs_at_work: bool = False
    is_worked_on: bool = False
    given_up: IncompleteReason | None = None
    folders: set[bytes] = field(default_factory=set)

    def idle_since(self) -> float:
        """Return since when the candidate is in its stage and nothing happened."""
        return max(self.quiet_since, self.stage_since)

    def is_checkout_folder(self, folder: bytes) -> bool:
        """Return whether git writes project files into `folder`.

        A name there, such as `Cargo.lock`, says nothing about git itself.
        """
        return folder == self.path and is_git(self.kind) and self.kind is not ProjectKind.GIT_BARE

    def stage_to_wait_for(
        self, state: CompleteProject | PendingProject, look: OpenProject
    ) -> Stage | None:
        """Return the stage to wait for, or None if the state is final.

        `state` was read by `look`. The arrival decides only how long to wait; the state alone
        decides the result.
        """
        if isinstance(state, PendingProject):
            return state.stage
        made = self.arrival is Arrival.MADE
        if state.kind is ProjectKind.PROJECT:
            return Stage.PROJECT_FILE if made else None
        if made and not is_git(state.kind):
            return Stage.SETTLING if self.saw_vcs_at_work else Stage.COPYING
        if self.arrival is Arrival.FOUND and not is_git(state.kind) and self._may_be_growing():
            return Stage.COPYING
        if made and not self.saw_vcs_at_work and state.kind not in _CREATED_AT_ONCE_BY_GIT:
            return Stage.COPYING
        if interrupted_copy(look, state.kind) is not None:
            return Stage.COPYING
        return Stage.SUBMODULES if lacks_submodules(look, state.kind) else None

    def _may_be_growing(self) -> bool:
        """Return whether a checkout that a scan found may be an unfinished copy.

        A copy of a git checkout is compared with its index. A copy of any other checkout ends
        with a quiet period.
        """
        return self.stage is Stage.COPYING or self.is_growing()

    def is_growing(self) -> bool:
        """Return whether anything in the folder changed within the quiet period of a copy."""
        return changed_within(self.path, Stage.COPYING.wait.quiet_s)

    def result(
        self,
        look: OpenProject,
        kind: ProjectKind,
        incomplete: IncompleteReason | None = None,
        main_checkout: bytes | None = None,
    ) -> CandidateResult:
        """Return the result, as seen by `look`."""
        try:
            identity = look.identity()
        except (OSError, ValueError):
            identity = None
        git = look.git(kind)
        has_links = git is not None and may_have_worktrees(git)
        return CandidateResult(self.path, kind, incomplete, main_checkout, identity, has_links)

    def stays_given_up(self, stage: Stage) -> bool:
        """Return whether it was given up because of `stage` alone, and is still in that stage."""
        given_up = self.given_up is not None and self.given_up is stage.wait.outcome
        return given_up and self.stage is stage

    def has_everything(self, look: OpenProject) -> bool:
        """Return whether a copy already has everything, so that it need not be quiet first."""
        if self.stage is not Stage.COPYING or not is_git(self.kind):
            return False
        return is_complete_copy(look, self.kind) and not lacks_submodules(look, self.kind)

    def missing_part(self, stage: Stage, look: OpenProject) -> IncompleteReason | None:
        """Return what is missing after the quiet period of `stage`, or None if it is complete.

        An interrupted copy can look like a stage that is complete in itself.
        """
        return incomplete_reason(look, self.kind, stage)


def is_marker_old(path: bytes, kind: ProjectKind) -> bool:
    """Return whether the marker of a project has not changed for `OLD_AFTER_S`."""
    marker = marker_in(list_names(path), kind)
    try:
        return time.time() - os.lstat(path + b"/" + marker).st_ctime > OLD_AFTER_S
    except OSError:
        return False


def is_significant_event(event: FileEvent) -> bool:
    """Return whether a change in a progress folder can end a stage.

    Such changes are a rename into place, a removed lock, a new index, and text in a `.git` file
    that was empty when it was read.
    """
    name = event.name
    if not name:
        return True
    if name == b".git":
        return event.kind is FileEventKind.MODIFIED
    if (
        name not in GIT_STATE_FILES
        and not name.endswith(b".keep")
        and not is_vcs_temporary_file(name)
    ):
        return False
    if event.kind is FileEventKind.REMOVED or event.moved:
        return True
    return event.kind is FileEventKind.ADDED and name == b"index"


_RETRY_WHILE_WORKED_ON_S = 0.02
_LONGEST_PAUSE_S = 1.0
_TIMER_GRANULARITY_S = 0.1
# Some systems allow few watches, so many unused ones are removed at once.
_MAX_UNUSED_WATCHES = 64


class Candidates:
    """All candidates. One thread calls all methods.

    `monotonic` is the clock of the quiet periods. `answers` says whether the file system of a path
    answers.
    """

    def __init__(
        self,
        watcher: Watcher,
        find_in_use: FindFoldersInUse,
        monotonic: Callable[[], float],
        answers: Callable[[bytes], bool] = lambda _: True,
    ) -> None:
        self._watcher = watcher
        self._find_in_use = find_in_use
        self._now = monotonic
        self._answers = answers
        self._all: dict[bytes, Candidate] = {}
        self._unconfirmed: dict[bytes, CompleteProject | PendingProject] = {}
        self._watch_users: dict[bytes, set[bytes]] = {}
        self._unused: list[bytes] = []
        self._deferred: list[Candidate] = []
        self._timers: list[tuple[float, int, bytes]] = []
        self._sequence = itertools.count()

    def __len__(self) -> int:
        """Return the number of projects being made, without those given up."""
        return len(self.being_made())

    def being_made(self) -> frozenset[bytes]:
        """Return their paths. Some may have been reported as complete before, and are judged
        again.
        """
        return frozenset(path for path, each in self._all.items() if each.given_up is None)

    def awaiting_quiet(self) -> frozenset[bytes]:
        """Return the paths being made in which no process is known to work.

        A quiet period of a few seconds at most settles each of them.
        """
        return frozenset(path for path in self.being_made() if not self._all[path].is_worked_on)

    def consider(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> CandidateResult | None:
        """Judge a folder with a marker. Return None if it has to be followed first.

        Watch before looking, so that a change in between causes an event.
        """
        candidate = self._all.get(path)
        if candidate is None:
            candidate = Candidate(path, kind, arrival, self._now())
            if arrival is not Arrival.MADE and (settled := self._settle_at_once(candidate)):
                return settled
            if (
                arrival is Arrival.FOUND
                and (age := seconds_since_change(path, kind)) > OLD_AFTER_S
            ):
                candidate.quiet_since -= age
            self._all[path] = candidate
        candidate.kind = kind
        return self._judge(candidate)

    def handle(self, event: FileEvent) -> list[CandidateResult]:
        """Handle a change in a watched folder inside candidates."""
        settled = []
        followed = sorted(self._watch_users.get(event.folder, ()))
        if event.kind is FileEventKind.SELF:
            # The watch may have ended, or moved away with the folder. `_judge` sets it again.
            self._forget_watch(event.folder)
        for path in followed:
            candidate = self._all[path]
            if is_vcs_temporary_file(event.name) and not candidate.is_checkout_folder(
                event.folder
            ):
                candidate.saw_vcs_at_work = True
            candidate.quiet_since, candidate.pauses = self._now(), 0
            if candidate.given_up is not None or is_significant_event(event):
                settled.append(self._judge(candidate))
            else:
                self._look_again(candidate)
        return [end for end in settled if end is not None]

    def restart_quiet_time(self, path: bytes) -> None:
        """Restart the quiet period of the candidate at `path`: its own folder changed."""
        if (candidate := self._all.get(path)) is not None:
            candidate.quiet_since = self._now()
            if path in self._unconfirmed:
                self._look_again(candidate)

    def handle_overflow(self) -> list[CandidateResult]:
        """Judge all candidates again, because events were lost, and perhaps the end of a watch.

        Those given up wait for `catch_up`: few of them ever continue.
        """
        self._deferred = [each for each in self._all.values() if each.given_up is not None]
        return self._judge_again(each for each in self._all.values() if each.given_up is None)

    @property
    def is_behind(self) -> bool:
        """Whether there is deferred work for `catch_up`."""
        return bool(self._deferred)

    def catch_up(self, most: int) -> list[CandidateResult]:
        """Judge again up to `most` of the candidates that were given up before events
        were lost.
        """
        todo, self._deferred = self._deferred[:most], self._deferred[most:]
        return self._judge_again(each for each in todo if self._all.get(each.path) is each)

    def _judge_again(self, some: Iterable[Candidate]) -> list[CandidateResult]:
        settled = []
        for candidate in list(some):
            for folder in list(candidate.folders):
                if self._watcher.watch(folder, WatchPurpose.PROGRESS) is not WatchOutcome.WATCHED:
                    self._forget_watch(folder)
            candidate.quiet_since, candidate.pauses = self._now(), 0
            settled.append(self._judge(candidate))
        return [end for end in settled if end is not None]

    def sweep(self) -> list[CandidateResult]:
        """Judge those given up again: without a watch, no event reports that one continues."""
        return self.look_at([p for p, each in self._all.items() if each.given_up is not None])

    def look_at(self, paths: Iterable[bytes]) -> list[CandidateResult]:
        """Judge the candidates among `paths`: what they lacked elsewhere may have come."""
        followed = [self._all[path] for path in paths if path in self._all]
        return [end for each in followed if (end := self._judge(each)) is not None]

    def due(self) -> list[CandidateResult]:
        """Judge the candidates that are due, and look at the processes if any result is
        in doubt.
        """
        settled, now = [], self._now()
        while self._timers and self._timers[0][0] <= now:
            when, _, path = heapq.heappop(self._timers)
            candidate = self._all.get(path)
            if candidate is not None and candidate.due == when:
                settled.append(self._judge(candidate))
        return [*(end for end in settled if end is not None), *self._confirm_idle()]

    def next_due(self) -> float | None:
        """Return when to call `due`, on the clock given, or None if nothing is due."""
        if self._unconfirmed:
            return self._now()
        while self._timers:
            when, _, path = self._timers[0]
            candidate = self._all.get(path)
            if candidate is not None and candidate.due == when:
                return when
            # This timer was postponed, or its candidate settled. A clone leaves dozens of such
            # timers, and each would be a wake-up.
            heapq.heappop(self._timers)
        return None

    @property
    def is_untidy(self) -> bool:
        """Whether there are watches for `tidy` to remove."""
        return bool(self._unused)

    def tidy(self) -> None:
        """Remove the watches that are no longer needed.

        Settling does not do this, because callers wait for it: each removal makes an event, and so
        wakes another thread.
        """
        unused, self._unused = self._unused, []
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
        """Return the result if none has to be waited for, and set no watch.

        Most projects that a scan finds are complete and old, and a moved project arrives complete.
        """
        with OpenProject(candidate.path) as look:
            state = project_state(look, candidate.kind)
            match state:
                case CompleteProject(kind=kind, main_checkout=main):
                    if candidate.stage_to_wait_for(state, look) is None:
                        return candidate.result(look, kind, None, main)
                case PendingProject() if candidate.arrival is Arrival.MOVED:
                    return None
                case PendingProject(kind=kind, stage=Stage.IN_USE, main_checkout=main):
                    if candidate.missing_part(Stage.IN_USE, look) is None:
                        return candidate.result(look, kind, None, main)
                case PendingProject(kind=kind, stage=stage) if not is_git(kind):
                    if (
                        is_marker_old(candidate.path, kind)
                        and candidate.missing_part(stage, look) is None
                    ):
                        return candidate.result(look, kind)
                case PendingProject() | NoProject():
                    pass
        return None

    def _judge(self, candidate: Candidate) -> CandidateResult | None:
        self._unconfirmed.pop(candidate.path, None)
        if not self._answers(candidate.path):
            self._look_at(candidate, self._now() + _LONGEST_PAUSE_S)
            return None
        if not candidate.folders and self._was_complete_before(candidate):
            return None
        self._watch(candidate)
        with OpenProject(candidate.path) as look:
            return self._judge_by(look, candidate)

    def _judge_by(self, look: OpenProject, candidate: Candidate) -> CandidateResult | None:
        state = project_state(look, candidate.kind)
        if isinstance(state, NoProject):
            self.drop(candidate.path)
            return CandidateResult(candidate.path, None)
        candidate.kind = state.kind
        stage = candidate.stage_to_wait_for(state, look)
        if stage is None:
            self.drop(candidate.path)
            return candidate.result(look, state.kind, None, state.main_checkout)
        if candidate.stays_given_up(stage):
            return None
        self._enter(candidate, stage)
        now, since, wait = self._now(), candidate.idle_since(), stage.wait
        if wait.patience_s is not None and now >= since + wait.patience_s:
            return self._give_up_waiting(candidate, state, look)
        if now >= since + wait.quiet_s or candidate.has_everything(look):
            self._unconfirmed[candidate.path] = state
        else:
            self._look_again(candidate)
        return None

    def _was_complete_before(self, candidate: Candidate) -> bool:
        """Return whether a copy was complete before it became known, as after an overflow.

        Nothing has to be waited for, so nothing is watched. The next two readings settle it or set
        a watch.
        """
        with OpenProject(candidate.path) as look:
            state = project_state(look, candidate.kind)
            if (
                isinstance(state, NoProject)
                or candidate.stage_to_wait_for(state, look) is not Stage.COPYING
            ):
                return False
            candidate.kind = state.kind
            self._enter(candidate, Stage.COPYING)
            if not candidate.has_everything(look):
                return False
        self._unconfirmed[candidate.path] = state
        return True

    def _enter(self, candidate: Candidate, stage: Stage) -> None:
        if stage is not candidate.stage:
            first = candidate.stage is None
            candidate.stage, candidate.pauses = stage, 0
            # A project that existed before has been in its stage for as long as it was quiet.
            candidate.stage_since = candidate.quiet_since if first else self._now()

    def _confirm_idle(self) -> list[CandidateResult]:
        """Settle the candidates that only a working process could still change, with one look for
        all.

        First the state is read, then the processes are listed, then the state is read again. The
        result counts only if both readings agree. This is safe in each case:

        * A process that worked between the readings is in the list.
        * A process that ended before the list was made has written everything that the second
          reading shows.
        * A process that started later found the project at rest.
        """
        unconfirmed, self._unconfirmed = self._unconfirmed, {}
        at_work = self._find_in_use(unconfirmed.keys()) if unconfirmed else frozenset()
        settled = []
        for path, state in unconfirmed.items():
            candidate = self._all[path]
            candidate.is_worked_on = path in at_work
            with OpenProject(path) as look:
                if not candidate.is_worked_on and project_state(look, candidate.kind) == state:
                    settled.append(self._give_up_waiting(candidate, state, look))
                    continue
            self._watch(candidate)
            self._look_again(candidate)
        return [end for end in settled if end is not None]

    def _give_up_waiting(
        self, candidate: Candidate, state: CompleteProject | PendingProject, look: OpenProject
    ) -> CandidateResult | None:
        stage = candidate.stage_to_wait_for(state, look)
        if stage is Stage.COPYING and not is_git(candidate.kind) and candidate.is_growing():
            # Only the folders where a VCS shows progress are watched: look at all of them.
            candidate.quiet_since = self._now()
            self._look_again(candidate)
            return None
        outcome = None if stage is None else candidate.missing_part(stage, look)
        if outcome is None:
            self.drop(candidate.path)
            return candidate.result(look, candidate.kind, None, state.main_checkout)
        candidate.due = None
        if candidate.given_up is outcome:
            return None
        # It stays watched: a resumed fetch can complete it.
        candidate.given_up = outcome
        return candidate.result(look, candidate.kind, outcome, state.main_checkout)

    def _look_again(self, candidate: Candidate) -> None:
        """Schedule the next useful look, at the end of the quiet period at the latest."""
        self._unconfirmed.pop(candidate.path, None)
        if candidate.stage is None:
            return  # `consider` has not judged it yet
        now, wait = self._now(), candidate.stage.wait
        # No event reports a change that is not watched, so look again soon. After long waits, look
        # less often.
        pause = min(wait.again_s * 2 ** min(candidate.pauses, 8), _LONGEST_PAUSE_S)
        candidate.pauses += 1
        left = candidate.idle_since() + wait.quiet_s - now
        pause = max(pause, _RETRY_WHILE_WORKED_ON_S) if left <= 0 else min(pause, left)
        when = now + pause
        if pause >= _TIMER_GRANULARITY_S:
            # Round up, so that many candidates share one wake-up and one look at the processes.
            when = math.ceil(when / _TIMER_GRANULARITY_S) * _TIMER_GRANULARITY_S
        self._look_at(candidate, when)

    def _look_at(self, candidate: Candidate, when: float) -> None:
        candidate.due = when
        heapq.heappush(self._timers, (when, next(self._sequence), candidate.path))

    def _watch(self, candidate: Candidate) -> None:
        for folder in progress_folders(candidate.path, candidate.kind):
            if folder in candidate.folders:
                continue
            # A folder that does not exist yet is tried again at the next look.
            if self._watcher.watch(folder, WatchPurpose.PROGRESS) is WatchOutcome.WATCHED:
                candidate.folders.add(folder)
                self._watch_users.setdefault(folder, set()).add(candidate.path)

    def _unwatch(self, candidate: Candidate) -> None:
        for folder in candidate.folders:
            users = self._watch_users[folder]
            users.discard(candidate.path)
            if not users:
                del self._watch_users[folder]
                self._unused.append(folder)
        if len(self._unused) > _MAX_UNUSED_WATCHES:
            self.tidy()

    def _forget_watch(self, folder: bytes) -> None:
        for path in self._watch_users.pop(folder, ()):
            self._all[path].folders.discard(folder)
        self._watcher.unwatch(folder, WatchPurpose.PROGRESS)
