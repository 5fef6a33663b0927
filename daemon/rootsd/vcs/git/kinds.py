"""The kinds of git repository: checkout, linked worktree, submodule, and bare repository."""

from __future__ import annotations

from rootsd.core.model import IncompleteReason, ProjectKind
from rootsd.disk.markers import BUILT_IN_PROJECT_FILES
from rootsd.disk.reader import is_link
from rootsd.vcs.base import TemporaryFiles, VcsKind
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.config import git_branch, git_origin
from rootsd.vcs.git.copies import interrupted_copy
from rootsd.vcs.git.repository import (
    TEMPORARY_PACK_PREFIXES,
    GitDirs,
    bare_git_dirs,
    find_git_dirs,
    git_dir_links_back,
    git_stage,
)
from rootsd.vcs.git.submodules import has_interrupted_submodule
from rootsd.vcs.jj import Jujutsu
from rootsd.vcs.stages import CompleteProject, NoProject, PendingProject, ProjectState, Stage

_TEMPORARY_FILES = TemporaryFiles(
    prefixes=(b"tmp_pack", *TEMPORARY_PACK_PREFIXES), suffixes=(b".lock",)
)


class Git(VcsKind):
    """A folder with a `.git`: a checkout, a linked worktree, or a submodule."""

    temporary_files = _TEMPORARY_FILES

    def __init__(self, kind: ProjectKind) -> None:
        self.kind = kind

    def state(self, project: OpenProject) -> ProjectState:
        """Return the state, with the kind that follows from the git data.

        A folder that also has a `.jj` is a Jujutsu workspace.
        """
        if project.exists(b".jj"):
            return Jujutsu().state(project)
        git = project.git(ProjectKind.GIT)
        if git is None:
            if not project.exists(b".git"):
                return NoProject()
            is_project = BUILT_IN_PROJECT_FILES.any_in(project.names())
            stage = Stage.DEAD_GIT if is_project else Stage.NO_GIT_DIR
            return PendingProject(ProjectKind.GIT, stage)
        kind, main_checkout = git.dirs.kind, git.dirs.main_checkout
        found = git_stage(git)
        if found is None:
            return CompleteProject(kind, main_checkout)
        if (
            found is Stage.NO_HEAD  # and without objects, it is no repository for git, too
            and git.names.isdisjoint((b"objects", b"commondir"))
            and BUILT_IN_PROJECT_FILES.any_in(project.names())
        ):
            found = Stage.DEAD_GIT
        return PendingProject(kind, found, main_checkout)

    def progress_folders(self, path: bytes) -> tuple[bytes, ...]:
        """Return the checkout, its git directory, and its packs."""
        dirs = find_git_dirs(path)
        if dirs is None:
            return (path,)
        # Include the checkout: a file in it shows that a clone was not interrupted early.
        return (path, dirs.folder, dirs.common + b"/objects/pack")

    def missing_content(self, project: OpenProject) -> IncompleteReason | None:
        """Return what is missing in an interrupted copy or a recursive clone, or None."""
        missing = interrupted_copy(project, self.kind)
        if missing is None and has_interrupted_submodule(project, self.kind):
            return IncompleteReason.NOT_CHECKED_OUT
        return missing

    def git_dirs(self, path: bytes) -> GitDirs | None:
        """Return the directories that the `.git` leads to, or None if it leads nowhere."""
        return find_git_dirs(path)

    def origin(self, path: bytes) -> bytes | None:
        """Return the address of the remote `origin`, else of the first remote."""
        dirs = _dirs_to_show(path)
        return git_origin(dirs) if dirs is not None else None

    def branch(self, path: bytes) -> bytes | None:
        """Return the checked-out branch."""
        dirs = _dirs_to_show(path)
        return git_branch(dirs) if dirs is not None else None


def _dirs_to_show(path: bytes) -> GitDirs | None:
    """Return the directories whose text may be shown as that of the project.

    Anybody can make a link to a repository elsewhere, so that one has to link back.
    """
    dirs = find_git_dirs(path)
    if dirs is None or git_dir_links_back(dirs) or not is_link(path + b"/.git"):
        return dirs
    return None


class BareGit(VcsKind):
    """A bare git repository."""

    kind = ProjectKind.GIT_BARE
    temporary_files = _TEMPORARY_FILES

    def state(self, project: OpenProject) -> ProjectState:
        """Return the state, from HEAD, refs, and packs."""
        git = project.git(self.kind)
        if git is None or not project.exists(b"HEAD") or not project.is_folder(b"objects"):
            return NoProject()
        stage = git_stage(git)
        return CompleteProject(self.kind) if stage is None else PendingProject(self.kind, stage)

    def progress_folders(self, path: bytes) -> tuple[bytes, ...]:
        """Return the repository and its packs."""
        return (path, path + b"/objects/pack")

    def missing_content(self, project: OpenProject) -> IncompleteReason | None:
        """Return what is missing in an interrupted copy, or None."""
        return interrupted_copy(project, self.kind)

    def git_dirs(self, path: bytes) -> GitDirs | None:
        """Return the repository itself."""
        return bare_git_dirs(path)

    def origin(self, path: bytes) -> bytes | None:
        """Return the address of the remote `origin`, else of the first remote."""
        return git_origin(bare_git_dirs(path))

    def branch(self, path: bytes) -> bytes | None:
        """Return the branch that HEAD names."""
        return git_branch(bare_git_dirs(path))
