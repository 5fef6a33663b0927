"""A project of which it is not settled whether it is whole, and what may be concluded of it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from enum import Enum

from rootsd.core.model import Identity, Incomplete, ProjectKind
from rootsd.host.disk.markers import marker_in
from rootsd.host.disk.reader import names_in
from rootsd.host.vcs.complete import what_is_missing
from rootsd.host.vcs.copies import broken_off, is_whole_copy
from rootsd.host.vcs.gitdir import is_git
from rootsd.host.vcs.look import Look
from rootsd.host.vcs.stages import Complete, Pending, Stage
from rootsd.host.vcs.submodules import lacks_submodules
from rootsd.host.vcs.worktrees import may_have_links

# What a scan finds unchanged for longer than this has been quiet for that long.
OLD_S = 10.0

_GIT_MAKES_AT_ONCE = frozenset((ProjectKind.GIT_WORKTREE, ProjectKind.GIT_SUBMODULE))


class Arrival(Enum):
    """How a candidate came to be known; it settles how long its state is looked at."""

    FOUND = "found by a scan"
    MOVED = "moved here as a whole"
    MADE = "made under our eyes"


@dataclass(frozen=True, slots=True)
class Settled:
    """A candidate's end: what it is, or that it is nothing. `incomplete` if it was given up.

    `identity` is that of the folder that was judged, None if it could not be told; `has_links` is
    whether it may have worktrees elsewhere.
    """

    path: bytes
    kind: ProjectKind | None
    incomplete: Incomplete | None = None
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
    given_up: Incomplete | None = None
    folders: set[bytes] = field(default_factory=set)

    def in_peace_since(self) -> float:
        """Since when it is in its stage, and nothing happened."""
        return max(self.quiet_since, self.stage_since)

    def checks_out_in(self, folder: bytes) -> bool:
        """Whether `folder` is where git puts files: a name in it, like `Cargo.lock`, tells nothing
        of git itself."""
        return folder == self.path and is_git(self.kind) and self.kind is not ProjectKind.GIT_BARE

    def doubt(self, state: Complete | Pending, look: Look) -> Stage | None:
        """What a state, as seen by `look`, is taken for; None for one that is final and taken at
        its word.

        How it came settles only how long to wait: what is concluded then, the state alone tells.
        """
        if isinstance(state, Pending):
            return state.stage
        made = self.arrival is Arrival.MADE
        if state.kind is ProjectKind.PROJECT:
            return Stage.PROJECT_FILE if made else None
        if made and not is_git(state.kind):
            return Stage.SETTLING if self.maker_seen else Stage.COPYING
        if made and not self.maker_seen and state.kind not in _GIT_MAKES_AT_ONCE:
            return Stage.COPYING
        if broken_off(look, state.kind) is not None:
            return Stage.COPYING
        return Stage.SUBMODULES if lacks_submodules(look, state.kind) else None

    def settled(
        self,
        look: Look,
        kind: ProjectKind,
        incomplete: Incomplete | None = None,
        main_checkout: bytes | None = None,
    ) -> Settled:
        """Its end, as seen by `look`."""
        try:
            identity = look.identity()
        except (OSError, ValueError):
            identity = None
        git = look.git(kind)
        has_links = git is not None and may_have_links(git)
        return Settled(self.path, kind, incomplete, main_checkout, identity, has_links)

    def stays_given_up(self, stage: Stage) -> bool:
        """Whether it was given up for its stage alone, and still is in that."""
        given_up = self.given_up is not None and self.given_up is stage.wait.outcome
        return given_up and self.stage is stage

    def is_whole_copy(self, look: Look) -> bool:
        """Whether a copy has all that it is to have, so that it need not be quiet first."""
        if self.stage is not Stage.COPYING or not is_git(self.kind):
            return False
        return is_whole_copy(look, self.kind) and not lacks_submodules(look, self.kind)

    def conclusion(self, stage: Stage, look: Look) -> Incomplete | None:
        """What it lacks, now that it was quiet in `stage` and nobody works on it; None: nothing.

        A copy that was broken off can look like a stage that is whole in itself.
        """
        return what_is_missing(look, self.kind, stage)


def is_old(path: bytes, kind: ProjectKind) -> bool:
    """Whether the marker of a project has not changed for long."""
    marker = marker_in(names_in(path), kind)
    try:
        return time.time() - os.lstat(path + b"/" + marker).st_ctime > OLD_S
    except OSError:
        return False
