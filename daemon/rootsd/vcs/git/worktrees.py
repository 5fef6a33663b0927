"""List the linked worktrees of a repository.

A worktree may be in a place that no walk enters, such as a hidden folder. So discovery reads the
links in the repository. Source: gitrepository-layout(5), "worktrees/<id>/gitdir".
"""

from __future__ import annotations

from msgspec import Struct

from rootsd.core.model import ProjectKind
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.reader import REF_CAP, OpenFolder, list_names, read_small, resolve_path
from rootsd.vcs.git.repository import GitRepository, bare_git_dirs, find_git_dirs

_MAX_WORKTREES = 1_000
_MARKER = b"/.git"
_WORKTREES = b"worktrees"
_MAIN_KINDS = frozenset((ProjectKind.GIT, ProjectKind.GIT_BARE))


class LinkedWorktrees(Struct, frozen=True):
    """The worktrees of a repository that link back to it, and the other entries.

    An entry is also `unconfirmed` while git creates the worktree.
    """

    worktrees: frozenset[bytes]
    unconfirmed: frozenset[bytes]


def may_have_worktrees(git: GitRepository) -> bool:
    """Return whether `worktrees_folder` may return a folder for an open repository."""
    return git.dirs.kind in _MAIN_KINDS and _WORKTREES in git.names


def git_folder(main: bytes) -> bytes:
    """Return where the Git directory of a usual main checkout is."""
    return main + _MARKER


def worktrees_folder(main: bytes) -> bytes | None:
    """Return where the repository at `main` keeps its links to worktrees, or None."""
    # Try `.git` first: nearly every repository has this folder, so one step is enough.
    with OpenFolder(git_folder(main)) as own:
        if own.failure is None:
            return _worktrees_folder_in(own)
    dirs = find_git_dirs(main) or bare_git_dirs(main)
    if dirs.folder != dirs.common:
        return None
    with OpenFolder(dirs.common) as common:
        return _worktrees_folder_in(common)


def _worktrees_folder_in(common: OpenFolder) -> bytes | None:
    # Few repositories have this folder, and checking for it is cheaper than failing to open it.
    has_some = (
        common.exists(_WORKTREES) and common.is_folder(_WORKTREES) and common.exists(b"HEAD")
    )
    return common.path + b"/" + _WORKTREES if has_some else None


def read_worktree_links(folder: bytes) -> LinkedWorktrees:
    """Return the worktrees that the entries in `folder` name, by whether they link back."""
    worktrees, unconfirmed = set(), set()
    for name in sorted(list_names(folder))[:_MAX_WORKTREES]:
        entry = folder + b"/" + name
        work = _work_of(entry)
        dirs = find_git_dirs(work) if work is not None else None
        if work is not None and dirs is not None and dirs.main_checkout is not None:
            worktrees.add(work)
        else:
            unconfirmed.add(entry)
    return LinkedWorktrees(frozenset(worktrees), frozenset(unconfirmed))


def _work_of(entry: bytes) -> bytes | None:
    marker = resolve_path(entry, (read_small(entry + b"/gitdir", REF_CAP) or b"").strip())
    return (
        marker.removesuffix(_MARKER) if marker.endswith(_MARKER) and may_follow(marker) else None
    )
