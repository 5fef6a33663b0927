"""The list of VCSs that rootsd recognizes. CONTRIBUTING.md says how to add one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rootsd.core.model import ProjectKind
from rootsd.vcs.base import VcsKind
from rootsd.vcs.bzr import Bazaar
from rootsd.vcs.darcs import Darcs
from rootsd.vcs.fossil import Fossil
from rootsd.vcs.git.kinds import BareGit, Git
from rootsd.vcs.hg import Mercurial
from rootsd.vcs.jj import Jujutsu
from rootsd.vcs.pijul import Pijul
from rootsd.vcs.sapling import Sapling
from rootsd.vcs.svn import Subversion

ALL_KINDS: tuple[VcsKind, ...] = (
    Git(ProjectKind.GIT),
    Git(ProjectKind.GIT_WORKTREE),
    Git(ProjectKind.GIT_SUBMODULE),
    BareGit(),
    Jujutsu(),
    Mercurial(),
    Sapling(),
    Subversion(),
    Fossil(),
    Bazaar(),
    Pijul(),
    Darcs(),
)

_BY_KIND: Mapping[ProjectKind, VcsKind] = MappingProxyType({each.kind: each for each in ALL_KINDS})
_TEMPORARY_NAMES = frozenset().union(*(each.temporary_files.names for each in ALL_KINDS))
_TEMPORARY_PREFIXES = tuple(
    {prefix for each in ALL_KINDS for prefix in each.temporary_files.prefixes}
)
_TEMPORARY_SUFFIXES = tuple(
    {suffix for each in ALL_KINDS for suffix in each.temporary_files.suffixes}
)


def vcs_of(kind: ProjectKind) -> VcsKind | None:
    """Return the VCS of a project, or None for a plain project and a URI."""
    return _BY_KIND.get(kind)


def is_vcs_temporary_file(name: bytes) -> bool:
    """Return whether only a running VCS program creates a file of this name."""
    return (
        name in _TEMPORARY_NAMES
        or name.startswith(_TEMPORARY_PREFIXES)
        or name.endswith(_TEMPORARY_SUFFIXES)
    )
