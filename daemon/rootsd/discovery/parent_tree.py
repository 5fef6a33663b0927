"""Keep one tree of folders per parent equal to the disk.

What of a tree is looked at after the rest was told: it is most of the work, and can wait.

That a project came or went shows in the folders that hold projects. The roots of repositories
tell only what became of each, and what is remembered of an earlier life is answered meanwhile.

The inside of one parent as a tree of folders, kept equal to the disk.

A folder is on the frontier (in no project: listed and watched), or a leaf (a repository: its
inside is not ours), or unreadable. Whatever is told, a folder is looked at and the tree made to
agree; events, sweeps and scans all end in `_agree`.

The trees of all parents together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from rootsd.core.model import Parent, ProjectKind, ScanCoverage
from rootsd.core.paths import contains
from rootsd.discovery.candidates import Arrival
from rootsd.discovery.folder_tree import (
    FolderNode,
    FolderRole,
    FolderTree,
    changed_folders,
    leaf_stamp,
)
from rootsd.discovery.worktrees import is_skipped
from rootsd.disk.markers import SKIPPED_BESIDE_A_PROJECT_FILE, WalkRules, child, is_marker
from rootsd.disk.snapshot import TreeSnapshot, credentials_key
from rootsd.disk.walk import (
    FolderListing,
    ProposalScope,
    Walker,
    WalkFolder,
    racy_cutoff_ns,
    read_stamp,
)
from rootsd.watch.events import Watcher, WatchOutcome, WatchPurpose

# To compare a stamp takes 3 us, to judge a project 100.
_STAMPS_PER_PROJECT = 16


class DeferredWork:
    """Folders whose stamps are still to be compared, and then projects still to be judged."""

    def __init__(self) -> None:
        self.arrival = Arrival.MADE
        self._folders: list[FolderNode] = []
        self._unjudged: list[bytes] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._folders or self._unjudged)

    def clear(self) -> None:
        """All was looked at."""
        self._folders, self._unjudged = [], []

    def judge(self, path: bytes) -> None:
        """The project at `path` is still to be judged."""
        self._unjudged.append(path)

    def compare(self, folders: Iterable[FolderNode], arrival: Arrival) -> None:
        """These are still to be compared, and no others; what is new in them is an `arrival`."""
        self._folders, self.arrival = list(folders), arrival

    def take_changed(self, most: int) -> list[FolderNode]:
        """Of the next folders, as many as cost what `most` projects do, those that changed."""
        end = most * _STAMPS_PER_PROJECT
        todo, self._folders = self._folders[:end], self._folders[end:]
        return changed_folders(todo)

    def take_projects(self, most: int) -> list[bytes]:
        """The next projects, up to `most`; none before all folders were compared."""
        if self._folders:
            return []
        todo, self._unjudged = self._unjudged[:most], self._unjudged[most:]
        return todo


_PROGRESS_EVERY = 512
# Whoever is answered so has to look for himself.
_UNWATCHED = (
    WatchOutcome.LIMIT,
    WatchOutcome.NO_INSTANCE,
    WatchOutcome.UNSUPPORTED,
    WatchOutcome.FAILED,
)

TreeProgressCallback = Callable[[int, int], None]


class TreeObserver(Protocol):
    """Who is told what the tree finds."""

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        """A folder is a project, by its marker; said again whenever it may have changed."""

    def remembered(self, path: bytes) -> None:
        """A tree of an earlier life had a project there; `found` or `lost` follows."""

    def lost(self, path: bytes) -> None:
        """The tree has no project there any more, or no unreadable folder, below which some may be
        known; why is for the sink to find out."""


class ParentTree:
    """One parent's tree. One thread calls all methods; none raises OSError."""

    def __init__(
        self, parent: Parent, rules: WalkRules, watcher: Watcher, sink: TreeObserver
    ) -> None:
        self.parent = parent
        self.limit: WatchOutcome | None = None
        self._watcher = watcher
        self._sink = sink
        self._tree = FolderTree()
        self._top_id: tuple[int, ...] | None = None
        self._behind = DeferredWork()
        self.changes = 0
        self._memory: TreeSnapshot | None = None
        self.set_rules(rules)

    def set_rules(self, rules: WalkRules) -> None:
        """Walk by these rules from now on; what is in the tree stays until it is looked at."""
        self.rules = rules
        self._walker = Walker(rules, self._arm)

    def set_watcher(self, watcher: Watcher) -> None:
        """Watch by this one; a tree that another one watches is dropped."""
        if watcher is not self._watcher:
            self.abandon()
            self._watcher = watcher

    def __contains__(self, path: bytes) -> bool:
        """Whether a folder is in the tree."""
        return path in self._tree

    def __len__(self) -> int:
        """How many folders the tree has."""
        return len(self._tree)

    @property
    def is_there(self) -> bool:
        """Whether a folder was at the parent's path when it was explored."""
        return self._top_id is not None

    @property
    def coverage(self) -> ScanCoverage:
        """How much of the parent can be read."""
        return self._tree.coverage

    def count_projects(self) -> int:
        """How many projects the tree has, whole or not."""
        return self._tree.count_projects()

    def has_project(self, path: bytes) -> bool:
        """Whether the folder at `path` is a project of this tree."""
        return self._tree.has_project(path)

    def explore(self, arrival: Arrival, progress: TreeProgressCallback | None = None) -> None:
        """Build the tree from nothing, or from the one given to `remember`."""
        self.abandon()
        self.limit = None
        self._top_id = self._id_now()
        top = WalkFolder(self.parent.path, self.parent.depth, ProposalScope.OPEN, top=True)
        memory, self._memory = self._memory, None
        there = self._top_id is not None
        if there and memory is not None and memory.signature == self._signature():
            self._plant(memory, top)
        else:
            self._graft(top, None, arrival, progress)

    def remember(self, memory: TreeSnapshot | None) -> None:
        """Start the next exploration from there: only what moved since is listed."""
        self._memory = memory

    def kept(self) -> TreeSnapshot | None:
        """The tree, to be remembered in a later life; None if there is none."""
        top = self._tree.top
        return top.kept(self._signature()) if top is not None else None

    def _signature(self) -> bytes:
        return b"\0".join((credentials_key(), self.rules.signature()))

    def is_behind(self) -> bool:
        """Whether something waits for `catch_up`."""
        return bool(self._behind)

    def catch_up(self, most: int) -> None:
        """Look at some of what can wait, for as long as `most` projects take, as a scan would
        have: the roots of repositories, then remembered projects."""
        self._relist_those(self._behind.take_changed(most), self._behind.arrival)
        for path in self._behind.take_projects(most):
            folder = self._tree.get(path)
            if folder is not None and folder.project is not None:
                self._sink.found(path, folder.project, Arrival.FOUND)

    def _plant(self, memory: TreeSnapshot, top: WalkFolder) -> None:
        folders = self._tree.plant(memory, top)
        for folder in folders:
            path = folder.place.path
            if folder.role is FolderRole.FRONTIER:
                # Before any stamp is compared: a change in between is then told.
                self._arm(path)
            if folder.project is not None:
                self._behind.judge(path)
                self._sink.remembered(path)
        self._refresh_all(Arrival.FOUND)

    def abandon(self) -> None:
        """Drop the whole tree; each project is lost."""
        self._behind.clear()
        if self._tree.top is not None:
            self._drop(self._tree.top)
            self._tree = FolderTree()

    def silence(self) -> None:
        """Its file system does not answer: nothing below can be told, until it is explored."""
        self.abandon()
        self.limit = WatchOutcome.SILENT

    def is_current(self) -> bool:
        """Whether the folder at the parent's path is the one that the tree was built from, and
        could be read: that one which is mounted there can be again, nothing tells."""
        return self.coverage is not ScanCoverage.NONE and self._id_now() == self._top_id

    def _id_now(self) -> tuple[int, ...] | None:
        """Inode and device of the parent's folder; None if it is out of reach."""
        try:
            stamp = read_stamp(self.parent.path)
        except OSError:
            return None
        return stamp[2:] if stamp is not None else None

    def entry_changed(self, path: bytes, name: bytes, *, left: bool, moved: bool) -> None:
        """Look at the entry `name` of the folder `path`; `left` if it went, perhaps to return."""
        folder = self._tree.get(path)
        if folder is None or folder.role is not FolderRole.FRONTIER:
            return
        kid = folder.kids.get(name)
        if kid is not None and left:
            self._drop(kid)
            kid = None
        if is_marker(name, self.rules.files) or name in SKIPPED_BESIDE_A_PROJECT_FILE:
            self._relist(folder, Arrival.MADE)
            if kid is not None and self._tree.has(kid):
                self._refresh(kid)
            return
        try:
            stamp = read_stamp(child(path, name))
        except OSError:
            self._relist(folder, Arrival.MADE)
            return
        if kid is not None:
            self._drop(kid) if stamp is None else self._refresh(kid)
        elif stamp is not None and self._reaches(folder, name):
            place = WalkFolder(child(path, name), folder.place.left - 1, folder.zone)
            self._graft(place, folder, Arrival.MOVED if moved else Arrival.MADE, None)

    def look_at(self, path: bytes) -> None:
        """Look at one folder of the tree, whatever its stamp says."""
        folder = self._tree.get(path)
        if folder is not None:
            self._relist(folder, Arrival.MADE)

    def refresh(self, *, thorough: bool, progress: TreeProgressCallback | None = None) -> None:
        """Make the tree agree with the disk; folders with their old stamp only if `thorough`, else
        the roots of repositories by `catch_up`."""
        if (top := self._tree.top) is None:
            return
        if thorough:
            self._behind.clear()
            self._relist_all(top, progress)
        else:
            self._refresh_all(Arrival.MADE)

    def sweep(self) -> None:
        """Look at what no watch tells of: the roots of repositories, and unreadable folders."""
        unwatched = [each for each in self._tree.folders() if each.role is not FolderRole.FRONTIER]
        self._relist_those(changed_folders(unwatched), Arrival.MADE)

    def _reaches(self, folder: FolderNode, name: bytes) -> bool:
        if folder.place.left <= 0:
            return False
        return self.rules.enters(folder.place.path, name, self.rules.skip_names)

    def _refresh(self, start: FolderNode) -> None:
        """List `start` and what is below it where the stamp is not the one it had."""
        self._relist_those(changed_folders(start.all()), Arrival.MADE)

    def _refresh_all(self, arrival: Arrival) -> None:
        """The same of the whole tree, but of the roots of repositories only later."""
        folders = self._tree.folders()
        self._behind.compare((f for f in folders if f.role is FolderRole.LEAF), arrival)
        self._relist_those(
            changed_folders(f for f in folders if f.role is not FolderRole.LEAF), arrival
        )

    def _relist_those(self, folders: Iterable[FolderNode], arrival: Arrival) -> None:
        for folder in folders:
            # Those that are new, or were walked anew by other rules, agree with the disk.
            if self._tree.has(folder):
                self._relist(folder, arrival)

    def _relist_all(self, start: FolderNode, progress: TreeProgressCallback | None) -> None:
        stack, seen, projects = [start], 0, 0
        while stack:
            folder = stack.pop()
            known = list(folder.kids.values())
            self._relist(folder, Arrival.MADE)
            # As in `_relist_those`.
            stack += (kid for kid in known if self._tree.has(kid))
            if progress is not None:
                seen += 1
                projects += folder.project is not None
                if seen % _PROGRESS_EVERY == 0:
                    progress(seen, projects)

    def _relist(self, folder: FolderNode, arrival: Arrival) -> None:
        before = racy_cutoff_ns()
        was_watched = folder.role is FolderRole.FRONTIER
        if was_watched:
            # Another folder may be there by now.
            self._arm(folder.place.path)
        try:
            listing = self._walker.look(folder.place, before, armed=was_watched)
        except (FileNotFoundError, NotADirectoryError):
            listing = None
        except OSError:
            self._hide(folder)
            return
        if listing is None:
            self._drop(folder)
            return
        if folder.role is FolderRole.UNREADABLE:
            arrival = Arrival.FOUND
            self._sink.lost(folder.place.path)
        known = set(folder.kids)
        self._agree(folder, listing, arrival, before)
        for place in listing.below:
            name = os.path.basename(place.path)
            if name not in folder.kids:
                # A kid that was dropped only because other rules hold in it is nothing new.
                self._graft(place, folder, Arrival.FOUND if name in known else arrival, None)

    def _agree(
        self, folder: FolderNode, listing: FolderListing, arrival: Arrival, before: int
    ) -> None:
        """Make a folder what its listing says, and drop what is no more below it.

        `before` is `settled_before()` of a time before the listing.
        """
        path, was = folder.place.path, folder.project
        self.changes += 1
        self._tree.set_project(folder, listing.kind)
        folder.zone, folder.stamp = listing.zone, listing.stamp
        if folder.kids:
            places = {os.path.basename(place.path): place for place in listing.below}
            for name, kid in list(folder.kids.items()):
                if places.get(name) != kid.place:
                    self._drop(kid)
        if listing.frontier:
            folder.role = FolderRole.FRONTIER
        else:
            folder.role = FolderRole.LEAF
            self._watcher.unwatch(path, WatchPurpose.FRONTIER)
            folder.stamp = leaf_stamp(path, before)
        if listing.kind is not None:
            known = was is listing.kind
            self._sink.found(path, listing.kind, Arrival.FOUND if known else arrival)
        elif was is not None:
            self._sink.lost(path)

    def _graft(
        self,
        place: WalkFolder,
        above: FolderNode | None,
        arrival: Arrival,
        progress: TreeProgressCallback | None,
    ) -> None:
        """Walk a folder that is new to the tree, and take in what is found."""
        before = racy_cutoff_ns()
        scan = self._walker.walk(place, progress)
        for listing in scan.listings:
            folder = self._tree.add(listing.place, above)
            self._agree(folder, listing, arrival, before)
        for path in scan.unreadable:
            holder = self._tree.holder(path, above)
            left = place.left if holder is None else holder.place.left - 1
            zone = place.zone if holder is None else holder.zone
            self._tree.hide(
                self._tree.add(WalkFolder(path, left, zone, top=holder is None), above)
            )

    def _hide(self, folder: FolderNode) -> None:
        """A folder that cannot be listed: what was in it is out of reach."""
        for kid in list(folder.kids.values()):
            self._drop(kid)
        was = folder.project
        self._tree.hide(folder)
        if was is not None:
            self._sink.lost(folder.place.path)

    def _drop(self, folder: FolderNode) -> None:
        """Take a folder and all below it out of the tree."""
        self.changes += 1
        gone = self._tree.remove(folder)
        for each in gone:
            self._watcher.unwatch(each.place.path, WatchPurpose.FRONTIER)
        for each in gone:
            if each.project is not None or each.role is FolderRole.UNREADABLE:
                self._sink.lost(each.place.path)

    def _arm(self, path: bytes) -> None:
        result = self._watcher.watch(path, WatchPurpose.FRONTIER)
        if result in _UNWATCHED:
            self.limit = result


