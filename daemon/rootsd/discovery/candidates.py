"""Track projects that are still being created until each is complete or given up.

A project of which it is not settled whether it is whole, and what may be concluded of it.

Follows projects that are being made until each is whole, or given up.

Nothing here waits: `next_due` says when to look again. What only time can tell is believed when
the folder was quiet long enough and no process is at work on it.
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
from rootsd.discovery.vcs_activity import is_significant_event
from rootsd.disk.markers import marker_in
from rootsd.disk.reader import list_names
from rootsd.system.processes import FindFoldersInUse
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.copies import interrupted_copy, is_complete_copy
from rootsd.vcs.git.repository import is_git
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

# What a scan finds unchanged for longer than this has been quiet for that long.
OLD_AFTER_S = 10.0

_CREATED_AT_ONCE_BY_GIT = frozenset((ProjectKind.GIT_WORKTREE, ProjectKind.GIT_SUBMODULE))


class Arrival(Enum):
    """How a candidate came to be known; it settles how long its state is looked at."""

    FOUND = "found by a scan"
    MOVED = "moved here as a whole"
    MADE = "made under our eyes"


@dataclass(frozen=True, slots=True)
class CandidateResult:
    """A candidate's end: what it is, or that it is nothing. `incomplete` if it was given up.

    `identity` is that of the folder that was judged, None if it could not be told; `has_links` is
    whether it may have worktrees elsewhere.
    """

    path: bytes
    kind: ProjectKind | None
    incomplete: IncompleteReason | None = None
    main_checkout: bytes | None = None
    identity: Identity | None = field(default=None, compare=False)
    has_links: bool = field(default=False, compare=False)


@dataclass(slots=True)
class Candidate:
    """What is known of it, and since when.

    `maker_seen`: a lock or the like came or went, so that no mere copy is being made.
    `is_worked_on`: the last look at the processes found one at work on the folder.
    """

    path: bytes
    kind: ProjectKind
    arrival: Arrival
    quiet_since: float
    stage: Stage | None = None
    stage_since: float = 0.0
    due: float | None = None
    pauses: int = 0
    maker_seen: bool = False
    is_worked_on: bool = False
    given_up: IncompleteReason | None = None
    folders: set[bytes] = field(default_factory=set)

    def in_peace_since(self) -> float:
        """Since when it is in its stage, and nothing happened."""
        return max(self.quiet_since, self.stage_since)

    def checks_out_in(self, folder: bytes) -> bool:
        """Whether `folder` is where git puts files: a name in it, like `Cargo.lock`, tells nothing
        of git itself."""
        return folder == self.path and is_git(self.kind) and self.kind is not ProjectKind.GIT_BARE

    def doubt(self, state: CompleteProject | PendingProject, look: OpenProject) -> Stage | None:
        """What a state, as seen by `look`, is taken for; None for one that is final and taken at
        its word.

        How it came settles only how long to wait: what is concluded then, the state alone tells.
        """
        if isinstance(state, PendingProject):
            return state.stage
        made = self.arrival is Arrival.MADE
        if state.kind is ProjectKind.PROJECT:
            return Stage.PROJECT_FILE if made else None
        if made and not is_git(state.kind):
            return Stage.SETTLING if self.maker_seen else Stage.COPYING
        if self.arrival is Arrival.FOUND and not is_git(state.kind) and self._may_be_growing():
            return Stage.COPYING
        if made and not self.maker_seen and state.kind not in _CREATED_AT_ONCE_BY_GIT:
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

    def settled(
        self,
        look: OpenProject,
        kind: ProjectKind,
        incomplete: IncompleteReason | None = None,
        main_checkout: bytes | None = None,
    ) -> CandidateResult:
        """Its end, as seen by `look`."""
        try:
            identity = look.identity()
        except (OSError, ValueError):
            identity = None
        git = look.git(kind)
        has_links = git is not None and may_have_worktrees(git)
        return CandidateResult(self.path, kind, incomplete, main_checkout, identity, has_links)

    def stays_given_up(self, stage: Stage) -> bool:
        """Whether it was given up for its stage alone, and still is in that."""
        given_up = self.given_up is not None and self.given_up is stage.wait.outcome
        return given_up and self.stage is stage

    def is_whole_copy(self, look: OpenProject) -> bool:
        """Whether a copy has all that it is to have, so that it need not be quiet first."""
        if self.stage is not Stage.COPYING or not is_git(self.kind):
            return False
        return is_complete_copy(look, self.kind) and not lacks_submodules(look, self.kind)

    def conclusion(self, stage: Stage, look: OpenProject) -> IncompleteReason | None:
        """What it lacks, now that it was quiet in `stage` and nobody works on it; None: nothing.

        A copy that was broken off can look like a stage that is whole in itself.
        """
        return incomplete_reason(look, self.kind, stage)


def is_marker_old(path: bytes, kind: ProjectKind) -> bool:
    """Whether the marker of a project has not changed for long."""
    marker = marker_in(list_names(path), kind)
    try:
        return time.time() - os.lstat(path + b"/" + marker).st_ctime > OLD_AFTER_S
    except OSError:
        return False


_RETRY_WHILE_WORKED_ON_S = 0.02
_LONGEST_PAUSE_S = 1.0
_TIMER_GRANULARITY_S = 0.1
# Watches are short on some systems: in a storm they are given up at once.
_MAX_UNUSED_WATCHES = 64


class Candidates:
    """All projects of which it is not settled whether they are whole.

    `monotonic` is the clock of the quiet times; `answers` tells whether a look at a folder will
    end. One thread calls all methods.
    """

    def __init__(
        self,
        watcher: Watcher,
        worked_on: FindFoldersInUse,
        monotonic: Callable[[], float],
        answers: Callable[[bytes], bool] = lambda _: True,
    ) -> None:
        self._watcher = watcher
        self._worked_on = worked_on
        self._now = monotonic
        self._answers = answers
        self._all: dict[bytes, Candidate] = {}
        self._unsure: dict[bytes, CompleteProject | PendingProject] = {}
        self._inside: dict[bytes, set[bytes]] = {}
        self._unused: list[bytes] = []
        self._overtaken: list[Candidate] = []
        self._timers: list[tuple[float, int, bytes]] = []
        self._turn = itertools.count()

    def __len__(self) -> int:
        """How many are being made; those given up do not count."""
        return len(self.being_made())

    def being_made(self) -> frozenset[bytes]:
        """The paths of those; some may have been reported as whole before, and are looked at
        again."""
        return frozenset(path for path, each in self._all.items() if each.given_up is None)

    def awaiting_quiet(self) -> frozenset[bytes]:
        """Return the paths being made that no process is known to work on.

        A quiet time of a few seconds at most settles each of them.
        """
        return frozenset(path for path in self.being_made() if not self._all[path].is_worked_on)

    def consider(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> CandidateResult | None:
        """Judge a folder with a marker; None if it has to be followed first.

        Watch first, then look: a change in between is then told.
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

    def happened(self, happening: FileEvent) -> list[CandidateResult]:
        """Something changed in a watched folder inside candidates."""
        settled = []
        followed = sorted(self._inside.get(happening.folder, ()))
        if happening.change is FileEventKind.ITSELF:
            # Its watch may have ended, or gone elsewhere with the folder: it is set anew below.
            self._forget_watch(happening.folder)
        for path in followed:
            candidate = self._all[path]
            if is_vcs_temporary_file(happening.name) and not candidate.checks_out_in(
                happening.folder
            ):
                candidate.maker_seen = True
            candidate.quiet_since, candidate.pauses = self._now(), 0
            if candidate.given_up is not None or is_significant_event(happening):
                settled.append(self._judge(candidate))
            else:
                self._look_again(candidate)
        return [end for end in settled if end is not None]

    def disturbed(self, path: bytes) -> None:
        """Something changed in the candidate's own folder: its quiet time starts anew."""
        if (candidate := self._all.get(path)) is not None:
            candidate.quiet_since = self._now()
            if path in self._unsure:
                self._look_again(candidate)

    def all_may_have_changed(self) -> list[CandidateResult]:
        """Events were lost, and with them perhaps the end of a watch: begin anew with each that is
        being made. Those given up can wait for `catch_up`: few of them ever go on."""
        self._overtaken = [each for each in self._all.values() if each.given_up is not None]
        return self._begin_anew(each for each in self._all.values() if each.given_up is None)

    @property
    def is_behind(self) -> bool:
        """Whether there is something for `catch_up`."""
        return bool(self._overtaken)

    def catch_up(self, most: int) -> list[CandidateResult]:
        """Begin anew with up to `most` of those given up before events were lost."""
        todo, self._overtaken = self._overtaken[:most], self._overtaken[most:]
        return self._begin_anew(each for each in todo if self._all.get(each.path) is each)

    def _begin_anew(self, some: Iterable[Candidate]) -> list[CandidateResult]:
        settled = []
        for candidate in list(some):
            for folder in list(candidate.folders):
                if self._watcher.watch(folder, WatchPurpose.AT_WORK) is not WatchOutcome.YES:
                    self._forget_watch(folder)
            candidate.quiet_since, candidate.pauses = self._now(), 0
            settled.append(self._judge(candidate))
        return [end for end in settled if end is not None]

    def sweep(self) -> list[CandidateResult]:
        """Look at those given up: where watches are short, nothing tells that one goes on."""
        return self.look_at([p for p, each in self._all.items() if each.given_up is not None])

    def look_at(self, paths: Iterable[bytes]) -> list[CandidateResult]:
        """Look at those of these that are followed: what they lacked elsewhere may have come."""
        followed = [self._all[path] for path in paths if path in self._all]
        return [end for each in followed if (end := self._judge(each)) is not None]

    def due(self) -> list[CandidateResult]:
        """Look again at those whose time has come, and at the processes if any is in doubt."""
        settled, now = [], self._now()
        while self._timers and self._timers[0][0] <= now:
            when, _, path = heapq.heappop(self._timers)
            candidate = self._all.get(path)
            if candidate is not None and candidate.due == when:
                settled.append(self._judge(candidate))
        return [*(end for end in settled if end is not None), *self._ask_who_works()]

    def next_due(self) -> float | None:
        """When `due` is to be called, on the clock given; None if nothing is waited for."""
        if self._unsure:
            return self._now()
        while self._timers:
            when, _, path = self._timers[0]
            candidate = self._all.get(path)
            if candidate is not None and candidate.due == when:
                return when
            # Put off or settled since: a clone leaves dozens, and each would be a wake-up.
            heapq.heappop(self._timers)
        return None

    @property
    def is_untidy(self) -> bool:
        """Whether there is something to `tidy`."""
        return bool(self._unused)

    def tidy(self) -> None:
        """Give up the watches that nobody needs any more. It is no part of settling, which is
        waited for: each makes an event, and so another thread wake up."""
        unused, self._unused = self._unused, []
        for folder in unused:
            if folder not in self._inside:
                self._watcher.unwatch(folder, WatchPurpose.AT_WORK)

    def drop(self, path: bytes) -> bool:
        """Forget a candidate whose folder is gone or no project any more; whether it was one."""
        candidate = self._all.pop(path, None)
        if candidate is None:
            return False
        self._unsure.pop(path, None)
        self._unwatch(candidate)
        return True

    def _settle_at_once(self, candidate: Candidate) -> CandidateResult | None:
        """What a scan finds is mostly whole and old, what is moved whole: no watch, no waiting."""
        with OpenProject(candidate.path) as look:
            state = project_state(look, candidate.kind)
            match state:
                case CompleteProject(kind=kind, main_checkout=main):
                    if candidate.doubt(state, look) is None:
                        return candidate.settled(look, kind, None, main)
                case PendingProject() if candidate.arrival is Arrival.MOVED:
                    return None
                case PendingProject(kind=kind, stage=Stage.IN_USE, main_checkout=main):
                    if candidate.conclusion(Stage.IN_USE, look) is None:
                        return candidate.settled(look, kind, None, main)
                case PendingProject(kind=kind, stage=stage) if not is_git(kind):
                    if (
                        is_marker_old(candidate.path, kind)
                        and candidate.conclusion(stage, look) is None
                    ):
                        return candidate.settled(look, kind)
                case PendingProject() | NoProject():
                    pass
        return None

    def _judge(self, candidate: Candidate) -> CandidateResult | None:
        self._unsure.pop(candidate.path, None)
        if not self._answers(candidate.path):
            self._look_at(candidate, self._now() + _LONGEST_PAUSE_S)
            return None
        if not candidate.folders and self._is_there_already(candidate):
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
        stage = candidate.doubt(state, look)
        if stage is None:
            self.drop(candidate.path)
            return candidate.settled(look, state.kind, None, state.main_checkout)
        if candidate.stays_given_up(stage):
            return None
        self._enter(candidate, stage)
        now, since, wait = self._now(), candidate.in_peace_since(), stage.wait
        if wait.patience_s is not None and now >= since + wait.patience_s:
            return self._give_up_waiting(candidate, state, look)
        if now >= since + wait.quiet_s or candidate.is_whole_copy(look):
            self._unsure[candidate.path] = state
        else:
            self._look_again(candidate)
        return None

    def _is_there_already(self, candidate: Candidate) -> bool:
        """Whether a copy was whole before it was heard of, as after an overflow: nothing is waited
        for, so nothing is watched. The next readings settle it, or watch it."""
        with OpenProject(candidate.path) as look:
            state = project_state(look, candidate.kind)
            if isinstance(state, NoProject) or candidate.doubt(state, look) is not Stage.COPYING:
                return False
            candidate.kind = state.kind
            self._enter(candidate, Stage.COPYING)
            if not candidate.is_whole_copy(look):
                return False
        self._unsure[candidate.path] = state
        return True

    def _enter(self, candidate: Candidate, stage: Stage) -> None:
        if stage is not candidate.stage:
            first = candidate.stage is None
            candidate.stage, candidate.pauses = stage, 0
            # What was there before we came has been in its stage for as long as it was quiet.
            candidate.stage_since = candidate.quiet_since if first else self._now()

    def _ask_who_works(self) -> list[CandidateResult]:
        """Settle those of which nothing but a process at work could be in doubt: one look for all.

        Signs are read, then processes looked at, then the signs read again, and only where both
        readings agree is anything concluded. A maker that was at work between the readings is
        seen by the look; or it ended before that, and the second reading shows all it wrote; or
        it came after, and what it found was at rest.
        """
        unsure, self._unsure = self._unsure, {}
        at_work = self._worked_on(unsure.keys()) if unsure else frozenset()
        settled = []
        for path, state in unsure.items():
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
        stage = candidate.doubt(state, look)
        if stage is Stage.COPYING and not is_git(candidate.kind) and candidate.is_growing():
            # Only the folders where a VCS shows progress are watched: look at all of them.
            candidate.quiet_since = self._now()
            self._look_again(candidate)
            return None
        outcome = None if stage is None else candidate.conclusion(stage, look)
        if outcome is None:
            self.drop(candidate.path)
            return candidate.settled(look, candidate.kind, None, state.main_checkout)
        candidate.due = None
        if candidate.given_up is outcome:
            return None
        # It stays watched: a fetch that is resumed makes it whole.
        candidate.given_up = outcome
        return candidate.settled(look, candidate.kind, outcome, state.main_checkout)

    def _look_again(self, candidate: Candidate) -> None:
        """At the next look that may tell something, at most until the quiet time is over."""
        self._unsure.pop(candidate.path, None)
        if candidate.stage is None:
            return  # it is just being considered
        now, wait = self._now(), candidate.stage.wait
        # No event tells of what is not watched; but who waits long need not look often.
        pause = min(wait.again_s * 2 ** min(candidate.pauses, 8), _LONGEST_PAUSE_S)
        candidate.pauses += 1
        left = candidate.in_peace_since() + wait.quiet_s - now
        pause = max(pause, _RETRY_WHILE_WORKED_ON_S) if left <= 0 else min(pause, left)
        when = now + pause
        if pause >= _TIMER_GRANULARITY_S:
            # Many that wait are looked at together: one wake-up, one look at the processes.
            when = math.ceil(when / _TIMER_GRANULARITY_S) * _TIMER_GRANULARITY_S
        self._look_at(candidate, when)

    def _look_at(self, candidate: Candidate, when: float) -> None:
        candidate.due = when
        heapq.heappush(self._timers, (when, next(self._turn), candidate.path))

    def _watch(self, candidate: Candidate) -> None:
        for folder in progress_folders(candidate.path, candidate.kind):
            if folder in candidate.folders:
                continue
            # One that is not there yet is tried again at the next look.
            if self._watcher.watch(folder, WatchPurpose.AT_WORK) is WatchOutcome.YES:
                candidate.folders.add(folder)
                self._inside.setdefault(folder, set()).add(candidate.path)

    def _unwatch(self, candidate: Candidate) -> None:
        for folder in candidate.folders:
            users = self._inside[folder]
            users.discard(candidate.path)
            if not users:
                del self._inside[folder]
                self._unused.append(folder)
        if len(self._unused) > _MAX_UNUSED_WATCHES:
            self.tidy()

    def _forget_watch(self, folder: bytes) -> None:
        for path in self._inside.pop(folder, ()):
            self._all[path].folders.discard(folder)
        self._watcher.unwatch(folder, WatchPurpose.AT_WORK)
