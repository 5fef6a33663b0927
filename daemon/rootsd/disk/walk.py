"""Walk a parent once and list the projects in it, without entering repositories.

The walk has one thread and uses os.scandir with bytes paths. That takes 1.4 times as long as a C
program that does the same. Threads or raw getdents64 calls would only make it slower.

The walk uses names and d_type. It opens no files but the few that list workspace members. Most
folders on a walk are git checkouts, and nothing inside them matters. So the walk only checks their
marker and does not list them.

Only frontier folders get a stat, after their listing. Nobody can set their change time (ctime)
back, so a ctime before the walk proves that the listing is current.

The walk lists folders by path, because descriptors would cost a third more. If someone replaces a
folder with a link during the walk, the walk may list the names in another place. It does no more
harm than that: discovery probes each project again without following links before it reports it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container
from enum import Enum
from itertools import takewhile

from msgspec import Struct, field

from rootsd.core.exclusion import ExclusionReason
from rootsd.core.model import NestedPolicy, ProjectKind, ScanCoverage
from rootsd.core.paths import ancestors
from rootsd.core.project_kind import GIT_BARE_NAMES, VCS_NAMES
from rootsd.disk.file_clock import racy_cutoff_ns
from rootsd.disk.git_pointer import GIT, read_git_pointer
from rootsd.disk.markers import (
    CACHE_SIGNATURE,
    CACHE_TAG,
    VCS_MARKERS,
    WalkRules,
    child,
    has_checkout,
    has_git,
    repository_kind,
)
from rootsd.disk.reader import read_small
from rootsd.disk.workspace_members import WorkspaceMembers, read_workspace_members

_PROGRESS_EVERY = 512
_HIDDEN = ord(".")
# A constant, because looking up the member of the enum takes as long as a function call.
_GIT = ProjectKind.GIT
# A folder with one of these markers is not a git checkout, even if it also has a `.git`.
_BEFORE_GIT = tuple(b"/" + name for name in takewhile(b".git".__ne__, VCS_MARKERS))

# A git directory has those of its submodules in this folder.
_MODULES = b"/modules/"

FolderStamp = tuple[int, int, int, int]
AddWatch = Callable[[bytes], object]


class ProposalScope(Enum):
    """What discovery proposes in a folder: everything, or only repositories, below a project."""

    OPEN = "open"
    REPOSITORIES = "repositories"


# In a workspace, discovery proposes repositories and the members of the workspace.
ProposalFilter = ProposalScope | WorkspaceMembers


# The garbage collector need not know these: they form no cycles, and a tree has thousands.
class WalkFolder(Struct, frozen=True, gc=False):
    """A folder to walk. The walk enters at most `levels_left` levels of folders below it.

    `top` marks a configured parent. The walk enters it even if it is a repository, and a project
    file does not make it a project. `skipped` marks a folder that the walk skips because of its
    name, unless it is a repository. It stays in the result, because it may become one.
    """

    path: bytes
    levels_left: int
    zone: ProposalFilter = ProposalScope.OPEN
    top: bool = False
    skipped: bool = False


class FolderListing(Struct, frozen=True):
    """The result of listing one folder.

    * `kind`: the kind of project that the folder is, or None.
    * `below`: the folders to walk next; `zone` says what discovery may propose in them.
    * `frontier`: whether to watch the folder.
    * `stamp`: None if the folder changed so recently that it must be listed again.
    """

    place: WalkFolder
    kind: ProjectKind | None
    below: tuple[WalkFolder, ...]
    zone: ProposalFilter
    frontier: bool = False
    stamp: FolderStamp | None = None


class WalkResult(Struct):
    """The result of one walk. A folder comes before the folders in it."""

    listings: list[FolderListing] = field(default_factory=list)
    unreadable: list[bytes] = field(default_factory=list)
    coverage: ScanCoverage = ScanCoverage.FULL


def read_stamp(path: bytes) -> FolderStamp | None:
    """Return the stamp of a folder, or None if it is absent. Raises OSError if it is unreachable.

    The stamp differs after each change of the folder's entries.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    return found.st_ctime_ns, found.st_mtime_ns, found.st_ino, found.st_dev


