"""Open a project folder together with its git data."""

from __future__ import annotations

from rootsd.core.model import GitEntry, Identity, ProjectKind
from rootsd.disk.identity import identify_open_folder
from rootsd.disk.reader import OpenFolder
from rootsd.vcs.git.repository import GitRepository, is_git, open_bare_repository, open_repository


class OpenProject(OpenFolder):
    """A project folder that is open during one check, together with its git data.

    So all answers and the identity are about the same state, as far as possible. Open the folder
    again to see a later state.
    """

    __slots__ = ("_git",)

    def __init__(self, path: bytes) -> None:
        super().__init__(path)
        self._git: dict[bool, GitRepository | None] = {}

    def git(self, kind: ProjectKind) -> GitRepository | None:
        """Return the git data of a project of `kind`, or None if there are none (yet)."""
        if not is_git(kind):
            return None
        bare = kind is ProjectKind.GIT_BARE
        if bare not in self._git:
            self._git[bare] = open_bare_repository(self) if bare else open_repository(self)
        return self._git[bare]

    def identity(self) -> Identity:
        """Return the identity, with the `.git` from which the git data were read.

        Raises the same errors as `rootsd.disk.identity.identify`.
        """
        repository = self._git.get(False)
        if repository is None:
            return identify_open_folder(self)
        return identify_open_folder(self, GitEntry.FOLDER if repository.is_own else GitEntry.FILE)

    def close(self) -> None:
        """Close the folder and its git data."""
        for repository in self._git.values():
            if repository is not None:
                repository.close()
        super().close()
