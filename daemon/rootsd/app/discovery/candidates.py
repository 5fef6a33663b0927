"""Follows projects that are being made until each is whole, or given up.

Nothing here waits: `next_due` says when to look again. What only time can tell is believed when
the folder was quiet long enough and no process is at work on it.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable

from rootsd.app.discovery.candidate import OLD_S, Arrival, Candidate, Settled, is_old
from rootsd.core.model import ProjectKind
from rootsd.host.processes import WorkedOn
from rootsd.host.vcs.complete import folders_at_work, state_of, untouched_for
from rootsd.host.vcs.gitdir import is_git
from rootsd.host.vcs.look import Look
from rootsd.host.vcs.signs import is_telling, is_trace_of_a_maker
from rootsd.host.vcs.stages import Complete, Nothing, Pending, Stage
from rootsd.host.watch.events import Change, Happening, Purpose, Watched, Watcher

_AFTER_A_PROCESS_S = 0.02
_LONGEST_PAUSE_S = 1.0
_BEAT_S = 0.1
# Watches are short on some systems: in a storm they are given up at once.
_MOST_UNUSED = 64


class Candidates:
    """All projects of which it is not settled whether they are whole.

    `monotonic` is the clock of the quiet times; `answers` tells whether a look at a folder will
    end. One thread calls all methods.
    """

    def __init__(
        self,
        watcher: Watcher,
        worked_on: WorkedOn,
        monotonic: Callable[[], float],
        answers: Callable[[bytes], bool] = lambda _: True,
    ) -> None:
        self._watcher = watcher
        self._worked_on = worked_on
        self._now = monotonic
        self._answers = answers
        self._all: dict[bytes, Candidate] = {}
        self._unsure: dict[bytes, Complete | Pending] = {}
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

    def consider(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> Settled | None:
        """Judge a folder with a marker; None if it has to be followed first.

        Watch first, then look: a change in between is then told.
        """
        candidate = self._all.get(path)
        if candidate is None:
            candidate = Candidate(path, kind, arrival, self._now())
            if arrival is not Arrival.MADE and (settled := self._settle_at_once(candidate)):
                return settled
            if arrival is Arrival.FOUND and (age := untouched_for(path, kind)) > OLD_S:
                candidate.quiet_since -= age
            self._all[path] = candidate
        candidate.kind = kind
        return self._judge(candidate)

    def happened(self, happening: Happening) -> list[Settled]:
        """Something changed in a watched folder inside candidates."""
        settled = []
        followed = sorted(self._inside.get(happening.folder, ()))
        if happening.change is Change.ITSELF:
            # Its watch may have ended, or gone elsewhere with the folder: it is set anew below.
            self._forget_watch(happening.folder)
        for path in followed:
            candidate = self._all[path]
            if is_trace_of_a_maker(happening.name) and not candidate.checks_out_in(
                happening.folder
            ):
                candidate.maker_seen = True
            candidate.quiet_since, candidate.pauses = self._now(), 0
            if candidate.given_up is not None or is_telling(happening):
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

    def all_may_have_changed(self) -> list[Settled]:
        """Events were lost, and with them perhaps the end of a watch: begin anew with each that is
        being made. Those given up can wait for `catch_up`: few of them ever go on."""
        self._overtaken = [each for each in self._all.values() if each.given_up is not None]
        return self._begin_anew(each for each in self._all.values() if each.given_up is None)

    @property
    def is_behind(self) -> bool:
        """Whether there is something for `catch_up`."""
        return bool(self._overtaken)

    def catch_up(self, most: int) -> list[Settled]:
        """Begin anew with up to `most` of those given up before events were lost."""
        todo, self._overtaken = self._overtaken[:most], self._overtaken[most:]
        return self._begin_anew(each for each in todo if self._all.get(each.path) is each)

    def _begin_anew(self, some: Iterable[Candidate]) -> list[Settled]:
        settled = []
        for candidate in list(some):
            for folder in list(candidate.folders):
                if self._watcher.watch(folder, Purpose.AT_WORK) is not Watched.YES:
                    self._forget_watch(folder)
            candidate.quiet_since, candidate.pauses = self._now(), 0
            settled.append(self._judge(candidate))
        return [end for end in settled if end is not None]

    def sweep(self) -> list[Settled]:
        """Look at those given up: where watches are short, nothing tells that one goes on."""
        return self.look_at([p for p, each in self._all.items() if each.given_up is not None])

    def look_at(self, paths: Iterable[bytes]) -> list[Settled]:
        """Look at those of these that are followed: what they lacked elsewhere may have come."""
        followed = [self._all[path] for path in paths if path in self._all]
        return [end for each in followed if (end := self._judge(each)) is not None]

    def due(self) -> list[Settled]:
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
                self._watcher.unwatch(folder, Purpose.AT_WORK)

    def drop(self, path: bytes) -> bool:
        """Forget a candidate whose folder is gone or no project any more; whether it was one."""
        candidate = self._all.pop(path, None)
        if candidate is None:
            return False
        self._unsure.pop(path, None)
        self._unwatch(candidate)
        return True

    def _settle_at_once(self, candidate: Candidate) -> Settled | None:
        """What a scan finds is mostly whole and old, what is moved whole: no watch, no waiting."""
        with Look(candidate.path) as look:
            state = state_of(look, candidate.kind)
            match state:
                case Complete(kind=kind, main_checkout=main):
                    if candidate.doubt(state, look) is None:
                        return candidate.settled(look, kind, None, main)
                case Pending() if candidate.arrival is Arrival.MOVED:
                    return None
                case Pending(kind=kind, stage=Stage.IN_USE, main_checkout=main):
                    if candidate.conclusion(Stage.IN_USE, look) is None:
                        return candidate.settled(look, kind, None, main)
                case Pending(kind=kind, stage=stage) if not is_git(kind):
                    if is_old(candidate.path, kind) and candidate.conclusion(stage, look) is None:
                        return candidate.settled(look, kind)
                case Pending() | Nothing():
                    pass
        return None

    def _judge(self, candidate: Candidate) -> Settled | None:
        self._unsure.pop(candidate.path, None)
        if not self._answers(candidate.path):
            self._look_at(candidate, self._now() + _LONGEST_PAUSE_S)
            return None
        if not candidate.folders and self._is_there_already(candidate):
            return None
        self._watch(candidate)
        with Look(candidate.path) as look:
            return self._judge_by(look, candidate)

    def _judge_by(self, look: Look, candidate: Candidate) -> Settled | None:
        state = state_of(look, candidate.kind)
        if isinstance(state, Nothing):
            self.drop(candidate.path)
            return Settled(candidate.path, None)
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
        with Look(candidate.path) as look:
            state = state_of(look, candidate.kind)
            if isinstance(state, Nothing) or candidate.doubt(state, look) is not Stage.COPYING:
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

    def _ask_who_works(self) -> list[Settled]:
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
            with Look(path) as look:
                if not candidate.is_worked_on and state_of(look, candidate.kind) == state:
                    settled.append(self._give_up_waiting(candidate, state, look))
                    continue
            self._watch(candidate)
            self._look_again(candidate)
        return [end for end in settled if end is not None]

    def _give_up_waiting(
        self, candidate: Candidate, state: Complete | Pending, look: Look
    ) -> Settled | None:
        stage = candidate.doubt(state, look)
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
        pause = max(pause, _AFTER_A_PROCESS_S) if left <= 0 else min(pause, left)
        when = now + pause
        if pause >= _BEAT_S:
            # Many that wait are looked at together: one wake-up, one look at the processes.
            when = math.ceil(when / _BEAT_S) * _BEAT_S
        self._look_at(candidate, when)

    def _look_at(self, candidate: Candidate, when: float) -> None:
        candidate.due = when
        heapq.heappush(self._timers, (when, next(self._turn), candidate.path))

    def _watch(self, candidate: Candidate) -> None:
        for folder in folders_at_work(candidate.path, candidate.kind):
            if folder in candidate.folders:
                continue
            # One that is not there yet is tried again at the next look.
            if self._watcher.watch(folder, Purpose.AT_WORK) is Watched.YES:
                candidate.folders.add(folder)
                self._inside.setdefault(folder, set()).add(candidate.path)

    def _unwatch(self, candidate: Candidate) -> None:
        for folder in candidate.folders:
            users = self._inside[folder]
            users.discard(candidate.path)
            if not users:
                del self._inside[folder]
                self._unused.append(folder)
        if len(self._unused) > _MOST_UNUSED:
            self.tidy()

    def _forget_watch(self, folder: bytes) -> None:
        for path in self._inside.pop(folder, ()):
            self._all[path].folders.discard(folder)
        self._watcher.unwatch(folder, Purpose.AT_WORK)
