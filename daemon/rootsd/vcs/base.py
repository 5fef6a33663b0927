"""Define what rootsd must know about a version control system (VCS).

A VCS is one file in this package, with a class that implements `VcsKind`. Most systems need only
the methods of `MarkedVcs`. CONTRIBUTING.md lists all that a new one needs. The names that mark a
checkout are not here but in `rootsd.core.project_kind`, because the walk and the watchers need
them, and neither may import this package.

Each method reads a few small files. It runs no programs, and raises nothing. It follows a link in
the place of the marker to find the stage, and otherwise none.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Protocol

from msgspec import Struct

from rootsd.core.model import IncompleteReason, ProjectKind
from rootsd.disk.hung_mounts import follow
from rootsd.disk.reader import CONFIG_CAP, is_folder_no_follow, read_small
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.git.repository import GitDirs
from rootsd.vcs.stages import CompleteProject, NoProject, PendingProject, ProjectState, Stage

_MAX_LINES = 10_000


class TemporaryFiles(Struct, frozen=True):
    """Names of files that only a running VCS program creates, such as locks and journals.

    An event for such a file shows that the VCS creates the project, because a copy rarely has one.
    """

    names: frozenset[bytes] = frozenset()
    prefixes: tuple[bytes, ...] = ()
    suffixes: tuple[bytes, ...] = ()


class VcsKind(Protocol):
    """One kind of repository or checkout."""

    kind: ProjectKind
    temporary_files: TemporaryFiles = TemporaryFiles()

    @abstractmethod
    def state(self, project: OpenProject) -> ProjectState:
        """Return whether the folder is a complete project, a pending project, or no project.

        The kind in the result may differ. For example, the `.git` may be that of a worktree.
        """

    @abstractmethod
    def progress_folders(self, path: bytes) -> tuple[bytes, ...]:
        """Return the folders to watch while a clone or checkout creates the project at `path`.

        They need not exist.
        """

    def missing_content(self, project: OpenProject) -> IncompleteReason | None:
        """Return what is missing in a project in which no program works, or None.

        By default, this is None, because locks, journals, and a quiet period are enough.
        """
        del project
        return None

    def git_dirs(self, path: bytes) -> GitDirs | None:
        """Return the git directories that belong to the project, or None."""
        del path
        return None

    def origin(self, path: bytes) -> bytes | None:
        """Return the address that the repository was cloned from, or None."""
        del path
        return None

    def branch(self, path: bytes) -> bytes | None:
        """Return the current branch, or None."""
        del path
        return None


class MarkedVcs(VcsKind, Protocol):
    """A VCS with a marker folder or file, and a stage that follows from the files there."""

    @property
    @abstractmethod
    def progress(self) -> tuple[bytes, ...]:
        """The progress folders below the project, such as `/.hg`; `b""` is the project itself."""

    @abstractmethod
    def stage(self, path: bytes) -> Stage | None:
        """Return the stage of the checkout at `path`, or None if it is complete.

        * STARTING: files of the VCS are missing.
        * CHECKOUT_LOCKED: there is a lock, so files of the checkout may be missing.
        * IN_USE: there is a lock, but the checkout is complete.
        * OTHER: nothing shows whether the checkout is complete.
        """

    def state(self, project: OpenProject) -> ProjectState:
        """Return the state, from the marker and the stage."""
        if not any(map(project.exists, self.kind.markers)):
            return NoProject()
        stage = self.stage(project.path)
        return CompleteProject(self.kind) if stage is None else PendingProject(self.kind, stage)

    def progress_folders(self, path: bytes) -> tuple[bytes, ...]:
        """Return the paths of the folders in `progress`."""
        return tuple(data_folder(path + inside) for inside in self.progress)


def data_folder(path: bytes) -> bytes:
    """Return where the data of a VCS is that should be at `path`: there, or where a link leads.

    Use it to find the stage, and for nothing that is shown: the link may lead anywhere. If it
    leads to a mount that may hang, the result is `path` itself, in which nothing can be read.
    """
    try:
        return path if is_folder_no_follow(path) else follow(path)
    except OSError:
        return path


def first_match(file: bytes, pattern: bytes) -> bytes | None:
    """Return group 1 of the first line in a small file that matches `pattern`, or None."""
    compiled = re.compile(pattern)
    lines = (read_small(file, CONFIG_CAP) or b"").splitlines()[:_MAX_LINES]
    found = (compiled.match(line.strip()) for line in lines)
    return next((match[1].strip() for match in found if match is not None), None)
