"""Keep one tree of folders per parent equal to the disk.

A `ParentTree` holds every folder below one parent that discovery has to know. Each folder has one
of three roles:

* FRONTIER: the folder lies in no project. It is listed and watched, because a project may appear
  in it.
* LEAF: the folder is the root of a repository. Its inside is not listed.
* UNREADABLE: the folder exists and cannot be listed.

There is one way to change a tree: look at a folder on the disk, and make its node agree
(`_update`). Events, sweeps, scans and the start of the daemon all end there. So a lost, late or
doubled event does no harm: at worst a folder is listed later, or once more. The tree reports each
project that it finds or loses to its `TreeObserver`.

Each node keeps the stamp of its folder: ctime, mtime, inode and device. A folder with an unchanged
stamp has the same entries, so it need not be listed again. This makes a start quick. The tree is
built from the snapshot of the last run (`rootsd.disk.snapshot`), and only the folders whose stamps
changed are listed.

Most of that work can wait, and `DeferredWork` holds it. Frontier folders are compared at once:
they show which projects came and went. The roots of repositories show only what became of each
project, so `catch_up` compares them later, in portions. Meanwhile rootsd answers from what it
remembers.

`ParentTrees` holds the trees of all parents.
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

# Comparing a stamp takes 3 us; judging a project takes 100 us.
_STAMPS_PER_PROJECT = 16


class DeferredWork:
    """Folders whose stamps are still to be compared, then projects still to be judged."""

    def __init__(self) -> None:
        self.arrival = Arrival.MADE
        self._folders: list[FolderNode] = []
        self._unjudged: list[bytes] = []

    def __bool__(self) -> bool:
        """Whether any work is left."""
        return bool(self._folders or self._unjudged)

    def clear(self) -> None:
        """Drop all work, because everything was just listed."""
        self._folders, self._unjudged = [], []

    def judge(self, path: bytes) -> None:
        """Add the project at `path` to the projects to judge."""
        self._unjudged.append(path)

    def compare(self, folders: Iterable[FolderNode], arrival: Arrival) -> None:
        """Replace the folders to compare. New projects in them are reported as `arrival`."""
        self._folders, self.arrival = list(folders), arrival

    def take_changed(self, most: int) -> list[FolderNode]:
        """Take the next folders and return those that changed.

        Takes as many folders as cost the time of judging `most` projects.
        """
        end = most * _STAMPS_PER_PROJECT
        todo, self._folders = self._folders[:end], self._folders[end:]
        return changed_folders(todo)

    def take_projects(self, most: int) -> list[bytes]:
        """Return the next projects, up to `most`; none before all folders were compared."""
        if self._folders:
            return []
        todo, self._unjudged = self._unjudged[:most], self._unjudged[most:]
        return todo


_PROGRESS_EVERY = 512
# A watcher with one of these outcomes reports no events, so the folder has to be polled.
_UNWATCHED = (
    WatchOutcome.LIMIT,
    WatchOutcome.NO_INSTANCE,
    WatchOutcome.UNSUPPORTED,
    WatchOutcome.FAILED,
)

TreeProgressCallback = Callable[[int, int], None]


class TreeObserver(Protocol):
    """The receiver of what a tree finds and loses."""

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        """Handle a folder that is a project by its marker; called again whenever it may have
        changed.
        """

    def remembered(self, path: bytes) -> None:
        """Handle a project that the snapshot of an earlier run has; `found` or `lost` follows."""

    def lost(self, path: bytes) -> None:
        """Handle a project, or an unreadable folder, that the tree has no more.

        Projects may be known below an unreadable folder. The receiver has to find out why it was
        lost.
        """


class ParentTree:
    """The tree of one parent. One thread calls all methods; none raises OSError."""

    def __init__(
        self, parent: Parent, rules: WalkRules, watcher: Watcher, observer: TreeObserver
    ) -> None:
        self.parent = parent
        self.limit: WatchOutcome | None = None
        self._watcher = watcher
        self._observer = observer
        self._tree = FolderTree()
        self._top_id: tuple[int, ...] | None = None
        self._deferred = DeferredWork()
        self.changes = 0
        self._snapshot: TreeSnapshot | None = None
        self.set_rules(rules)

    def set_rules(self, rules: WalkRules) -> None:
        """Use these rules for the next walks. Nodes stay until their folders are listed again."""
        self.rules = rules
        self._walker = Walker(rules, self._watch)

    def set_watcher(self, watcher: Watcher) -> None:
        """Use this watcher. Drop the tree if another one watches it now."""
        if watcher is not self._watcher:
            self.abandon()
            self._watcher = watcher

    def __contains__(self, path: bytes) -> bool:
        """Whether the tree has a folder at `path`."""
        return path in self._tree

    def __len__(self) -> int:
        """Return the number of folders."""
        return len(self._tree)

    @property
    def is_there(self) -> bool:
        """Whether a folder was at the parent's path when the tree was built."""
        return self._top_id is not None

    @property
    def coverage(self) -> ScanCoverage:
        """How much of the parent can be read."""
        return self._tree.coverage

    def count_projects(self) -> int:
        """Return the number of projects, complete or not."""
        return self._tree.count_projects()

    def has_project(self, path: bytes) -> bool:
        """Return whether the folder at `path` is a project of this tree."""
        return self._tree.has_project(path)

    def explore(self, arrival: Arrival, progress: TreeProgressCallback | None = None) -> None:
        """Build the tree from the snapshot passed to `use_snapshot`, or from a walk if
        there is none.
        """
        self.abandon()
        self.limit = None
        self._top_id = self._id_now()
        top = WalkFolder(self.parent.path, self.parent.depth, ProposalScope.OPEN, top=True)
        snapshot, self._snapshot = self._snapshot, None
        there = self._top_id is not None
        if there and snapshot is not None and snapshot.signature == self._signature():
            self._restore(snapshot, top)
        else:
            self._add_walked(top, None, arrival, progress)

    def use_snapshot(self, snapshot: TreeSnapshot | None) -> None:
        """Build the next tree from this snapshot, and list only the folders that changed since."""
        self._snapshot = snapshot

    def snapshot(self) -> TreeSnapshot | None:
        """Return a snapshot of the tree for a later run, or None if there is no tree."""
        top = self._tree.top
        return top.to_snapshot(self._signature()) if top is not None else None

    def _signature(self) -> bytes:
        return b"\0".join((credentials_key(), self.rules.signature()))

    def is_behind(self) -> bool:
        """Return whether deferred work waits for `catch_up`."""
        return bool(self._deferred)

    def catch_up(self, most: int) -> None:
        """Do as much deferred work as judging `most` projects takes.

        Compare the roots of repositories first, then judge remembered projects.
        """
        self._relist_those(self._deferred.take_changed(most), self._deferred.arrival)
        for path in self._deferred.take_projects(most):
            folder = self._tree.get(path)
            if folder is not None and folder.project is not None:
                self._observer.found(path, folder.project, Arrival.FOUND)

    def _restore(self, snapshot: TreeSnapshot, top: WalkFolder) -> None:
        folders = self._tree.restore(snapshot, top)
        for folder in folders:
            path = folder.place.path
            if folder.role is FolderRole.FRONTIER:
                # Watch before comparing any stamp, so that a change in between causes an event.
                self._watch(path)
            if folder.project is not None:
                self._deferred.judge(path)
                self._observer.remembered(path)
        self._refresh_all(Arrival.FOUND)

    def abandon(self) -> None:
        """Drop the whole tree. Each of its projects is lost."""
        self._deferred.clear()
        if self._tree.top is not None:
            self._drop(self._tree.top)
            self._tree = FolderTree()

    def mark_unresponsive(self) -> None:
        """Drop the tree because the file system does not answer. `explore` builds it again."""
        self.abandon()
        self.limit = WatchOutcome.UNRESPONSIVE

    def is_current(self) -> bool:
        """Return whether the tree was built from the folder that is at the parent's path now.

        False also if that folder could not be read: the parent may be mounted again by now, and no
        event reports that.
        """
        return self.coverage is not ScanCoverage.NONE and self._id_now() == self._top_id

    def _id_now(self) -> tuple[int, ...] | None:
        """Return inode and device of the parent's folder, or None if it is out of reach."""
        try:
            stamp = read_stamp(self.parent.path)
        except OSError:
            return None
        return stamp[2:] if stamp is not None else None

    def entry_changed(self, path: bytes, name: bytes, *, left: bool, moved: bool) -> None:
        """Look at the entry `name` of the folder `path`.

        `left`: the entry went away, perhaps to return. `moved`: a folder came there by a rename.
        """
        folder = self._tree.get(path)
        if folder is None or folder.role is not FolderRole.FRONTIER:
            return
        child_node = folder.children.get(name)
        if child_node is not None and left:
            self._drop(child_node)
            child_node = None
        if is_marker(name, self.rules.files) or name in SKIPPED_BESIDE_A_PROJECT_FILE:
            self._relist(folder, Arrival.MADE)
            if child_node is not None and self._tree.has(child_node):
                self._refresh(child_node)
            return
        try:
            stamp = read_stamp(child(path, name))
        except OSError:
            self._relist(folder, Arrival.MADE)
            return
        if child_node is not None:
            self._drop(child_node) if stamp is None else self._refresh(child_node)
        elif stamp is not None and self._may_enter(folder, name):
            place = WalkFolder(child(path, name), folder.place.left - 1, folder.zone)
            self._add_walked(place, folder, Arrival.MOVED if moved else Arrival.MADE, None)

    def look_at(self, path: bytes) -> None:
        """List one folder of the tree, even if its stamp is unchanged."""
        folder = self._tree.get(path)
        if folder is not None:
            self._relist(folder, Arrival.MADE)

    def refresh(self, *, thorough: bool, progress: TreeProgressCallback | None = None) -> None:
        """Make the tree agree with the disk.

        With `thorough`, list every folder. Without, list those whose stamps changed, and leave the
        roots of repositories to `catch_up`.
        """
        if (top := self._tree.top) is None:
            return
        if thorough:
            self._deferred.clear()
            self._relist_all(top, progress)
        else:
            self._refresh_all(Arrival.MADE)

    def sweep(self) -> None:
        """Look at the folders without a watch: roots of repositories and unreadable folders."""
        unwatched = [each for each in self._tree.folders() if each.role is not FolderRole.FRONTIER]
        self._relist_those(changed_folders(unwatched), Arrival.MADE)

    def _may_enter(self, folder: FolderNode, name: bytes) -> bool:
        if folder.place.left <= 0:
            return False
        return self.rules.enters(folder.place.path, name, self.rules.skip_names)

    def _refresh(self, start: FolderNode) -> None:
        """List `start` and the folders below it whose stamps changed."""
        self._relist_those(changed_folders(start.all()), Arrival.MADE)

    def _refresh_all(self, arrival: Arrival) -> None:
        """List all folders whose stamps changed, but defer the roots of repositories."""
        folders = self._tree.folders()
        self._deferred.compare((f for f in folders if f.role is FolderRole.LEAF), arrival)
        self._relist_those(
            changed_folders(f for f in folders if f.role is not FolderRole.LEAF), arrival
        )

    def _relist_those(self, folders: Iterable[FolderNode], arrival: Arrival) -> None:
        for folder in folders:
            # A folder that is not in the tree any more was replaced by a new node, which agrees
            # with the disk.
            if self._tree.has(folder):
                self._relist(folder, arrival)

    def _relist_all(self, start: FolderNode, progress: TreeProgressCallback | None) -> None:
        stack, seen, projects = [start], 0, 0
        while stack:
            folder = stack.pop()
            known = list(folder.children.values())
            self._relist(folder, Arrival.MADE)
            # A replaced node agrees with the disk, as in `_relist_those`.
            stack += (child_node for child_node in known if self._tree.has(child_node))
            if progress is not None:
                seen += 1
                projects += folder.project is not None
                if seen % _PROGRESS_EVERY == 0:
                    progress(seen, projects)

    def _relist(self, folder: FolderNode, arrival: Arrival) -> None:
        before = racy_cutoff_ns()
        was_watched = folder.role is FolderRole.FRONTIER
        if was_watched:
            # Another folder may have taken the path. Renew the watch.
            self._watch(folder.place.path)
        try:
            listing = self._walker.look(folder.place, before, armed=was_watched)
        except (FileNotFoundError, NotADirectoryError):
            listing = None
        except OSError:
            self._mark_unreadable(folder)
            return
        if listing is None:
            self._drop(folder)
            return
        if folder.role is FolderRole.UNREADABLE:
            arrival = Arrival.FOUND
            self._observer.lost(folder.place.path)
        known = set(folder.children)
        self._update(folder, listing, arrival, before)
        for place in listing.below:
            name = os.path.basename(place.path)
            if name not in folder.children:
                # A child that was dropped only because other rules apply to it is not new.
                self._add_walked(place, folder, Arrival.FOUND if name in known else arrival, None)

    def _update(
        self, folder: FolderNode, listing: FolderListing, arrival: Arrival, before: int
    ) -> None:
        """Make a node agree with its listing, and drop the children that the listing does not
        have.

        `before` is the result of `racy_cutoff_ns` from before the listing.
        """
        path, was = folder.place.path, folder.project
        self.changes += 1
        self._tree.set_project(folder, listing.kind)
        folder.zone, folder.stamp = listing.zone, listing.stamp
        if folder.children:
            places = {os.path.basename(place.path): place for place in listing.below}
            for name, child_node in list(folder.children.items()):
                if places.get(name) != child_node.place:
                    self._drop(child_node)
        if listing.frontier:
            folder.role = FolderRole.FRONTIER
        else:
            folder.role = FolderRole.LEAF
            self._watcher.unwatch(path, WatchPurpose.FRONTIER)
            folder.stamp = leaf_stamp(path, before)
        if listing.kind is not None:
            known = was is listing.kind
            self._observer.found(path, listing.kind, Arrival.FOUND if known else arrival)
        elif was is not None:
            self._observer.lost(path)

    def _add_walked(
        self,
        place: WalkFolder,
        above: FolderNode | None,
        arrival: Arrival,
        progress: TreeProgressCallback | None,
    ) -> None:
        """Walk a folder that is new to the tree, and add everything found."""
        before = racy_cutoff_ns()
        scan = self._walker.walk(place, progress)
        for listing in scan.listings:
            folder = self._tree.add(listing.place, above)
            self._update(folder, listing, arrival, before)
        for path in scan.unreadable:
            holder = self._tree.holder(path, above)
            left = place.left if holder is None else holder.place.left - 1
            zone = place.zone if holder is None else holder.zone
            self._tree.hide(
                self._tree.add(WalkFolder(path, left, zone, top=holder is None), above)
            )

    def _mark_unreadable(self, folder: FolderNode) -> None:
        """Mark a folder as unreadable; everything below it is out of reach."""
        for child_node in list(folder.children.values()):
            self._drop(child_node)
        was = folder.project
        self._tree.hide(folder)
        if was is not None:
            self._observer.lost(folder.place.path)

    def _drop(self, folder: FolderNode) -> None:
        """Remove a folder and everything below it."""
        self.changes += 1
        gone = self._tree.remove(folder)
        for each in gone:
            self._watcher.unwatch(each.place.path, WatchPurpose.FRONTIER)
        for each in gone:
            if each.project is not None or each.role is FolderRole.UNREADABLE:
                self._observer.lost(each.place.path)

    def _watch(self, path: bytes) -> None:
        result = self._watcher.watch(path, WatchPurpose.FRONTIER)
        if result in _UNWATCHED:
            self.limit = result


