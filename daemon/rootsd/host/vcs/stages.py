"""The states of a repository that is being made, and what each allows to conclude, and when.

Some states are final at once, some only after nothing has happened for a while and no process is
at work on the folder. The quiet times are measured: no shorter one was ever wrong together with
the process check, and none is relied on without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rootsd.core.model import Incomplete, ProjectKind


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a stage must be quiet to be believed, in seconds, and what it then means.

    `outcome` None: the project is whole. `again_s` is when another look may show something new
    that no event tells. `patience_s` is when even a process on the folder no longer counts: where
    nothing on the disk is unfinished, that process may be anything.
    """

    quiet_s: float
    again_s: float
    outcome: Incomplete | None = None
    patience_s: float | None = None


class Stage(Enum):
    """Why a candidate is not believed to be whole."""

    NO_HEAD = "no HEAD"
    NO_GIT_DIR = "its .git leads nowhere"
    IN_USE = "whole, with a lock held"
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
    SETTLING = "whole, its maker perhaps not done"
    STARTING = "another VCS being set up"
    JJ = "jj, perhaps at work"
    HG_NO_PARENT = "hg with no commit checked out"
    OTHER = "another VCS, perhaps at work"
    PROJECT_FILE = "a project file just written"

    @property
    def wait(self) -> Wait:
        """What to wait for in this stage."""
        return _WAITS[self]


_WAITS = {
    Stage.NO_HEAD: Wait(5.0, 0.05, Incomplete.NO_HEAD),
    Stage.NO_GIT_DIR: Wait(5.0, 0.01, Incomplete.NO_GIT_DIR),
    Stage.IN_USE: Wait(3.0, 0.1),
    Stage.LOCKED: Wait(3.0, 0.1, Incomplete.LOCKED),
    Stage.CHECKOUT_LOCKED: Wait(3.0, 0.1, Incomplete.NOT_CHECKED_OUT),
    Stage.WORKTREE_STARTING: Wait(3.0, 0.1, Incomplete.NOT_CHECKED_OUT),
    Stage.FETCHING: Wait(1.0, 0.2, Incomplete.INTERRUPTED),
    Stage.KEPT_BY_LIVE: Wait(60.0, 0.02, Incomplete.INTERRUPTED),
    Stage.KEPT_BY_DEAD: Wait(1.0, 0.2, Incomplete.INTERRUPTED),
    # git writes files under the lock of the index; without either, their writer was stopped.
    Stage.FILES_BEFORE_INDEX: Wait(0.5, 0.2, Incomplete.NOT_CHECKED_OUT),
    Stage.NOT_CHECKED_OUT: Wait(0.02, 0.02),
    Stage.STAGED_UNBORN: Wait(0.15, 0.05, patience_s=10.0),
    Stage.UNBORN: Wait(0.02, 0.02, patience_s=10.0),
    Stage.CONNECTING: Wait(0.5, 0.25, Incomplete.INTERRUPTED),
    Stage.NEGOTIATING: Wait(0.5, 0.25, Incomplete.INTERRUPTED),
    Stage.REMOTE_ALONE: Wait(0.5, 0.25),
    Stage.SUBMODULES: Wait(0.5, 0.05, Incomplete.NOT_CHECKED_OUT),
    Stage.COPYING: Wait(3.0, 0.05),
    Stage.SETTLING: Wait(0.1, 0.1),
    Stage.STARTING: Wait(5.0, 0.1, Incomplete.INTERRUPTED),
    Stage.JJ: Wait(0.25, 0.25),
    Stage.HG_NO_PARENT: Wait(0.6, 0.2),
    Stage.OTHER: Wait(3.0, 0.5),
    Stage.PROJECT_FILE: Wait(0.25, 0.25, patience_s=3.0),
}


@dataclass(frozen=True, slots=True)
class Complete:
    """Whole, as far as the disk shows. `main_checkout` is set for a verified linked worktree."""

    kind: ProjectKind
    main_checkout: bytes | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """Not whole, or not known to be."""

    kind: ProjectKind
    stage: Stage
    main_checkout: bytes | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """No project is there (any more)."""


State = Complete | Pending | Nothing
