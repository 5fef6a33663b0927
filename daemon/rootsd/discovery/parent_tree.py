"""Keep a tree of the folders below each parent, and update it from the disk.

A `ParentTree` has every folder below one parent that matters to discovery. Each folder has one of
three roles:

* FRONTIER: the folder is in no project. Discovery lists and watches it, because a project may
  appear in it.
* LEAF: the folder is the top of a repository, or has a name that a walk skips. Discovery does not
  list what is inside. It only watches for markers, which make it another kind of repository, or
  none.
* UNREADABLE: the folder exists but cannot be listed.

There is one way to change a tree: list a folder on the disk, and update its node (`_update`).
Events, sweeps, scans, and the start of the daemon all end there. So a lost, late, or duplicate
event does no harm: at worst, discovery lists a folder later, or once more. The tree reports each
project that it finds or loses to its `TreeObserver`.

Each node stores the stamp of its folder: ctime, mtime, inode, and device. A folder with an
unchanged stamp has the same entries, so it need not be listed again. This makes a start quick:
discovery builds the tree from the snapshot of the last run (`rootsd.disk.snapshot`), and then
lists only the folders whose stamps changed.

Most of that work can wait; `DeferredWork` keeps it. Discovery compares frontier folders at once,
because they show which projects are new or gone. The top folder of a repository only shows the
state of a project that is already known. So `catch_up` compares those folders later, in portions.
Until then, rootsd answers with the state from the snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Protocol

from rootsd.core.model import NestedPolicy, Parent, ProjectKind, ScanCoverage
from rootsd.discovery.candidate import Arrival
from rootsd.discovery.folder_tree import (
    FolderNode,
    FolderRole,
    FolderTree,
    changed_folders,
    leaf_stamp,
)
from rootsd.disk.file_clock import racy_cutoff_ns
from rootsd.disk.markers import (
    SKIPPED_BESIDE_FILES,
    WalkRules,
    child,
    is_marker,
)
from rootsd.disk.reader import list_names
from rootsd.disk.snapshot import TreeSnapshot, credentials_key
from rootsd.disk.walk import (
    FolderListing,
    ProposalScope,
    Walker,
    WalkFolder,
    is_checkout,
    read_stamp,
)
from rootsd.watch.events import Watcher, WatchOutcome, WatchPurpose

# Constants, because looking up the member of an enum takes as long as a function call.
_FRONTIER, _LEAF = FolderRole.FRONTIER, FolderRole.LEAF
# Watching a folder and comparing its stamp takes 10 us; checking a project takes 100 us.
_STAMPS_PER_PROJECT = 8


class DeferredWork:
    """The folders whose stamps are not compared yet, and the projects that are not checked yet.

    Folders come first.
    """

    def __init__(self) -> None:
        self.arrival = Arrival.CREATED
        self._folders: list[FolderNode] = []
        self._projects: list[bytes] = []

    def __bool__(self) -> bool:
        """Whether any work is left."""
        return bool(self._folders or self._projects)

    def clear(self) -> None:
        """Drop all work. Call this after everything was listed."""
        self._folders, self._projects = [], []

    def add_project(self, path: bytes) -> None:
        """Add a project to check."""
        self._projects.append(path)

    def set_folders(self, folders: Iterable[FolderNode], arrival: Arrival) -> None:
        """Replace the folders to compare. New projects in them are reported with `arrival`."""
        self._folders, self.arrival = list(folders), arrival

    def take_folders(self, most: int) -> list[FolderNode]:
        """Return the next folders to compare.

        Watching and comparing them takes as long as checking `most` projects.
        """
        end = most * _STAMPS_PER_PROJECT
        todo, self._folders = self._folders[:end], self._folders[end:]
        return todo

    def take_projects(self, most: int) -> list[bytes]:
        """Return the next projects to check, up to `most`; none while folders are left."""
        if self._folders:
            return []
        todo, self._projects = self._projects[:most], self._projects[most:]
        return todo


_PROGRESS_EVERY = 512
# With one of these outcomes, the watcher reports no events, so the folder must be polled.
_UNWATCHED = (
    WatchOutcome.LIMIT,
    WatchOutcome.NO_INSTANCE,
    WatchOutcome.UNSUPPORTED,
    WatchOutcome.FAILED,
)

TreeProgressCallback = Callable[[int, int], None]


class TreeObserver(Protocol):
    """The receiver of a tree's reports."""

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        """Handle a folder with a marker. The tree calls this again after each possible change."""

    def remembered(self, path: bytes) -> None:
        """Handle a project in the snapshot of an earlier run. `found` or `lost` follows."""

    def lost(self, path: bytes) -> None:
        """Handle a project that is no longer in the tree, and find out why.

        The tree also reports an unreadable folder as lost, because there may be known projects
        below it.
        """


