"""Look for projects below a folder that is about to become a root, also outside all parents.

Discovery looks only where a person told it to, and only as deep as configured. But a root shows
clients everything in it. So this look has no depth, enters hidden folders, and crosses mounts. It
is bounded by time and by the number of folders instead, and it says when that was not enough.

A person who names a repository means what is in it. So below a repository, the look is for other
repositories that a person works in: at most as deep as discovery goes, and not in hidden folders.
Submodules and worktrees, which have a file as `.git`, are parts of the repository.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto

from msgspec import Struct

from rootsd.core.model import DEFAULT_DEPTH
from rootsd.core.project_kind import GIT_BARE_NAMES, ProjectKind
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.markers import BUILT_IN_PROJECT_FILES, SKIPPED_NAMES, VCS_MARKERS
from rootsd.disk.mounts import mount_points, process_mounts

_HIDDEN = b"."
_NO_LIMIT = 1 << 30

_Entries = Mapping[bytes, "os.DirEntry[bytes]"]


class LookLimits(Struct, frozen=True):
    """How much one look reads: `folders` in `seconds`, until it has found `projects`."""

    folders: int = 50_000
    seconds: float = 1.0
    projects: int = 1_000


IN_A_REPOSITORY = LookLimits(seconds=0.3)
"""Other checkouts in a repository are rare, and repositories have many folders."""


class Look(Struct, frozen=True):
    """The projects that a look found, the nearest first, and whether it saw everything."""

    projects: tuple[bytes, ...]
    is_whole: bool


class _Reach(Enum):
    """What a look is for in a folder."""

    PROJECTS = auto()
    """Everything that a scan of the folder would propose, and repositories in hidden folders."""
    REPOSITORIES = auto()
    """Repositories: below a folder with a project file, and in hidden folders."""
    OTHER_CHECKOUTS = auto()
    """Checkouts of other repositories: below a repository."""

    def finds(self, entries: _Entries) -> bool:
        """Return whether a folder with these entries is what the look is for."""
        markers = [entries[name] for name in VCS_MARKERS if name in entries]
        if self is _Reach.OTHER_CHECKOUTS:
            # Old versions of Subversion have their folder in each folder of one checkout.
            return any(entry.name != b".svn" and entry.is_dir() for entry in markers)
        if markers or entries.keys() >= GIT_BARE_NAMES:
            return True
        return self is _Reach.PROJECTS and _has_project_file(entries)

    def inside(self, entries: _Entries) -> _Reach | None:
        """Return what to look for in a folder that the look found, or None for nothing."""
        is_repository = _Reach.REPOSITORIES.finds(entries)
        return None if is_repository else _Reach.REPOSITORIES

    def below(self, name: bytes) -> _Reach | None:
        """Return what to look for in a folder of this name, or None for nothing."""
        if name in _SKIPPED:
            return None
        if not name.startswith(_HIDDEN):
            return self
        return None if self is _Reach.OTHER_CHECKOUTS else _Reach.REPOSITORIES


_SKIPPED = SKIPPED_NAMES | VCS_MARKERS.keys()


class _Place(Struct, frozen=True):
    path: bytes
    levels_left: int
    reach: _Reach

    def folders_in(self, entries: _Entries, reach: _Reach) -> Iterator[_Place]:
        """Yield the folders among `entries` in which the look goes on."""
        for name, entry in entries.items() if self.levels_left > 0 else ():
            below = reach.below(name)
            if below is not None and entry.is_dir(follow_symlinks=False):
                yield _Place(entry.path, self.levels_left - 1, below)


def look_below(
    folder: bytes,
    kind: ProjectKind,
    limits: LookLimits | None = None,
    may_enter: Callable[[bytes], bool] = may_follow,
) -> Look:
    """Return the projects below `folder`, which is a project of `kind`.

    It does not enter the repositories that it finds, follows no links, and raises nothing.
    `may_enter` tells whether the mount at a point in the folder responds. A folder that we may not
    list is left out, because clients run as the same user.
    """
    limits = limits or LookLimits()
    end = time.monotonic() + limits.seconds
    mounted = mount_points(process_mounts().now()) - {folder}
    waiting, listed, is_whole = deque([_start(folder, kind)]), 0, True
    found: list[bytes] = []
    while waiting:
        is_over = time.monotonic() > end or listed >= limits.folders
        if is_over or len(found) >= limits.projects:
            return Look(tuple(found), is_whole=False)
        place = waiting.popleft()
        if place.path in mounted and not may_enter(place.path):
            is_whole = False
            continue
        entries, reach = _entries_of(place.path), place.reach
        listed += 1
        if place.path != folder and reach.finds(entries):
            found.append(place.path)
            inside = reach.inside(entries)
            if inside is None:
                continue
            reach = inside
        waiting += place.folders_in(entries, reach)
    return Look(tuple(found), is_whole)


def _start(folder: bytes, kind: ProjectKind) -> _Place:
    if kind is not ProjectKind.PROJECT:
        return _Place(folder, DEFAULT_DEPTH, _Reach.OTHER_CHECKOUTS)
    has_file = _has_project_file(_entries_of(folder))
    return _Place(folder, _NO_LIMIT, _Reach.REPOSITORIES if has_file else _Reach.PROJECTS)


def _has_project_file(entries: _Entries) -> bool:
    return BUILT_IN_PROJECT_FILES.any_in(set(entries))


def _entries_of(folder: bytes) -> _Entries:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry for entry in entries}
    except OSError:
        return {}
