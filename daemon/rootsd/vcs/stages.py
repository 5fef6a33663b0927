"""Define the stages of a repository that is being created, and the quiet period of each stage.

Some states are final at once. Others are final only after a quiet period, in which nothing changes
and no process works in the folder. The lengths come from measurements: together with the check of
processes, even shorter periods never gave a wrong result. If rootsd cannot see processes, only the
quiet period counts.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from rootsd.core.model import IncompleteReason, ProjectKind


class QuietPeriod(Struct, frozen=True):
    """How long a stage must be quiet before it is final, and what it means then.

    * `length_s`: the length of the quiet period.
    * `recheck_s`: the time until the next check, because some changes cause no event.
    * `outcome`: why the project is incomplete then, or None if it is complete.
    * `ignore_processes_after_s`: the time after which a process in the folder no longer counts.
      It is set for stages with nothing unfinished on the disk, so the process may do other work.
    """

    length_s: float
    recheck_s: float
    outcome: IncompleteReason | None = None
    ignore_processes_after_s: float | None = None


class Stage(Enum):
    """Why a candidate is not yet known to be complete."""

    NO_HEAD = "no HEAD"
    NO_GIT_DIR = "its .git leads nowhere"
    DEAD_GIT = "a project file, and a .git that is no repository"
    IN_USE = "complete, but locked"
    LOCKED = "locked"
    CHECKOUT_LOCKED = "locked during a checkout"
    WORKTREE_STARTING = "git adds a worktree"
    WORKTREE_MOVED = "its repository names the place from which it was moved"
    FETCHING = "git writes a pack"
    KEPT_BY_LIVE = "a running fetch keeps a pack"
    KEPT_BY_DEAD = "a killed fetch kept a pack"
    FILES_BEFORE_INDEX = "files but no index"
    NOT_CHECKED_OUT = "nothing checked out"
    STAGED_UNBORN = "files added, no commit"
    UNBORN = "no commit"
    CONNECTING = "a remote, nothing fetched"
    NEGOTIATING = "a remote, fetch prepared"
    REMOTE_ALONE = "files and a remote, nothing fetched"
    HEAD_WITHOUT_BRANCH = "all refs fetched, HEAD names none of them"
    SUBMODULES = "git clones submodules"
    COPYING = "a program may still copy the files"
    SETTLING = "complete, but the VCS may still write"
    STARTING = "a VCS other than git starts"
    JJ = "jj may still work"
    HG_NO_PARENT = "hg with no commit checked out"
    OTHER = "a VCS other than git may still work"
    PROJECT_FILE = "a new project file"

    @property
    def quiet_period(self) -> QuietPeriod:
        """The quiet period of this stage."""
        return _QUIET_PERIODS[self]


_QUIET_PERIODS = {
    Stage.NO_HEAD: QuietPeriod(5.0, 0.05, IncompleteReason.NO_HEAD),
    Stage.NO_GIT_DIR: QuietPeriod(5.0, 0.01, IncompleteReason.NO_GIT_DIR),
    Stage.DEAD_GIT: QuietPeriod(5.0, 0.1),
    Stage.IN_USE: QuietPeriod(3.0, 0.1),
    Stage.LOCKED: QuietPeriod(3.0, 0.1, IncompleteReason.LOCKED),
    Stage.CHECKOUT_LOCKED: QuietPeriod(3.0, 0.1, IncompleteReason.NOT_CHECKED_OUT),
    Stage.WORKTREE_STARTING: QuietPeriod(3.0, 0.1, IncompleteReason.NOT_CHECKED_OUT),
    # `git worktree move` renames the folder first, and then writes the link in the repository.
    Stage.WORKTREE_MOVED: QuietPeriod(0.25, 0.02, ignore_processes_after_s=3.0),
    Stage.FETCHING: QuietPeriod(1.0, 0.2, IncompleteReason.INTERRUPTED),
    Stage.KEPT_BY_LIVE: QuietPeriod(60.0, 0.02, IncompleteReason.INTERRUPTED),
    Stage.KEPT_BY_DEAD: QuietPeriod(1.0, 0.2, IncompleteReason.INTERRUPTED),
    # git holds the index lock while it writes files. If there is neither, git was killed.
    Stage.FILES_BEFORE_INDEX: QuietPeriod(0.5, 0.2, IncompleteReason.NOT_CHECKED_OUT),
    Stage.NOT_CHECKED_OUT: QuietPeriod(0.02, 0.02),
    Stage.STAGED_UNBORN: QuietPeriod(0.15, 0.05, ignore_processes_after_s=10.0),
    Stage.UNBORN: QuietPeriod(0.02, 0.02, ignore_processes_after_s=10.0),
    Stage.CONNECTING: QuietPeriod(0.5, 0.25, IncompleteReason.INTERRUPTED),
    Stage.NEGOTIATING: QuietPeriod(0.5, 0.25, IncompleteReason.INTERRUPTED),
    Stage.REMOTE_ALONE: QuietPeriod(0.5, 0.25),
    Stage.HEAD_WITHOUT_BRANCH: QuietPeriod(0.5, 0.25),
    Stage.SUBMODULES: QuietPeriod(0.5, 0.05),
    Stage.COPYING: QuietPeriod(3.0, 0.05),
    Stage.SETTLING: QuietPeriod(0.1, 0.1),
    Stage.STARTING: QuietPeriod(5.0, 0.1, IncompleteReason.INTERRUPTED),
    Stage.JJ: QuietPeriod(0.25, 0.25),
    Stage.HG_NO_PARENT: QuietPeriod(0.6, 0.2),
    Stage.OTHER: QuietPeriod(3.0, 0.5),
    Stage.PROJECT_FILE: QuietPeriod(0.25, 0.25, ignore_processes_after_s=3.0),
}


class CompleteProject(Struct, frozen=True):
    """A project that is complete, as far as its files show.

    `main_checkout` is set for a linked worktree if the repository links back to it.
    """

    kind: ProjectKind
    main_checkout: bytes | None = None

    @property
    def final_kind(self) -> ProjectKind:
        """The same kind; see `PendingProject`."""
        return self.kind


class PendingProject(Struct, frozen=True):
    """A project that is incomplete, or not known to be complete."""

    kind: ProjectKind
    stage: Stage
    main_checkout: bytes | None = None

    @property
    def final_kind(self) -> ProjectKind:
        """The kind if the stage turns out to be final.

        A folder with a project file is a project, whatever its `.git` is.
        """
        return ProjectKind.PROJECT if self.stage is Stage.DEAD_GIT else self.kind


class NoProject(Struct, frozen=True):
    """A folder that is no project, or no longer one."""


ProjectState = CompleteProject | PendingProject | NoProject