class ParentTree:
    """The tree of one parent. One thread calls all methods; none raises OSError.

    A mount inside a parent has a tree of its own if discovery looks into it. Then `parent` has the
    settings of that parent with the path of the mount, `origin` is that parent, and `place` is the
    mount as its walk would have reached it.
    """

    def __init__(
        self,
        parent: Parent,
        rules: WalkRules,
        watcher: Watcher,
        observer: TreeObserver,
        place: WalkFolder | None = None,
        origin: Parent | None = None,
    ) -> None:
        self.parent = parent
        self.origin = origin or parent
        self.place = place or WalkFolder(parent.path, parent.depth, ProposalScope.OPEN, top=True)
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
        """Use these rules from now on. A node stays until its folder is listed again."""
        self.rules = rules
        self._walker = Walker(rules, self._watch)

    def set_watcher(self, watcher: Watcher) -> None:
        """Use this watcher. Drop the tree if it has another watcher now."""
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
    def is_mount(self) -> bool:
        """Whether this is the tree of a mount inside a parent."""
        return not self.place.top

    def place_of_mount(self, path: bytes) -> WalkFolder | None:
        """Return a mount as the walk of this tree would reach it, or None if it would not."""
        folder = self._tree.get(os.path.dirname(path))
        if folder is None or folder.role is not _FRONTIER:
            return None
        names, name = list_names(folder.place.path), os.path.basename(path)
        return self._walker.place_of_mount(folder.place, folder.zone, name, names)

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
        """Build the tree from the snapshot given to `use_snapshot`, or else by a walk."""
        self.abandon()
        self.limit = None
        self._top_id = self._id_now()
        top = self.place
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

    def has_deferred_work(self) -> bool:
        """Return whether deferred work waits for `catch_up`."""
        return bool(self._deferred)

    def catch_up(self, most: int) -> None:
        """Do deferred work for about as long as checking `most` projects takes.

        First watch and compare the top folders of repositories, then check the projects of the
        snapshot.
        """
        tops = [each for each in self._deferred.take_folders(most) if self._tree.has(each)]
        for top in tops:
            self._watcher.watch(top.place.path, WatchPurpose.MARKERS)
        self._relist_those(changed_folders(tops), self._deferred.arrival)
        for path in self._deferred.take_projects(most):
            folder = self._tree.get(path)
            if folder is not None and folder.project is not None:
                self._observer.found(path, folder.project, Arrival.FOUND)

    def _restore(self, snapshot: TreeSnapshot, top: WalkFolder) -> None:
        folders = self._tree.restore(snapshot, top)
        for folder in folders:
            path = folder.place.path
            if folder.role is _FRONTIER:
                # Watch before comparing any stamp, so that a change in between causes an event.
                self._watch(path)
                self._watch_members(path, folder.project)
            if folder.project is not None:
                self._deferred.add_project(path)
                self._observer.remembered(path)
        self._refresh_all(Arrival.FOUND)

    def abandon(self) -> None:
        """Drop the whole tree, and report each of its projects as lost."""
        self._deferred.clear()
        if self._tree.top is not None:
            self._drop(self._tree.top)
            self._tree = FolderTree()

    def mark_unresponsive(self) -> None:
        """Drop the tree because its file system does not respond. `explore` builds it again."""
        self.abandon()
        self.limit = WatchOutcome.UNRESPONSIVE

    def is_current(self) -> bool:
        """Return whether the tree was built from the folder that is at the parent's path now.

        It is also False if that folder could not be read: no event reports it if the parent was
        mounted since then.
        """
        return self.coverage is not ScanCoverage.NONE and self._id_now() == self._top_id

    def is_built_from(self, path: bytes) -> bool:
        """Return whether the tree was built from the folder that is at `path` now."""
        return self._top_id is not None and self._id_now(path) == self._top_id

    def _id_now(self, path: bytes | None = None) -> tuple[int, ...] | None:
        """Return the inode and device of the parent's folder, or None if it is out of reach.

        With a `path`, return those of that folder.
        """
        try:
            stamp = read_stamp(self.parent.path if path is None else path)
        except OSError:
            return None
        return stamp[2:] if stamp is not None else None

    def entry_changed(self, path: bytes, name: bytes, *, removed: bool, moved: bool) -> None:
        """Update the tree for the entry `name` of the folder `path`.

        `removed`: the entry was removed, and may have been added again. `moved`: an existing
        folder was renamed to this name.
        """
        folder = self._tree.get(path)
        if folder is None or folder.role is not FolderRole.FRONTIER:
            return
        child_node = folder.children.get(name)
        if child_node is not None and removed:
            self._drop(child_node)
            child_node = None
        if is_marker(name, self.rules.files) or name in SKIPPED_BESIDE_FILES:
            self._relist_folder(folder, Arrival.CREATED)
            if child_node is not None and self._tree.has(child_node):
                self._refresh(child_node)
            return
        try:
            stamp = read_stamp(child(path, name))
        except OSError:
            self._relist_folder(folder, Arrival.CREATED)
            return
        if child_node is not None:
            self._drop(child_node) if stamp is None else self._refresh(child_node)
        elif stamp is not None:
            place = self._walker.place_of_new(folder.place, folder.zone, name)
            if place is not None:
                how = Arrival.MOVED if moved else Arrival.CREATED
                self._add_walked(place, folder, how, None)

    def relist(self, path: bytes) -> None:
        """List one folder of the tree, even if its stamp is unchanged."""
        folder = self._tree.get(path)
        if folder is not None:
            self._relist_folder(folder, Arrival.CREATED)

    def refresh(self, *, thorough: bool, progress: TreeProgressCallback | None = None) -> None:
        """Compare the tree with the disk.

        With `thorough`, list every folder. Otherwise list only the folders whose stamps changed,
        and defer the top folders of repositories to `catch_up`.
        """
        if (top := self._tree.top) is None:
            return
        if thorough:
            self._deferred.clear()
            self._relist_all(top, progress)
        else:
            self._refresh_all(Arrival.CREATED)

    def sweep(self) -> None:
        """Check the folders without a watch: tops of repositories, and unreadable folders."""
        unwatched = [each for each in self._tree.folders() if each.role is not FolderRole.FRONTIER]
        self._relist_those(changed_folders(unwatched), Arrival.CREATED)

    def _refresh(self, start: FolderNode) -> None:
        """List `start` and the folders below it whose stamps changed."""
        self._relist_those(changed_folders(start.all()), Arrival.CREATED)

    def _refresh_all(self, arrival: Arrival) -> None:
        """List all folders whose stamps changed, but defer the top folders of repositories."""
        folders = self._tree.folders()
        self._deferred.set_folders((f for f in folders if f.role is _LEAF), arrival)
        self._relist_those(changed_folders(f for f in folders if f.role is not _LEAF), arrival)

    def _relist_those(self, folders: Iterable[FolderNode], arrival: Arrival) -> None:
        for folder in folders:
            # If the tree no longer has this node, a new node has replaced it. That one is current.
            if self._tree.has(folder):
                self._relist_folder(folder, arrival)

    def _relist_all(self, start: FolderNode, progress: TreeProgressCallback | None) -> None:
        stack, seen, projects = [start], 0, 0
        while stack:
            folder = stack.pop()
            known = list(folder.children.values())
            self._relist_folder(folder, Arrival.CREATED)
            # A new node is current, as in `_relist_those`.
            stack += (child_node for child_node in known if self._tree.has(child_node))
            if progress is not None:
                seen += 1
                projects += folder.project is not None
                if seen % _PROGRESS_EVERY == 0:
                    progress(seen, projects)

    def _relist_folder(self, folder: FolderNode, arrival: Arrival) -> None:
        before = racy_cutoff_ns()
        was_watched = folder.role is FolderRole.FRONTIER
        if was_watched:
            # Renew the watch: there may be another folder at this path now.
            self._watch(folder.place.path)
        try:
            listing = self._walker.list_folder(folder.place, before, is_watched=was_watched)
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
                # A known child is not new: it was dropped because other rules apply to it now.
                self._add_walked(place, folder, Arrival.FOUND if name in known else arrival, None)

    def _update(
        self, folder: FolderNode, listing: FolderListing, arrival: Arrival, before: int
    ) -> None:
        """Update a node from its listing, and drop children that the listing does not have.

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
            self._watcher.unwatch(path, WatchPurpose.MARKERS)
            self._watch_members(path, listing.kind)
        else:
            folder.role = FolderRole.LEAF
            self._watcher.unwatch(path, WatchPurpose.FRONTIER)
            # The check of the project follows, so it notices what changes before this watch.
            self._watcher.watch(path, WatchPurpose.MARKERS)
            folder.stamp = leaf_stamp(path, before)
        if listing.kind is not None:
            known = was is listing.kind
            self._observer.found(path, listing.kind, Arrival.FOUND if known else arrival)
        elif was is not None:
            self._observer.lost(path)
        if folder.place.skipped and listing.kind is None and folder.stamp is None:
            # It has changed just now, perhaps after it was looked at and before it was watched.
            self._look_for_checkout(folder, arrival)

    def _look_for_checkout(self, folder: FolderNode, arrival: Arrival) -> None:
        if is_checkout(folder.place) and self._tree.has(folder):
            self._relist_folder(folder, arrival)

    def _add_walked(
        self,
        place: WalkFolder,
        fallback: FolderNode | None,
        arrival: Arrival,
        progress: TreeProgressCallback | None,
    ) -> None:
        """Walk a folder that is new to the tree, and add all folders that the walk finds.

        `fallback` is their container if the tree does not have another one.
        """
        before = racy_cutoff_ns()
        scan = self._walker.walk(place, progress)
        for listing in scan.listings:
            folder = self._tree.add(listing.place, fallback)
            self._update(folder, listing, arrival, before)
        for path in scan.unreadable:
            container = self._tree.container_of(path, fallback)
            left = place.levels_left if container is None else container.place.levels_left - 1
            zone = place.zone if container is None else container.zone
            self._tree.hide(
                self._tree.add(WalkFolder(path, left, zone, top=container is None), fallback)
            )

    def _mark_unreadable(self, folder: FolderNode) -> None:
        """Mark a folder as unreadable, and drop everything below it."""
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
            self._watcher.unwatch(each.place.path, WatchPurpose.MARKERS)
            self._watcher.unwatch(each.place.path, WatchPurpose.MEMBERS)
        for each in gone:
            if each.project is not None or each.role is FolderRole.UNREADABLE:
                self._observer.lost(each.place.path)

    def _watch(self, path: bytes) -> None:
        result = self._watcher.watch(path, WatchPurpose.FRONTIER)
        if result in _UNWATCHED:
            self.limit = result

    def _watch_members(self, path: bytes, project: ProjectKind | None) -> None:
        """Watch the files that may list the members of a project, if members are proposed."""
        if self.rules.nested is not NestedPolicy.MEMBERS:
            return
        if project is None:
            self._watcher.unwatch(path, WatchPurpose.MEMBERS)
        else:
            self._watcher.watch(path, WatchPurpose.MEMBERS)
