"""Read the address that a repository was cloned from, and its current branch, as text."""

from __future__ import annotations

from rootsd.core.model import ProjectKind
from rootsd.core.uris import without_credentials
from rootsd.vcs.git.repository import GitDirs
from rootsd.vcs.registry import vcs_of

_MAX_ADDRESS_LENGTH = 1_000


def git_dirs_of(path: bytes, kind: ProjectKind) -> GitDirs | None:
    """Return the git directories of a project, or None if it has none."""
    vcs = vcs_of(kind)
    return None if vcs is None else vcs.git_dirs(path)


def read_origin(path: bytes, kind: ProjectKind) -> str | None:
    """Return the address that a repository was cloned from, without credentials, or None.

    Bytes that are not UTF-8 become lone surrogates (PEP 383). Raises nothing.
    """
    vcs = vcs_of(kind)
    address = None if vcs is None else vcs.origin(path)
    if not address:
        return None
    return without_credentials(address.decode("utf-8", "surrogateescape")[:_MAX_ADDRESS_LENGTH])


def read_branch(path: bytes, kind: ProjectKind) -> str | None:
    """Return the checked-out branch, or None if there is none or the VCS is not supported."""
    vcs = vcs_of(kind)
    branch = None if vcs is None else vcs.branch(path)
    return branch.decode("utf-8", "surrogateescape") if branch else None
