"""Define what is known about one project that is being created.

`rootsd.discovery.candidates` follows all of them. A `Candidate` says which stage to wait for, and
whether the project may still grow. It reads the disk, but has no timers and no watches.
"""

from __future__ import annotations

import dataclasses
from enum import Enum

from msgspec import Struct, field

from rootsd.core.model import Identity, IncompleteReason, ProjectKind
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.copies import is_complete_copy, unfinished_copy
from rootsd.vcs.git.repository import GIT_STATE_FILES, is_git
from rootsd.vcs.git.submodules import lacks_submodules
from rootsd.vcs.git.worktrees import is_moved_worktree, may_have_worktrees
from rootsd.vcs.probe import incomplete_reason, names_below
from rootsd.vcs.registry import is_vcs_temporary_file, vcs_of
from rootsd.vcs.stages import CompleteProject, PendingProject, Stage
from rootsd.watch.events import FileEvent, FileEventKind

# How long a program that is no VCS or copy tool delays a project that looks complete.
PROGRAM_PATIENCE_S = 30.0

_CREATED_AT_ONCE_BY_GIT = frozenset((ProjectKind.GIT_WORKTREE, ProjectKind.GIT_SUBMODULE))


class Arrival(Enum):
    """How discovery found a candidate. This decides which quiet period applies."""

    FOUND = "found by a scan"
    MOVED = "moved here by one rename"
    CREATED = "created while discovery watched"


@dataclasses.dataclass(frozen=True, slots=True)
class CandidateResult:
    """The result of the checks of a candidate.

    It is no `ProjectObserved` yet: the folder may be no project, or gone by now, and the engine
    follows the links of a repository before it reports one.

    * `kind`: None if the folder is not a project.
    * `incomplete`: why the candidate was given up, or None if it is complete.
    * `identity`: the identity of the checked folder, or None if it could not be read.
    * `has_links`: whether the repository may link to worktrees elsewhere.
    * `linked_by`: the git repository that links to the project, or None. A Jujutsu workspace may
      be a git worktree, too, but it has no main checkout.
    """

    path: bytes
    kind: ProjectKind | None
    incomplete: IncompleteReason | None = None
    main_checkout: bytes | None = None
    identity: Identity | None = dataclasses.field(default=None, compare=False)
    has_links: bool = dataclasses.field(default=False, compare=False)
    linked_by: bytes | None = dataclasses.field(default=None, compare=False)


