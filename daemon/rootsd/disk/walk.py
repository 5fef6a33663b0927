"""Walk a parent once and list the projects in it, without entering repositories.

Plain single-threaded `os.scandir` over bytes paths is within 1.4 times a C program that does the
same; threads and raw getdents64 only add cost. Names and d_type decide, no file is opened but
those in which a workspace names its members, where they are asked for. Most folders that a walk
comes to are git's, and nothing in them matters: those are asked for their marker, and not listed.
The one stat goes to frontier folders, after their listing: a change time (ctime, which nobody can
set back) older than the walk proves that the listing is of that state.

Folders are listed by path; by descriptor it would cost a third more. Whoever swaps one for a link
meanwhile makes the walk list names elsewhere, and no more: each project is looked at again without
following any link before anybody is told of it, and the swap is an event like any other.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile
from typing import NamedTuple

from rootsd.core.model import NestedPolicy, ProjectKind, ScanCoverage
from rootsd.disk.manifest import WorkspaceMembers, read_workspace_members
from rootsd.disk.markers import GIT_BARE_NAMES, VCS_MARKERS, VCS_NAMES, WalkRules, repository_kind

# How far the clock that stamps folders may lag behind the one that we read.
_CLOCK_SLACK_NS = 2 * 10**9
_PROGRESS_EVERY = 512
_HIDDEN = ord(".")
# Asked for by name once for each repository, an enum's member costs as much as a small call.
_GIT = ProjectKind.GIT
# A folder with one of these is not git's, though it holds a `.git` as well.
_BEFORE_GIT = tuple(b"/" + name for name in takewhile(b".git".__ne__, VCS_MARKERS))

FolderStamp = tuple[int, int, int, int]
AddWatch = Callable[[bytes], object]


class ProposalScope(Enum):
    """What is proposed in a folder: everything, or only repositories (below a project)."""

    OPEN = "open"
    REPOSITORIES = "repositories"


# In a workspace: repositories, and its members.
ProposalFilter = ProposalScope | WorkspaceMembers


# Tuples: a walk makes one of these for each folder, and a frozen dataclass takes three times as
# long to make.
class WalkFolder(NamedTuple):
    """A folder to be walked; `left` is how many levels below it may still be entered.

    `top` marks a configured parent: descended even if it is a repository, and never a project by
    a project file.
    """

    path: bytes
    left: int
    zone: ProposalFilter = ProposalScope.OPEN
    top: bool = False


class FolderListing(NamedTuple):
    """One folder as it was listed.

    `kind` is what project it is, if any; `below` the places to go on to, `zone` theirs; `frontier`
    whether it is to be watched; `stamp` is None if it changed so recently that it must be listed
    again.
    """

    place: WalkFolder
    kind: ProjectKind | None
    below: tuple[WalkFolder, ...]
    zone: ProposalFilter
    frontier: bool = False
    stamp: FolderStamp | None = None


@dataclass(slots=True)
class WalkResult:
    """What one walk saw, in the order of the walk: a folder comes before what is in it."""

    listings: list[FolderListing] = field(default_factory=list)
    unreadable: list[bytes] = field(default_factory=list)
    coverage: ScanCoverage = ScanCoverage.FULL


def read_stamp(path: bytes) -> FolderStamp | None:
    """What changes whenever an entry of the folder does; None if no folder is there.

    Raises OSError if it cannot be reached.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    return found.st_ctime_ns, found.st_mtime_ns, found.st_ino, found.st_dev


def _is_git_checkout(path: bytes) -> bool:
    """Whether a listing of the folder would show that it is git's; False where that is not sure.

    To ask for two names takes half as long as to list the folder, but one that must not be listed
    may well answer.
    """
    access = os.access
    if not access(path + b"/.git", os.F_OK, follow_symlinks=False):
        return False
    for name in _BEFORE_GIT:
        if access(path + name, os.F_OK, follow_symlinks=False):
            return False
    return access(path, os.R_OK)


def racy_cutoff_ns() -> int:
    """A folder whose ctime (in ns) is older than this cannot have been changed since now."""
    return time.time_ns() - _CLOCK_SLACK_NS


