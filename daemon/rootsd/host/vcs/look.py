"""One look at what may be a project: opened once, for all that is asked of it."""

from __future__ import annotations

from rootsd.core.model import GitEntry, Identity, ProjectKind
from rootsd.host.disk.identity import identity_of
from rootsd.host.disk.opened import Opened
from rootsd.host.vcs.gitdir import Repository, bare_repository_in, is_git, repository_in


class Look(Opened):
    """A folder held open with its git data, so that what is said of it, its identity too, is said
    of one state as far as that can be; where something is waited for, look again."""

    __slots__ = ("_git",)

    def __init__(self, path: bytes) -> None:
        super().__init__(path)
        self._git: dict[bool, Repository | None] = {}

    def git(self, kind: ProjectKind) -> Repository | None:
        """Its git data as those of a project of `kind`; None if it has none (yet)."""
        if not is_git(kind):
            return None
        bare = kind is ProjectKind.GIT_BARE
        if bare not in self._git:
            self._git[bare] = bare_repository_in(self) if bare else repository_in(self)
        return self._git[bare]

    def identity(self) -> Identity:
        """As `rootsd.host.disk.identity.identify`."""
        repository = self._git.get(False)
        own = repository is not None and repository.is_own
        return identity_of(self, GitEntry.FOLDER if own else None)

    def close(self) -> None:
        """Hold it and its git data no more."""
        for repository in self._git.values():
            if repository is not None:
                repository.close()
        super().close()
