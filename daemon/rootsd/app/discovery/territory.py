"""The inside of one parent as a tree of folders, kept equal to the disk.

A folder is on the frontier (in no project: listed and watched), or a leaf (a repository: its
inside is not ours), or unreadable. Whatever is told, a folder is looked at and the tree made to
agree; events, sweeps and scans all end in `_agree`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Protocol

from rootsd.app.discovery.behind import Behind
from rootsd.app.discovery.candidate import Arrival
from rootsd.app.discovery.folders import Folder, Role, changed, stamp_of_leaf
from rootsd.app.discovery.tree import Tree
from rootsd.core.model import ProjectKind
from rootsd.core.parents import Coverage, Parent
from rootsd.host.disk.index import KeptTree, powers
from rootsd.host.disk.markers import SKIPPED_BESIDE_A_PROJECT_FILE, Rules, child, is_marker
from rootsd.host.disk.walk import Listing, Place, Walker, Zone, settled_before, stamp_of
from rootsd.host.watch.events import Purpose, Watched, Watcher

_PROGRESS_EVERY = 512
# Whoever is answered so has to look for himself.
_UNWATCHED = (Watched.LIMIT, Watched.NO_INSTANCE, Watched.UNSUPPORTED, Watched.FAILED)

ProgressSink = Callable[[int, int], None]


class Sink(Protocol):
    """Who is told what the tree finds."""

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        """A folder is a project, by its marker; said again whenever it may have changed."""

    def remembered(self, path: bytes) -> None:
        """A tree of an earlier life had a project there; `found` or `lost` follows."""

    def lost(self, path: bytes) -> None:
        """The tree has no project there any more, or no unreadable folder, below which some may be
        known; why is for the sink to find out."""


class Territory:
    """One parent's tree. One thread calls all methods; none raises OSError."""

    def __init__(self, parent: Parent, rules: Rules, watcher: Watcher, sink: Sink) -> None:
        self.parent = parent
        self.limit: Watched | None = None
        self._watcher = watcher
        self._sink = sink
        self._tree = Tree()
        self._top_id: tuple[int, ...] | None = None
        self._behind = Behind()
        self.changes = 0
        self._memory: KeptTree | None = None
        self.set_rules(rules)

    def set_rules(self, rules: Rules) -> None:
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
    def coverage(self) -> Coverage:
        """How much of the parent can be read."""
        return self._tree.coverage

    def count_projects(self) -> int:
        """How many projects the tree has, whole or not."""
        return self._tree.count_projects()

    def has_project(self, path: bytes) -> bool:
        """Whether the folder at `path` is a project of this tree."""
        return self._tree.has_project(path)

    def explore(self, arrival: Arrival, progress: ProgressSink | None = None) -> None:
        """Build the tree from nothing, or from the one given to `remember`."""
        self.abandon()
        self.limit = None
        self._top_id = self._id_now()
        top = Place(self.parent.path, self.parent.depth, Zone.OPEN, top=True)
        memory, self._memory = self._memory, None
        there = self._top_id is not None
        if there and memory is not None and memory.signature == self._signature():
            self._plant(memory, top)
        else:
            self._graft(top, None, arrival, progress)

    def remember(self, memory: KeptTree | None) -> None:
        """Start the next exploration from there: only what moved since is listed."""
        self._memory = memory

    def kept(self) -> KeptTree | None:
        """The tree, to be remembered in a later life; None if there is none."""
        top = self._tree.top
        return top.kept(self._signature()) if top is not None else None

    def _signature(self) -> bytes:
        return b"\0".join((powers(), self.rules.signature()))

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

    def _plant(self, memory: KeptTree, top: Place) -> None:
        folders = self._tree.plant(memory, top)
        for folder in folders:
            path = folder.place.path
            if folder.role is Role.FRONTIER:
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
            self._tree = Tree()

    def silence(self) -> None:
        """Its file system does not answer: nothing below can be told, until it is explored."""
        self.abandon()
        self.limit = Watched.SILENT

    def is_current(self) -> bool:
        """Whether the folder at the parent's path is the one that the tree was built from, and
        could be read: that one which is mounted there can be again, nothing tells."""
        return self.coverage is not Coverage.NONE and self._id_now() == self._top_id

    def _id_now(self) -> tuple[int, ...] | None:
        """Inode and device of the parent's folder; None if it is out of reach."""
        try:
            stamp = stamp_of(self.parent.path)
        except OSError:
            return None
        return stamp[2:] if stamp is not None else None

    def entry_changed(self, path: bytes, name: bytes, *, left: bool, moved: bool) -> None:
        """Look at the entry `name` of the folder `path`; `left` if it went, perhaps to return."""
        folder = self._tree.get(path)
        if folder is None or folder.role is not Role.FRONTIER:
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
            stamp = stamp_of(child(path, name))
        except OSError:
            self._relist(folder, Arrival.MADE)
            return
        if kid is not None:
            self._drop(kid) if stamp is None else self._refresh(kid)
        elif stamp is not None and self._reaches(folder, name):
            place = Place(child(path, name), folder.place.left - 1, folder.zone)
            self._graft(place, folder, Arrival.MOVED if moved else Arrival.MADE, None)

    def look_at(self, path: bytes) -> None:
        """Look at one folder of the tree, whatever its stamp says."""
        folder = self._tree.get(path)
        if folder is not None:
            self._relist(folder, Arrival.MADE)

    def refresh(self, *, thorough: bool, progress: ProgressSink | None = None) -> None:
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
        unwatched = [each for each in self._tree.folders() if each.role is not Role.FRONTIER]
        self._relist_those(changed(unwatched), Arrival.MADE)

    def _reaches(self, folder: Folder, name: bytes) -> bool:
        if folder.place.left <= 0:
            return False
        return self.rules.enters(folder.place.path, name, self.rules.skip_names)

    def _refresh(self, start: Folder) -> None:
        """List `start` and what is below it where the stamp is not the one it had."""
        self._relist_those(changed(start.all()), Arrival.MADE)

    def _refresh_all(self, arrival: Arrival) -> None:
        """The same of the whole tree, but of the roots of repositories only later."""
        folders = self._tree.folders()
        self._behind.compare((f for f in folders if f.role is Role.LEAF), arrival)
        self._relist_those(changed(f for f in folders if f.role is not Role.LEAF), arrival)

    def _relist_those(self, folders: Iterable[Folder], arrival: Arrival) -> None:
        for folder in folders:
            # Those that are new, or were walked anew by other rules, agree with the disk.
            if self._tree.has(folder):
                self._relist(folder, arrival)

    def _relist_all(self, start: Folder, progress: ProgressSink | None) -> None:
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

    def _relist(self, folder: Folder, arrival: Arrival) -> None:
        before = settled_before()
        was_watched = folder.role is Role.FRONTIER
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
        if folder.role is Role.UNREADABLE:
            arrival = Arrival.FOUND
            self._sink.lost(folder.place.path)
        known = set(folder.kids)
        self._agree(folder, listing, arrival, before)
        for place in listing.below:
            name = os.path.basename(place.path)
            if name not in folder.kids:
                # A kid that was dropped only because other rules hold in it is nothing new.
                self._graft(place, folder, Arrival.FOUND if name in known else arrival, None)

    def _agree(self, folder: Folder, listing: Listing, arrival: Arrival, before: int) -> None:
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
            folder.role = Role.FRONTIER
        else:
            folder.role = Role.LEAF
            self._watcher.unwatch(path, Purpose.FRONTIER)
            folder.stamp = stamp_of_leaf(path, before)
        if listing.kind is not None:
            known = was is listing.kind
            self._sink.found(path, listing.kind, Arrival.FOUND if known else arrival)
        elif was is not None:
            self._sink.lost(path)

    def _graft(
        self, place: Place, above: Folder | None, arrival: Arrival, progress: ProgressSink | None
    ) -> None:
        """Walk a folder that is new to the tree, and take in what is found."""
        before = settled_before()
        scan = self._walker.walk(place, progress)
        for listing in scan.listings:
            folder = self._tree.add(listing.place, above)
            self._agree(folder, listing, arrival, before)
        for path in scan.unreadable:
            holder = self._tree.holder(path, above)
            left = place.left if holder is None else holder.place.left - 1
            zone = place.zone if holder is None else holder.zone
            self._tree.hide(self._tree.add(Place(path, left, zone, top=holder is None), above))

    def _hide(self, folder: Folder) -> None:
        """A folder that cannot be listed: what was in it is out of reach."""
        for kid in list(folder.kids.values()):
            self._drop(kid)
        was = folder.project
        self._tree.hide(folder)
        if was is not None:
            self._sink.lost(folder.place.path)

    def _drop(self, folder: Folder) -> None:
        """Take a folder and all below it out of the tree."""
        self.changes += 1
        gone = self._tree.remove(folder)
        for each in gone:
            self._watcher.unwatch(each.place.path, Purpose.FRONTIER)
        for each in gone:
            if each.project is not None or each.role is Role.UNREADABLE:
                self._sink.lost(each.place.path)

    def _arm(self, path: bytes) -> None:
        result = self._watcher.watch(path, Purpose.FRONTIER)
        if result in _UNWATCHED:
            self.limit = result
