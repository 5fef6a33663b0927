"""List the linked worktrees of a repository.

A worktree may lie where no walk goes: in a hidden folder, or beside a bare repository in a folder
whose `.git` file names that repository. Source: gitrepository-layout(5), "worktrees/<id>/gitdir".
"""

from __future__ import annotations

from dataclasses import dataclass

from rootsd.core.model import ProjectKind
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.reader import REF_CAP, OpenFolder, list_names, read_small, resolve_path
from rootsd.vcs.git.repository import GitRepository, bare_git_dirs, find_git_dirs

_MAX_WORKTREES = 1_000
_MARKER = b"/.git"
_WORKTREES = b"worktrees"
_MAIN_KINDS = frozenset((ProjectKind.GIT, ProjectKind.GIT_BARE))


@dataclass(frozen=True, slots=True)
class LinkedWorktrees:
    """`trees` are the worktrees that link back; `open` are the entries without one (yet)."""

    trees: frozenset[bytes]
    open: frozenset[bytes]


def may_have_worktrees(git: GitRepository) -> bool:
    """Return whether `worktrees_folder` may return a folder for an open repository."""
    return git.place.kind in _MAIN_KINDS and _WORKTREES in git.names


def worktrees_folder(main: bytes) -> bytes | None:
    """Return where the repository at `main` keeps its links to worktrees, or None."""
    with OpenFolder(
        main + _MARKER
    ) as own:  # nearly every repository has it, and this takes one step
        if own.failure is None:
            return _worktrees_folder_in(own)
    place = find_git_dirs(main) or bare_git_dirs(main)
    if place.folder != place.common:
        return None
    with OpenFolder(place.common) as common:
        return _worktrees_folder_in(common)


def _worktrees_folder_in(common: OpenFolder) -> bytes | None:
    # Few repositories have one, and a check for existence is cheaper than a failed open.
    has_some = (
        common.exists(_WORKTREES) and common.is_folder(_WORKTREES) and common.exists(b"HEAD")
    )
    return common.path + b"/" + _WORKTREES if has_some else None


def read_worktree_links(folder: bytes) -> LinkedWorktrees:
    """Return the worktrees that the folder names and that link back to it."""
    trees, unanswered = set(), set()
    for name in sorted(list_names(folder))[:_MAX_WORKTREES]:
        entry = folder + b"/" + name
        work = _work_of(entry)
        place = find_git_dirs(work) if work is not None else None
        if work is not None and place is not None and place.main_checkout is not None:
            trees.add(work)
        else:
            unanswered.add(entry)
    return LinkedWorktrees(frozenset(trees), frozenset(unanswered))


def _work_of(entry: bytes) -> bytes | None:
    marker = resolve_path(entry, (read_small(entry + b"/gitdir", REF_CAP) or b"").strip())
    return (
        marker.removesuffix(_MARKER) if marker.endswith(_MARKER) and may_follow(marker) else None
    )