class ParentTrees(dict[bytes, ParentTree]):
    """Each tree by its parent's path."""

    def drop_others(self, wanted: Mapping[bytes, Parent]) -> None:
        """Drop the trees of all but these parents, and of those that are to be another way."""
        for path in [path for path, each in self.items() if wanted.get(path) != each.parent]:
            self.pop(path).abandon()

    def behind(self) -> list[ParentTree]:
        """The trees of which something waits for `catch_up`."""
        return [territory for territory in self.values() if territory.is_behind()]

    def parent_of(self, path: bytes) -> bytes | None:
        """The innermost parent that holds `path`."""
        return max((parent for parent in self if contains(parent, path)), key=len, default=None)

    def are_below(self, folder: bytes) -> bool:
        """Whether a parent is `folder` or lies below it."""
        return any(contains(folder, parent) for parent in self)

    def look_at(self, path: bytes) -> None:
        """Look at one folder in the trees that have it, whatever its stamp says."""
        for territory in self.values():
            territory.look_at(path)

    def hold(self, path: bytes) -> bool:
        """Whether the folder at `path` is a project of one of the trees."""
        return any(territory.has_project(path) for territory in self.values())

    def miss(self, path: bytes) -> bool:
        """Whether `path` lies below a parent that does not skip it, and no tree holds it."""
        holder = self.get(self.parent_of(path) or b"")
        if holder is None or self.hold(path):
            return False
        return not is_skipped(path, holder.parent)
