"""A project of which it is not settled whether it is whole, and what may be concluded of it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from enum import Enum

from rootsd.core.model import Incomplete, ProjectKind
from rootsd.host.disk.markers import marker_in
from rootsd.host.disk.reader import names_in
from rootsd.host.vcs.copies import what_lacks
from rootsd.host.vcs.gitdir import is_git, locate
from rootsd.host.vcs.stages import Complete, Pending, Stage
from rootsd.host.vcs.submodules import lacks_submodules

# What a scan finds unchanged for longer than this has been quiet for that long.
OLD_S = 10.0

_GIT_MAKES_AT_ONCE = frozenset((ProjectKind.GIT_WORKTREE, ProjectKind.GIT_SUBMODULE))


class Arrival(Enum):
    """How a candidate came to be known; it settles how much its state proves."""

    FOUND = "found by a scan"
    MOVED = "moved here as a whole"
    MADE = "made under our eyes"


@dataclass(frozen=True, slots=True)
class Settled:
    """A candidate's end: what it is, or that it is nothing. `incomplete` if it was given up."""

    path: bytes
    kind: ProjectKind | None
    incomplete: Incomplete | None = None
    main_checkout: bytes | None = None


@dataclass(slots=True)
class Candidate:
    """What is known of it, and since when.

    `maker_seen`: a lock or the like came or went, so that no mere copy is being made; `grew`: it
    was in another stage before.
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
    grew: bool = False
    given_up: Incomplete | None = None
    folders: set[bytes] = field(default_factory=set)

    def in_peace_since(self) -> float:
        """Since when it is in its stage, and nothing happened."""
        return max(self.quiet_since, self.stage_since)

    def doubt(self, state: Complete | Pending) -> Stage | None:
        """What a state is taken for; None for one that is final and taken at its word."""
        if isinstance(state, Pending):
            return state.stage
        if self.arrival is not Arrival.MADE:
            return None
        if state.kind is ProjectKind.PROJECT:
            return Stage.PROJECT_FILE
        if not is_git(state.kind):
            return Stage.SETTLING if self.maker_seen else Stage.COPYING
        if not self.maker_seen and state.kind not in _GIT_MAKES_AT_ONCE:
            return Stage.COPYING
        return Stage.SUBMODULES if self._lacks_submodules() else None

    def is_whole_copy(self) -> bool:
        """Whether a copy has all that its index names, so that it need not be quiet first."""
        if self.stage is not Stage.COPYING or not is_git(self.kind):
            return False
        return what_lacks(self.path, self.kind) is None and not self._lacks_submodules()

    def conclusion(self, stage: Stage) -> Incomplete | None:
        """What it lacks, now that it was quiet in `stage` and nobody works on it; None: nothing.

        A copy that was broken off can look like a stage that is whole in itself.
        """
        if stage.wait.outcome is not None or self.arrival is not Arrival.MADE:
            return stage.wait.outcome
        match stage:
            case Stage.FILES_BEFORE_INDEX:
                # git writes them under the lock of the index; without either it was stopped.
                return Incomplete.NOT_CHECKED_OUT
            case Stage.NOT_CHECKED_OUT | Stage.REMOTE_ALONE:
                # Seen to grow, but by no lock: no `git clone --no-checkout`, no `git init`.
                copied = self.grew and not self.maker_seen
                return Incomplete.NOT_CHECKED_OUT if copied else None
            case Stage.COPYING | Stage.SETTLING | Stage.STAGED_UNBORN:
                # So does a copy of a checkout without some of its files: git's next lock tells.
                lacking = what_lacks(self.path, self.kind)
                if lacking is None and self._lacks_submodules():
                    return Incomplete.NOT_CHECKED_OUT
                return lacking
            case _:
                return None

    def _lacks_submodules(self) -> bool:
        place = locate(self.path) if self.kind is ProjectKind.GIT else None
        return place is not None and lacks_submodules(place)


def is_old(path: bytes, kind: ProjectKind) -> bool:
    """Whether the marker of a project has not changed for long."""
    marker = marker_in(names_in(path), kind)
    try:
        return time.time() - os.lstat(path + b"/" + marker).st_ctime > OLD_S
    except OSError:
        return False