def _is_git_checkout(path: bytes) -> bool:
    """Return whether the folder is a git checkout; False if this is uncertain.

    Checking two names takes half as long as listing the folder. The checks also work in a folder
    that we may not list, so the last check is for the permission to list it.
    """
    access = os.access
    if not access(path + b"/.git", os.F_OK, follow_symlinks=False):
        return False
    for name in _BEFORE_GIT:
        if access(path + name, os.F_OK, follow_symlinks=False):
            return False
    return access(path, os.R_OK)


def _is_submodule(path: bytes) -> bool:
    """Return whether the folder is a submodule of the repository around it.

    The git directory of that repository holds the one of the submodule. This compares texts alone,
    because to follow a link may take forever.
    """
    named = read_git_pointer(path)
    if named is None or _MODULES not in named:
        return False
    around = next(filter(has_git, ancestors(path)), None)
    if around is None:
        return False
    homes = (child(around, GIT), read_git_pointer(around))
    own = os.path.normpath(named)
    return any(home and own.startswith(os.path.normpath(home) + _MODULES) for home in homes)


def is_checkout(place: WalkFolder) -> bool:
    """Return whether a folder that is skipped because of its name is a checkout.

    Inside a project, where each folder may have several such names, only git's marker counts.
    """
    return has_checkout(place.path) if place.zone is ProposalScope.OPEN else has_git(place.path)


def is_cache(path: bytes, names: Container[bytes]) -> bool:
    """Return whether the folder, which has these names, has the tag of a cache."""
    if CACHE_TAG not in names:
        return False
    return read_small(child(path, CACHE_TAG), len(CACHE_SIGNATURE)) == CACHE_SIGNATURE


