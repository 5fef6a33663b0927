"""Know the mounts, nested parents and unresponsive file systems that a tree is built on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from rootsd.core.model import Parent
from rootsd.core.paths import contains
from rootsd.discovery.candidates import Arrival
from rootsd.discovery.parent_tree import ParentTree, TreeProgressCallback
from rootsd.disk.hung_mounts import HungMountDetector
from rootsd.disk.markers import BUILT_IN_PROJECT_FILES, ProjectFiles, WalkRules
from rootsd.disk.mounts import MountTable, mount_points
from rootsd.watch.events import Watcher
from rootsd.watch.polling import PollingWatcher


class MountContext:
    """What the parents' trees have to be built and walked by. One thread calls all methods.

    `watcher` is the one for file systems that tell of every change.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._polling = PollingWatcher()
        self._mounted = MountTable()
        self._answering = HungMountDetector(self._mounted.remote)
        self._files: dict[bytes, ProjectFiles] = {}
        self._telling = BUILT_IN_PROJECT_FILES
        self._names: frozenset[bytes] = frozenset()

    def close(self) -> None:
        """Give back what is held."""
        self._mounted.close()

    def rules(self, parent: Parent, parents: Iterable[bytes]) -> WalkRules:
        """How `parent` is walked beside the other `parents`, and with what is mounted now."""
        stops = {*parents, *mount_points(self._mounted.now())}
        rules = WalkRules.of(parent, (path for path in stops if contains(parent.path, path)))
        return self._confined(rules, parent)

    def _confined(self, rules: WalkRules, parent: Parent) -> WalkRules:
        """Rules by which no walk leaves the parent's file system: by what is mounted, or by the
        device where the system does not tell that."""
        if self._mounted.now() is not None:
            return rules
        try:
            return replace(rules, device=os.lstat(parent.path).st_dev)
        except OSError:
            return rules

    def heed(self, parents: Iterable[Parent]) -> None:
        """Know what are project files below these parents."""
        parents = tuple(parents)
        self._files = {p.path: ProjectFiles.changed(p.project_files) for p in parents}
        added = (name for p in parents for name in p.project_files if not name.startswith(b"!"))
        self._telling = ProjectFiles.changed(added)
        self.heed_names(self._names)

    def heed_names(self, names: frozenset[bytes]) -> None:
        """Have these told of, too, where they come and go."""
        self._names = names
        self._watcher.set_project_files(replace(self._telling, names=self._telling.names | names))

    def files_at(self, path: bytes) -> ProjectFiles:
        """What is a project file there, by the innermost parent that holds it."""
        holder = max((p for p in self._files if contains(p, path)), key=len, default=b"")
        return self._files.get(holder, BUILT_IN_PROJECT_FILES)

    def watcher_for(self, parent: Parent) -> Watcher:
        """By what to watch the file system that holds `parent` now."""
        mount = self._mounted.holding(parent.path)
        return self._polling if mount is not None and mount.is_remote else self._watcher

    def mounts_moved(self) -> bool:
        """Whether something is mounted elsewhere than it was, of which nobody was told."""
        return self._mounted.has_moved()

    def answers(self, path: bytes) -> bool:
        """Whether who looks at `path` will get an answer."""
        return self._answering.answers(path)

    def stands(self, territory: ParentTree) -> bool:
        """Whether the tree can be compared with the disk; else it has to be built anew."""
        return self.answers(territory.parent.path) and territory.is_current()

    def build(self, territory: ParentTree, progress: TreeProgressCallback | None = None) -> None:
        """Explore a parent, as what it lies on now demands."""
        if not self.answers(territory.parent.path):
            territory.silence()
            return
        territory.set_watcher(self.watcher_for(territory.parent))
        territory.set_rules(self._confined(territory.rules, territory.parent))
        territory.explore(Arrival.FOUND, progress)

    def set_stops(self, territory: ParentTree, parents: Iterable[bytes]) -> None:
        """Walk a parent by what is mounted now, and look where that makes a difference."""
        rules = self.rules(territory.parent, parents)
        changed = rules.stops ^ territory.rules.stops
        territory.set_rules(rules)
        if changed and self.answers(territory.parent.path):
            for folder in {os.path.dirname(path) for path in changed}:
                territory.look_at(folder)
