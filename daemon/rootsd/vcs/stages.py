"""Define the stages of a repository that is being created, and how long each may last.

Some states are final at once. Others are final only after a quiet period in which nothing happens
and no process works in the folder. The quiet periods are measured: together with the process
check, no shorter one was ever wrong. Where rootsd cannot see processes, the quiet periods decide
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rootsd.core.model import IncompleteReason, ProjectKind


@dataclass(frozen=True, slots=True)
class QuietPeriod:
    """How long a stage must be quiet before it is final, in seconds, and what it then means.

    `outcome` is the reason why the project is incomplete, or None if it is complete. `again_s` is
    the time to the next check, for changes that cause no event. After `patience_s`, a process in
    the folder no longer counts: if nothing on the disk is unfinished, it may be any process.
    """

    quiet_s: float
    again_s: float
    outcome: IncompleteReason | None = None
    patience_s: float | None = None


class Stage(Enum):
    """Why a candidate is not yet known to be complete."""

    NO_HEAD = "no HEAD"
    NO_GIT_DIR = "its .git leads nowhere"
    IN_USE = "complete, with a lock held"
    LOCKED = "a lock held"
    CHECKOUT_LOCKED = "a checkout under its lock"
    WORKTREE_STARTING = "worktree being added"
    FETCHING = "a pack being written"
    KEPT_BY_LIVE = "a pack kept by a live fetch"
    KEPT_BY_DEAD = "a pack kept by a dead fetch"
    FILES_BEFORE_INDEX = "files but no index"
    NOT_CHECKED_OUT = "nothing checked out"
    STAGED_UNBORN = "files added, no commit"
    UNBORN = "no commit"
    CONNECTING = "a remote, nothing fetched"
    NEGOTIATING = "a remote, fetch prepared"
    REMOTE_ALONE = "files and a remote, nothing fetched"
    SUBMODULES = "submodules being cloned"
    COPYING = "a copy"
    SETTLING = "complete, its program perhaps still writing"
    STARTING = "another VCS being set up"
    JJ = "jj, perhaps at work"
    HG_NO_PARENT = "hg with no commit checked out"
    OTHER = "another VCS, perhaps at work"
    PROJECT_FILE = "a project file just written"

    @property
    def wait(self) -> QuietPeriod:
        """The quiet period of this stage."""
        return _QUIET_PERIODS[self]


_QUIET_PERIODS = {
    Stage.NO_HEAD: QuietPeriod(5.0, 0.05, IncompleteReason.NO_HEAD),
    Stage.NO_GIT_DIR: QuietPeriod(5.0, 0.01, IncompleteReason.NO_GIT_DIR),
    Stage.IN_USE: QuietPeriod(3.0, 0.1),
    Stage.LOCKED: QuietPeriod(3.0, 0.1, IncompleteReason.LOCKED),
    Stage.CHECKOUT_LOCKED: QuietPeriod(3.0, 0.1, IncompleteReason.NOT_CHECKED_OUT),
    Stage.WORKTREE_STARTING: QuietPeriod(3.0, 0.1, IncompleteReason.NOT_CHECKED_OUT),
    Stage.FETCHING: QuietPeriod(1.0, 0.2, IncompleteReason.INTERRUPTED),
    Stage.KEPT_BY_LIVE: QuietPeriod(60.0, 0.02, IncompleteReason.INTERRUPTED),
    Stage.KEPT_BY_DEAD: QuietPeriod(1.0, 0.2, IncompleteReason.INTERRUPTED),
    # git writes files while it holds the index lock. Without lock and index, git was killed.
    Stage.FILES_BEFORE_INDEX: QuietPeriod(0.5, 0.2, IncompleteReason.NOT_CHECKED_OUT),
    Stage.NOT_CHECKED_OUT: QuietPeriod(0.02, 0.02),
    Stage.STAGED_UNBORN: QuietPeriod(0.15, 0.05, patience_s=10.0),
    Stage.UNBORN: QuietPeriod(0.02, 0.02, patience_s=10.0),
    Stage.CONNECTING: QuietPeriod(0.5, 0.25, IncompleteReason.INTERRUPTED),
    Stage.NEGOTIATING: QuietPeriod(0.5, 0.25, IncompleteReason.INTERRUPTED),
    Stage.REMOTE_ALONE: QuietPeriod(0.5, 0.25),
    Stage.SUBMODULES: QuietPeriod(0.5, 0.05, IncompleteReason.NOT_CHECKED_OUT),
    Stage.COPYING: QuietPeriod(3.0, 0.05),
    Stage.SETTLING: QuietPeriod(0.1, 0.1),
    Stage.STARTING: QuietPeriod(5.0, 0.1, IncompleteReason.INTERRUPTED),
    Stage.JJ: QuietPeriod(0.25, 0.25),
    Stage.HG_NO_PARENT: QuietPeriod(0.6, 0.2),
    Stage.OTHER: QuietPeriod(3.0, 0.5),
    Stage.PROJECT_FILE: QuietPeriod(0.25, 0.25, patience_s=3.0),
}


@dataclass(frozen=True, slots=True)
class CompleteProject:
    """A project that the disk shows as complete.

    `main_checkout` is set for a verified linked worktree.
    """

    kind: ProjectKind
    main_checkout: bytes | None = None


@dataclass(frozen=True, slots=True)
class PendingProject:
    """A project that is incomplete, or not known to be complete."""

    kind: ProjectKind
    stage: Stage
    main_checkout: bytes | None = None


@dataclass(frozen=True, slots=True)
class NoProject:
    """A folder that holds no project (any more)."""


ProjectState = CompleteProject | PendingProject | NoProject