class Walker:
    """Lists folders by the rules of one parent.

    The walker calls `add_watch` for each frontier folder. If the folder may have changed between
    its listing and the watch, the walker lists it again. `add_watch` is optional.
    """

    def __init__(
        self,
        rules: WalkRules,
        add_watch: AddWatch | None = None,
    ) -> None:
        self._rules = rules
        self._add_watch = add_watch
        self._device = rules.device
        self._prunes = rules.nested is NestedPolicy.NONE

    def list_folder(
        self, place: WalkFolder, before: int | None = None, *, is_watched: bool = False
    ) -> FolderListing | None:
        """List one folder; return None if it is gone or on another file system.

        `before` is `racy_cutoff_ns()` at the start of the walk. `is_watched` means that the caller
        has set the watch before this call. Raises OSError if the folder cannot be listed.
        """
        if place.skipped and read_stamp(place.path) is None:
            return None
        before = racy_cutoff_ns() if before is None else before
        return self._list(place, before, None if is_watched else self._add_watch)

    def _list(
        self, place: WalkFolder, before: int, add_watch: AddWatch | None
    ) -> FolderListing | None:
        path = place.path
        if self._prunes and not place.top and _is_git_checkout(path):
            is_part = place.zone is not ProposalScope.OPEN and _is_submodule(path)
            return FolderListing(place, None if is_part else _GIT, (), place.zone)
        if place.skipped and not is_checkout(place):
            return FolderListing(place, None, (), place.zone)
        with os.scandir(path) as found:
            entries = list(found)
        names = {entry.name for entry in entries}
        kind, zone = self._classify(place, names)
        if zone is None:
            return FolderListing(place, kind, (), place.zone)
        if self._device is not None and os.lstat(path).st_dev != self._device:
            return None
        if add_watch is not None:
            add_watch(path)
        stamp = read_stamp(path)
        if stamp is None:
            return None
        if stamp[0] >= before:
            if add_watch is not None:
                # It may have changed between the listing and the watch.
                return self._list(place, before, None)
            stamp = None
        below = self._below(place, entries, names, zone) if place.levels_left > 0 else ()
        return FolderListing(place, kind, below, zone, frontier=True, stamp=stamp)

    def _classify(
        self, place: WalkFolder, names: set[bytes]
    ) -> tuple[ProjectKind | None, ProposalFilter | None]:
        """Return the kind of a folder, and what to propose in it, or None if not to enter it."""
        zone = place.zone
        if not VCS_NAMES.isdisjoint(names) or names >= GIT_BARE_NAMES:
            kind = repository_kind(names)
            if place.top and not self._rules.top_is_project:
                return kind, zone
            if self._prunes and not place.top and kind is not None and not kind.is_tree:
                return kind, None
            return kind, self._zone_of_project(place.path, names)
        if place.skipped:
            return None, None  # the marker has gone again
        if not place.top and is_cache(place.path, names):
            return None, zone
        if isinstance(zone, WorkspaceMembers):
            is_member = place.path in zone and self._rules.files.any_in(names)
            return ProjectKind.PROJECT if is_member else None, zone
        if zone is ProposalScope.OPEN and not place.top and self._rules.files.any_in(names):
            return ProjectKind.PROJECT, self._zone_of_project(place.path, names)
        return None, zone

    def _zone_of_project(self, path: bytes, names: set[bytes]) -> ProposalFilter:
        """Return what to propose below a project."""
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
        """Return the folders inside a folder that the walk enters."""
        if not place.top and is_cache(place.path, names):
            return ()
        rules, left = self._rules, place.levels_left - 1
        skipped = self.skipped(place, names, zone)
        # Handle the common case without a function call.
        plain = not (rules.skip_globs or rules.skip_names or rules.stops)
        below = []
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                continue
            name = entry.name
            if plain and name[0] != _HIDDEN and name not in skipped:
                below.append(WalkFolder(entry.path, left, zone))
            elif (inside := self._place_of(place, zone, name, skipped)) is not None:
                below.append(inside)
        return tuple(below)

    def skipped(
        self, place: WalkFolder, names: frozenset[bytes] | set[bytes], zone: ProposalFilter
    ) -> frozenset[bytes]:
        """Return the names to skip in a folder that has `names`, as `WalkRules.skipped` does."""
        if place.top and zone is ProposalScope.OPEN:
            return self._rules.skipped_in_parent()
        return self._rules.skipped(names)

    def place_of_new(
        self, place: WalkFolder, zone: ProposalFilter, name: bytes
    ) -> WalkFolder | None:
        """Return the folder `name` in a listed folder, or None if the walk does not enter it.

        This is for one folder that is new there. It does not cover the names that are skipped only
        beside certain files (`SKIPPED_BESIDE_FILES`).
        """
        if place.levels_left <= 0 or place.skipped:
            return None
        is_tagged = os.access(child(place.path, CACHE_TAG), os.F_OK)
        if is_tagged and not place.top and is_cache(place.path, (CACHE_TAG,)):
            return None
        return self._place_of(place, zone, name, self._rules.skipped_in_parent())

    def _place_of(
        self, place: WalkFolder, zone: ProposalFilter, name: bytes, skipped: frozenset[bytes]
    ) -> WalkFolder | None:
        why = self._rules.why_skipped(place.path, name, skipped)
        return self._inside(place, zone, name, why)

    def place_of_mount(
        self,
        place: WalkFolder,
        zone: ProposalFilter,
        name: bytes,
        names: frozenset[bytes] | set[bytes],
    ) -> WalkFolder | None:
        """Return the mount `name` in a listed folder that has `names`, to walk it on its own.

        The result is None if the walk would not enter a folder of that name there.
        """
        is_cached = not place.top and is_cache(place.path, names)
        if place.levels_left <= 0 or place.skipped or is_cached:
            return None
        why = self._rules.why_name_skipped(name, self.skipped(place, names, zone))
        return self._inside(place, zone, name, why)

    def _inside(
        self, place: WalkFolder, zone: ProposalFilter, name: bytes, why: ExclusionReason | None
    ) -> WalkFolder | None:
        if why is not None and not why.yields_to_a_repository:
            return None
        path, left = child(place.path, name), place.levels_left - 1
        return WalkFolder(path, left, zone, skipped=why is not None)

    def walk(
        self,
        start: WalkFolder,
        progress: Callable[[int, int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> WalkResult:
        """Walk `start` and everything below it. Never raises OSError.

        Every few hundred folders, this calls `progress` with the numbers of listed folders and
        found projects, and ends early if `cancelled` returns True. The coverage is NONE if `start`
        cannot be listed.
        """
        scan, stack, before = WalkResult(), [start], racy_cutoff_ns()
        projects = 0
        while stack:
            place = stack.pop()
            try:
                listing = self._list(place, before, self._add_watch)
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
