"""List the linked worktrees of a repository.

A worktree may be in a place that no walk enters, such as a hidden folder. So discovery reads the
links in the repository. Source: gitrepository-layout(5), "worktrees/<id>/gitdir".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from rootsd.core.model import Identity, Project, ProjectKind
from rootsd.disk.git_pointer import GIT
from rootsd.disk.hung_mounts import follow, may_follow
from rootsd.disk.identity import identify
from rootsd.disk.reader import (
    REF_CAP,
    OpenFolder,
    exists_no_follow,
    is_folder_no_follow,
    list_names,
    read_small,
)
from rootsd.vcs.git.checkouts import keep_proof
from rootsd.vcs.git.repository import GitRepository, bare_git_dirs, find_git_dirs

_MAX_WORKTREES = 1_000
_MARKER = b"/.git"
_WORKTREES = b"worktrees"
_MAIN_KINDS = frozenset((ProjectKind.GIT, ProjectKind.GIT_BARE))


def may_have_worktrees(git: GitRepository) -> bool:
    """Return whether `worktrees_folder` may return a folder for an open repository."""
    return git.dirs.kind in _MAIN_KINDS and _WORKTREES in git.names


def is_moved_worktree(git: GitRepository) -> bool:
    """Return whether this is a worktree whose entry in the repository names an absent folder.

    It was moved, and git has not written the link again yet.
    """
    if git.dirs.kind is not ProjectKind.GIT_WORKTREE or git.dirs.main_checkout is not None:
        return False
    work = _work_of(git.dirs.folder)
    return work is not None and work != git.dirs.work and not exists_no_follow(work + _MARKER)


def main_git_folder(main: bytes) -> bytes | None:
    """Return the Git directory of a main checkout or a bare repository, or None for a worktree.

    It need not exist.
    """
    # Try `.git` first: nearly every repository has this folder, so one step is enough.
    if is_folder_no_follow(main + _MARKER):
        return main + _MARKER
    dirs = find_git_dirs(main) or bare_git_dirs(main)
    return dirs.common if dirs.folder == dirs.common else None


def recall_checkouts(known: Mapping[bytes, Project]) -> None:
    """Look at the main checkouts of the worktrees that an earlier run of rootsd knew.

    Call it before anything looks at these worktrees: a worktree does not lead to a checkout whose
    git directory lies elsewhere.
    """
    for main in {project.observed.main_checkout for project in known.values()}:
        if main is None or not may_follow(main) or is_folder_no_follow(main + _MARKER):
            continue
        dirs, before = find_git_dirs(main), known.get(main)
        if dirs is not None and before is not None and _is_same(main, before.observed.identity):
            keep_proof(main, dirs.folder)


def _is_same(main: bytes, before: Identity | None) -> bool:
    """Return whether a checkout has the same `.git` and the same git directory as before."""
    try:
        now = identify(main)
    except OSError:
        return False
    if before is None or before.git_target is None or now.git_target is None:
        return False
    return before.same_as(now) and before.keeps_git(now) and before.keeps_git_file(now)


def worktrees_folder(main: bytes) -> bytes | None:
    """Return where the repository at `main` keeps its links to worktrees, or None."""
    folder = main_git_folder(main)
    if folder is None:
        return None
    with OpenFolder(folder) as common:
        return _worktrees_folder_in(common)


def _worktrees_folder_in(common: OpenFolder) -> bytes | None:
    # Few repositories have this folder, and checking for it is cheaper than failing to open it.
    has_some = (
        common.exists(_WORKTREES) and common.is_folder(_WORKTREES) and common.exists(b"HEAD")
    )
    return common.path + b"/" + _WORKTREES if has_some else None


def worktree_entries(folder: bytes) -> list[bytes]:
    """Return the entries in the folder with a repository's links, at most 1,000."""
    return [folder + b"/" + name for name in sorted(list_names(folder))[:_MAX_WORKTREES]]


def linked_worktrees(entries: Iterable[bytes]) -> frozenset[bytes]:
    """Return the worktrees that these entries name and that link back to them."""
    worktrees = set()
    for entry in entries:
        work = _work_of(entry)
        dirs = find_git_dirs(work) if work is not None else None
        if work is not None and dirs is not None and dirs.main_checkout is not None:
            worktrees.add(work)
    return frozenset(worktrees)


def _work_of(entry: bytes) -> bytes | None:
    """Return the real path of the worktree that an entry names, or None."""
    text = (read_small(entry + b"/gitdir", REF_CAP) or b"").rstrip(b"\r\n")
    work, name = os.path.split(os.path.join(entry, text))
    if not text or name != GIT:
        return None
    try:
        return follow(work)
    except OSError:
        return None