class Walker:
    """Lists folders by the rules of one parent.

    `arm` is called for each folder of the frontier before its listing is relied on, so that a
    watch is there first; it may be left out.
    """

    def __init__(
        self,
        rules: WalkRules,
        arm: AddWatch | None = None,
    ) -> None:
        self._rules = rules
        self._arm = arm
        self._device = rules.device
        self._prunes = rules.nested is NestedPolicy.NONE

    def look(
        self, place: WalkFolder, before: int | None = None, *, armed: bool = False
    ) -> FolderListing | None:
        """List one folder; None if another file system or no folder lies there by now.

        `before` is `settled_before()` of the walk's start; `armed` says that the caller has
        called `arm` for it, so that it need not be listed again for what came before the watch.
        Raises OSError if it cannot be listed.
        """
        before = racy_cutoff_ns() if before is None else before
        return self._look(place, before, None if armed else self._arm)

    def _look(self, place: WalkFolder, before: int, arm: AddWatch | None) -> FolderListing | None:
        path = place.path
        if self._prunes and not place.top and _is_git_checkout(path):
            return FolderListing(place, _GIT, (), place.zone)
        with os.scandir(path) as found:
            entries = list(found)
        names = {entry.name for entry in entries}
        kind, zone = self._judged(place, names)
        if zone is None:
            return FolderListing(place, kind, (), place.zone)
        if self._device is not None and os.lstat(path).st_dev != self._device:
            return None
        if arm is not None:
            arm(path)
        stamp = read_stamp(path)
        if stamp is None:
            return None
        if stamp[0] >= before:
            if arm is not None:
                # It may have changed between listing and watch.
                return self._look(place, before, None)
            stamp = None
        below = self._below(place, entries, names, zone) if place.left > 0 else ()
        return FolderListing(place, kind, below, zone, frontier=True, stamp=stamp)

    def _judged(
        self, place: WalkFolder, names: set[bytes]
    ) -> tuple[ProjectKind | None, ProposalFilter | None]:
        """What project a folder is, if any, and what is proposed in it; None: not entered."""
        zone = place.zone
        if not VCS_NAMES.isdisjoint(names) or names >= GIT_BARE_NAMES:
            kind = repository_kind(names)
            if place.top:
                return kind, zone
            if self._rules.nested is NestedPolicy.NONE:
                return kind, None
            return kind, self._inside(place.path, names)
        if isinstance(zone, WorkspaceMembers):
            is_member = place.path in zone and self._rules.files.any_in(names)
            return ProjectKind.PROJECT if is_member else None, zone
        if zone is ProposalScope.OPEN and not place.top and self._rules.files.any_in(names):
            return ProjectKind.PROJECT, self._inside(place.path, names)
        return None, zone

    def _inside(self, path: bytes, names: set[bytes]) -> ProposalFilter:
        """What is proposed below a project."""
        if self._rules.nested is not NestedPolicy.MEMBERS:
            return ProposalScope.REPOSITORIES
        return read_workspace_members(path, names) or ProposalScope.REPOSITORIES

    def _below(
        self,
        place: WalkFolder,
        entries: list[os.DirEntry[bytes]],
        names: set[bytes],
        zone: ProposalFilter,
    ) -> tuple[WalkFolder, ...]:
        """The folders in a folder that are to be entered."""
        rules, path, left = self._rules, place.path, place.left - 1
        skipped = rules.skipped(names)
        # The common case is decided here, without a call.
        plain = rules.skip_globs is None and not rules.stops
        below = []
        for entry in entries:
            name = entry.name
            if name[0] == _HIDDEN or name in skipped or not entry.is_dir(follow_symlinks=False):
                continue
            if plain or rules.enters(path, name, skipped):
                below.append(WalkFolder(entry.path, left, zone))
        return tuple(below)

    def walk(
        self,
        start: WalkFolder,
        progress: Callable[[int, int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> WalkResult:
        """Walk `start` and all below it; never raises OSError.

        `progress` gets (folders listed, projects found) every few hundred folders; `cancelled` is
        asked as often. A start that cannot be listed is `Coverage.NONE`.
        """
        scan, stack, before = WalkResult(), [start], racy_cutoff_ns()
        projects = 0
        while stack:
            place = stack.pop()
            try:
                listing = self._look(place, before, self._arm)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                scan.unreadable.append(place.path)
                continue
            if listing is None:
                continue
            scan.listings.append(listing)
            stack += listing.below
            projects += listing.kind is not None
            if len(scan.listings) % _PROGRESS_EVERY == 0:
                if progress is not None:
                    progress(len(scan.listings), projects)
                if cancelled is not None and cancelled():
                    scan.coverage = ScanCoverage.PARTIAL
                    return scan
        if scan.unreadable:
            scan.coverage = ScanCoverage.PARTIAL
        if not scan.listings:
            scan.coverage = ScanCoverage.NONE
        return scan
