"""Decide where a walk stops, which folders to poll, and which file systems to avoid.

`MountContext` knows the mounts and the parents, and applies three rules to the trees:

* A walk stops at each mount point inside its parent, and at each other parent inside it.
* A remote file system does not report changes that other machines make, so discovery polls its
  folders.
* A file system that hangs blocks every call. So discovery does not touch it until it responds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from rootsd.core.exclusion import ExclusionReason
from rootsd.core.model import MountPolicy, Parent
from rootsd.core.paths import contains
from rootsd.discovery.candidate import Arrival
from rootsd.discovery.parent_tree import ParentTree, TreeProgressCallback
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.markers import BUILT_IN_PROJECT_FILES, ProjectFiles, WalkRules
from rootsd.disk.mounts import Mount, MountTable
from rootsd.watch.events import Watcher
from rootsd.watch.polling import PollingWatcher


def walk_rules(
    parent: Parent,
    parents: Iterable[bytes],
    mounted: tuple[Mount, ...] | None,
    may_be_root: Callable[[bytes], bool],
) -> WalkRules:
    """Return the rules to walk `parent`, given the other `parents` and the mounts.

    `may_be_root` tells whether a place can be a root at all, which the home folder cannot.
    """
    parents = tuple(parents)
    stops = {
        mount.point: ExclusionReason.REMOTE_MOUNT if mount.is_remote else ExclusionReason.MOUNT
        for mount in mounted or ()
    }
    stops |= dict.fromkeys(parents, ExclusionReason.PARENT)
    inside = {path: why for path, why in stops.items() if contains(parent.path, path)}
    rules = replace(
        WalkRules.of(parent, inside),
        top_is_project=may_be_root(parent.path),
        crossed=crossed_mounts(parent, mounted).difference(parents),
    )
    return _confined(rules, parent, mounted)


def crossed_mounts(parent: Parent, mounted: Iterable[Mount] | None) -> frozenset[bytes]:
    """Return the mount points inside the parent that its settings let discovery look into."""
    if parent.mounts is MountPolicy.NONE:
        return frozenset()
    # If several mounts share one mount point, the last one hides the others.
    visible = {mount.point: mount for mount in mounted or ()}
    return frozenset(
        mount.point
        for mount in visible.values()
        if mount.point != parent.path and contains(parent.path, mount.point)
        if mount.is_disk and (parent.mounts is MountPolicy.ALL or not mount.is_remote)
    )


def _confined(rules: WalkRules, parent: Parent, mounted: tuple[Mount, ...] | None) -> WalkRules:
    """Return rules that keep a walk on the parent's file system.

    If the system does not list its mount points, the walk compares device numbers.
    """
    if mounted is not None:
        return rules
    try:
        return replace(rules, device=os.lstat(parent.path).st_dev)
    except OSError:
        return rules


class MountContext:
    """The mounts and the settings of the parents. One thread calls all methods.

    `watcher` is the watcher for file systems that report every change, and `table` has the mounts.
    `may_be_root` is that of `walk_rules`.
    """

    def __init__(
        self,
        watcher: Watcher,
        table: MountTable,
        may_be_root: Callable[[bytes], bool],
    ) -> None:
        self._watcher = watcher
        self._may_be_root = may_be_root
        self._polling = PollingWatcher()
        self._mount_table = table
        self._hung_mounts = HungMountDetector(self._mount_table.remote)
        self._files: dict[bytes, ProjectFiles] = {}
        self._watched_files = BUILT_IN_PROJECT_FILES
        self._names: frozenset[bytes] = frozenset()

    def rules(self, parent: Parent, parents: Iterable[bytes]) -> WalkRules:
        """Return the rules to walk `parent`, given the other `parents` and the current mounts."""
        parents, mounted = tuple(parents), self._mount_table.now()
        rules = walk_rules(parent, parents, mounted, self._may_be_root)
        if mounted is not None or parent.mounts is MountPolicy.NONE:
            return rules
        # The system reports no changes of its mounts, but lists them.
        crossed = crossed_mounts(parent, self._mount_table.everything()).difference(parents)
        stops = dict.fromkeys(crossed, ExclusionReason.MOUNT) | {**rules.stops}
        return replace(rules, crossed=crossed, stops=stops)

    def set_parents(self, parents: Iterable[Parent]) -> None:
        """Use the project files of these parents."""
        parents = tuple(parents)
        self._files = {p.path: ProjectFiles.changed(p.project_files) for p in parents}
        added = (name for p in parents for name in p.project_files if not name.startswith(b"!"))
        self._watched_files = ProjectFiles.changed(added)
        self.set_extra_names(self._names)

    def set_extra_names(self, names: frozenset[bytes]) -> None:
        """Make the watcher also report entries with these names."""
        self._names = names
        self._watcher.set_project_files(
            replace(self._watched_files, names=self._watched_files.names | names)
        )

    def files_at(self, path: bytes) -> ProjectFiles:
        """Return the project files that count at `path`: those of the innermost parent."""
        holder = max((p for p in self._files if contains(p, path)), key=len, default=b"")
        return self._files.get(holder, BUILT_IN_PROJECT_FILES)

    def watcher_for(self, parent: Parent) -> Watcher:
        """Return the watcher for the file system that contains `parent` now."""
        mount = self._mount_table.holding(parent.path)
        return self._polling if mount is not None and mount.is_remote else self._watcher

    def are_below(self, paths: Iterable[bytes]) -> bool:
        """Return whether anything was known to be mounted at or below one of `paths`."""
        return self._mount_table.are_below(paths)

    def mounts_moved(self) -> bool:
        """Return whether a mount moved although the system reported nothing."""
        return self._mount_table.has_moved()

    def responds(self, path: bytes) -> bool:
        """Return whether the file system of `path` responds."""
        return self._hung_mounts.responds(path)

    def is_current(self, tree: ParentTree) -> bool:
        """Return whether the tree can be compared with the disk, or must be built again."""
        return self.responds(tree.parent.path) and tree.is_current()

    def build(self, tree: ParentTree, progress: TreeProgressCallback | None = None) -> None:
        """Build the tree of a parent, with the watcher for the parent's current file system."""
        if not self.responds(tree.parent.path):
            tree.mark_unresponsive()
            return
        tree.set_watcher(self.watcher_for(tree.parent))
        tree.set_rules(_confined(tree.rules, tree.parent, self._mount_table.now()))
        tree.explore(Arrival.FOUND, progress)

    def set_stops(self, tree: ParentTree, parents: Iterable[bytes]) -> None:
        """Update where the walk of a parent stops, and list the folders that this affects."""
        rules = self.rules(tree.parent, parents)
        changed = (rules.stops.keys() ^ tree.rules.stops.keys()) | (
            rules.crossed ^ tree.rules.crossed
        )
        tree.set_rules(rules)
        if changed and self.responds(tree.parent.path):
            for folder in {os.path.dirname(path) for path in changed}:
                tree.relist(folder)