class ParentTrees(dict[bytes, ParentTree]):
    """The trees of all parents, by the parents' paths."""

    def drop_others(self, wanted: Mapping[bytes, Parent]) -> None:
        """Drop the trees of all parents but these, and of parents whose settings changed."""
        for path in [path for path, each in self.items() if wanted.get(path) != each.parent]:
            self.pop(path).abandon()

    def behind(self) -> list[ParentTree]:
        """Return the trees with deferred work."""
        return [tree for tree in self.values() if tree.is_behind()]

    def parent_of(self, path: bytes) -> bytes | None:
        """Return the innermost parent that contains `path`."""
        return max((parent for parent in self if contains(parent, path)), key=len, default=None)

    def are_below(self, folder: bytes) -> bool:
        """Return whether a parent is `folder` or lies below it."""
        return any(contains(folder, parent) for parent in self)

    def look_at(self, path: bytes) -> None:
        """List one folder in the trees that have it, even if its stamp is unchanged."""
        for tree in self.values():
            tree.look_at(path)

    def hold(self, path: bytes) -> bool:
        """Return whether the folder at `path` is a project of one of the trees."""
        return any(tree.has_project(path) for tree in self.values())

    def miss(self, path: bytes) -> bool:
        """Return whether a parent that does not skip `path` contains it, and no tree holds it."""
        holder = self.get(self.parent_of(path) or b"")
        if holder is None or self.hold(path):
            return False
        return not is_skipped(path, holder.parent)
