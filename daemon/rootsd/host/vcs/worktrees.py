"""Finds the linked worktrees of a repository from the repository itself.

A worktree may lie where no walk goes: in a hidden folder, or beside a bare repository in a folder
that holds the `.git` file of both. Source: gitrepository-layout(5), "worktrees/<id>/gitdir".
"""

from __future__ import annotations

from dataclasses import dataclass

from rootsd.core.model import ProjectKind
from rootsd.host.disk.leads import may_follow
from rootsd.host.disk.opened import Opened
from rootsd.host.disk.reader import REF_CAP, join, names_in, read_small
from rootsd.host.vcs.gitdir import Repository, locate, locate_bare

_MOST = 1_000
_MARKER = b"/.git"
_LINKS = b"worktrees"
_MAINS = frozenset((ProjectKind.GIT, ProjectKind.GIT_BARE))


@dataclass(frozen=True, slots=True)
class Links:
    """`trees` are the folders that link back, `open` the entries of which none does (yet)."""

    trees: frozenset[bytes]
    open: frozenset[bytes]


def may_have_links(git: Repository) -> bool:
    """Whether `links_folder` may name a folder for a repository that is being looked at."""
    return git.place.kind in _MAINS and _LINKS in git.names


def links_folder(main: bytes) -> bytes | None:
    """Where the repository at `main` keeps its links to worktrees; None if it has none."""
    with Opened(main + _MARKER) as own:  # what nearly each has, and asked for in one step
        if own.failure is None:
            return _links_folder_in(own)
    place = locate(main) or locate_bare(main)
    if place.folder != place.common:
        return None
    with Opened(place.common) as common:
        return _links_folder_in(common)


def _links_folder_in(common: Opened) -> bytes | None:
    # Nearly none has one: to ask whether anything is there takes less than to find no folder.
    has_some = common.exists(_LINKS) and common.is_folder(_LINKS) and common.exists(b"HEAD")
    return common.path + b"/" + _LINKS if has_some else None


def links_in(folder: bytes) -> Links:
    """The worktrees that the folder names, where each answers with a link back."""
    trees, unanswered = set(), set()
    for name in sorted(names_in(folder))[:_MOST]:
        entry = folder + b"/" + name
        work = _work_of(entry)
        place = locate(work) if work is not None else None
        if work is not None and place is not None and place.main_checkout is not None:
            trees.add(work)
        else:
            unanswered.add(entry)
    return Links(frozenset(trees), frozenset(unanswered))


def _work_of(entry: bytes) -> bytes | None:
    marker = join(entry, (read_small(entry + b"/gitdir", REF_CAP) or b"").strip())
    return (
        marker.removesuffix(_MARKER) if marker.endswith(_MARKER) and may_follow(marker) else None
    )