class Candidate(Struct):
    """The state of one candidate. Times are on the monotonic clock.

    * `quiet_since`: the time of the last event, without writes to files that are no VCS's
      temporary files; `stage_since`: when it entered its stage.
    * `known`: the identity of the project that was reported at this path before, or None.
    * `look`: the names in the folder at the last look (`names_below`), or None before the first.
    * `unobjectionable_since`: the time since which no stage showed that anything is missing, or
      None.
    * `check_at`: when to check it next; `postponements`: how often that check was postponed.
    * `saw_vcs_activity`: whether a lock or temporary file of a VCS came or went. Then a VCS
      creates the project; it is not a mere copy.
    * `is_in_use`: whether a process worked in the folder when rootsd last listed the processes.
    * `given_up`: why the candidate was given up, or None if it is still being created.
    * `folders`: the watched progress folders.
    """

    path: bytes
    kind: ProjectKind
    arrival: Arrival
    quiet_since: float
    known: Identity | None = None
    look: int | None = None
    unobjectionable_since: float | None = None
    stage: Stage | None = None
    stage_since: float = 0.0
    check_at: float | None = None
    postponements: int = 0
    saw_vcs_activity: bool = False
    is_in_use: bool = False
    given_up: IncompleteReason | None = None
    folders: set[bytes] = field(default_factory=set)

    def idle_since(self) -> float:
        """Return the time since which the stage is the same and nothing happened."""
        return max(self.quiet_since, self.stage_since)

    def is_checkout_folder(self, folder: bytes) -> bool:
        """Return whether `folder` contains the project's own files, checked out by git.

        There, a name such as `Cargo.lock` is not one of git's temporary files.
        """
        return folder == self.path and is_git(self.kind) and self.kind is not ProjectKind.GIT_BARE

    def stage_to_wait_for(
        self, state: CompleteProject | PendingProject, project: OpenProject
    ) -> Stage | None:
        """Return the stage whose quiet period must pass, or None if `state` is final.

        `state` is the state of `project`. The arrival decides only how long to wait. The result
        depends on the state alone.
        """
        if isinstance(state, PendingProject):
            return state.stage
        created = self.arrival is Arrival.CREATED
        if self.arrival is Arrival.MOVED and state.kind is ProjectKind.GIT_WORKTREE:
            git = project.git(state.kind)
            if git is not None and is_moved_worktree(git):
                return Stage.WORKTREE_MOVED
        if vcs_of(state.kind) is None:
            return Stage.PROJECT_FILE if created else None
        if created and not is_git(state.kind):
            return Stage.SETTLING if self.saw_vcs_activity else Stage.COPYING
        if self.arrival is Arrival.FOUND and not is_git(state.kind) and not self.is_known(project):
            return Stage.COPYING
        if created and not self.saw_vcs_activity and state.kind not in _CREATED_AT_ONCE_BY_GIT:
            return Stage.COPYING
        if unfinished_copy(project, state.kind) is not None:
            return Stage.COPYING
        return Stage.SUBMODULES if lacks_submodules(project, state.kind) else None

    def is_known(self, project: OpenProject) -> bool:
        """Return whether this very folder was reported before."""
        try:
            return self.known is not None and self.known.same_as(project.identity())
        except (OSError, ValueError):
            return False

    def is_growing(self) -> bool:
        """Look at the names in the folder, and return whether they differ from the last look."""
        before, self.look = self.look, names_below(self.path)
        return before != self.look

    def enter(self, stage: Stage, now: float) -> None:
        """Note that the candidate is in `stage` now. Do nothing if it is already."""
        if stage is self.stage:
            return
        # A new candidate counts as being in its first stage since it became quiet.
        self.stage_since = self.quiet_since if self.stage is None else now
        self.stage, self.postponements = stage, 0
        if stage.quiet_period.outcome is not None:
            self.unobjectionable_since = None
        elif self.unobjectionable_since is None:
            self.unobjectionable_since = now
        if stage is Stage.COPYING and not is_git(self.kind):
            self.look = names_below(self.path)

    def is_overdue(self, now: float) -> bool:
        """Return whether it looks complete for so long that other programs no longer count."""
        since = self.unobjectionable_since
        return since is not None and now >= since + PROGRAM_PATIENCE_S

    def result(
        self,
        project: OpenProject,
        kind: ProjectKind,
        incomplete: IncompleteReason | None = None,
        main_checkout: bytes | None = None,
    ) -> CandidateResult:
        """Return the result with the identity of `project`."""
        try:
            identity = project.identity()
        except (OSError, ValueError):
            identity = None
        # A Jujutsu workspace may have a `.git` beside its `.jj`.
        git = project.git(ProjectKind.GIT if kind is ProjectKind.JJ else kind)
        has_links = git is not None and may_have_worktrees(git)
        linked_by = git.dirs.main_checkout if git is not None else None
        return CandidateResult(
            self.path, kind, incomplete, main_checkout, identity, has_links, linked_by
        )

    def stays_given_up(self, stage: Stage) -> bool:
        """Return whether `stage` is why the candidate was given up, and it still applies."""
        given_up = self.given_up is not None and self.given_up is stage.quiet_period.outcome
        return given_up and self.stage is stage

    def is_copy_complete(self, project: OpenProject) -> bool:
        """Return whether a copy has all its content, so no quiet period is needed."""
        if self.stage is not Stage.COPYING or not is_git(self.kind):
            return False
        return is_complete_copy(project, self.kind) and not lacks_submodules(project, self.kind)

    def missing_part(self, stage: Stage, project: OpenProject) -> IncompleteReason | None:
        """Return what is missing after the quiet period of `stage`, or None.

        An interrupted copy can look complete by its stage, so this checks the content too.
        """
        return incomplete_reason(project, self.kind, stage)


def is_significant_event(event: FileEvent) -> bool:
    """Return whether a change in a progress folder can end a stage.

    Such changes are a rename into place, a removed lock, a new index, and text in a `.git` file
    that was empty when it was read, or in the link to a worktree.
    """
    name = event.name
    if not name:
        return True
    if name in (b".git", b"gitdir"):
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
