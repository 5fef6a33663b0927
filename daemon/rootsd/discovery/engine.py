"""Hold all state of discovery, and turn each batch of file events into observations.

Discovery maintains one list: the folders on the disk that are projects, with their states. It does
not trust events, because an event may be late, duplicated, lost, or about a folder that has moved.
An event only names a folder to check, and every path through this module ends in a check of the
disk.

An event passes through the packages in one direction:

1. watch. The watcher reads the kernel's events and posts them to the queue of the discovery
   thread (`rootsd.discovery.service`).
2. discovery. The thread gathers the queued events into a batch and calls
   `DiscoveryEngine.handle`. `EventBatch` merges the events about one folder or entry. Then the
   engine passes them to the parts of discovery:

   * a tree (`parent_tree`) lists the changed folder, and reports the projects that it found or
     lost
   * `candidates` checks a found project, and follows it if it is still being created
   * `worktrees` reads the links from a repository to its worktrees
   * the engine itself rechecks orphans and missing roots (`tracked`)

   Each result becomes an observation. `tracked` drops observations that repeat an earlier one.
   `take` returns the others.
3. state. The daemon moves the observations to the event loop, and passes them to the ledger in
   batches (`Ledger.apply_events`). The ledger updates the catalog and the published set.
4. mcp. Each session waits for a newer revision of the published set and notifies its client.

Two requests go in the other direction. When the published set changes, the daemon passes the roots
to `set_roots`, and discovery watches each of them. It also passes the pending checkouts whose Git
directories an approval includes, because programs behind the wall use them. When an answer finds a
root out of reach, the daemon passes its path to `recheck`, and discovery rechecks the root until
it is back.

The engine has no thread and no queue. The service calls it from one thread, so it needs no locks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import Parent, Project, ProjectKind
from rootsd.core.paths import ancestors, base_name, contains
from rootsd.discovery.candidate import Arrival, CandidateResult
from rootsd.discovery.candidates import Candidates
from rootsd.discovery.departures import Departures
from rootsd.discovery.event_batch import EventBatch
from rootsd.discovery.losses import classify_loss, require_marker
from rootsd.discovery.mount_context import MountContext
from rootsd.discovery.parent_tree import ParentTree, TreeProgressCallback
from rootsd.discovery.parent_trees import ParentTrees
from rootsd.discovery.path_watches import PathWatches
from rootsd.discovery.tracked import TrackedPaths
from rootsd.discovery.worktrees import WorktreeTracker
from rootsd.disk.markers import child
from rootsd.disk.mounts import process_mounts
from rootsd.disk.safety import FolderSafety
from rootsd.disk.walk import WalkFolder
from rootsd.processes.activity import FindFoldersInUse
from rootsd.vcs.probe import probe
from rootsd.watch.events import EventOverflow, FileEvent, Watcher


class DiscoveryEngine:
    """All state of discovery. `take` returns the observations to report."""

    def __init__(
        self,
        watcher: Watcher,
        safety: FolderSafety,
        find_in_use: FindFoldersInUse,
        monotonic: Callable[[], float],
        find_tools: FindFoldersInUse,
    ) -> None:
        self._watcher = watcher
        self._mounts = MountContext(watcher, process_mounts(), safety.may_be_root)
        self._tracked = TrackedPaths(safety)
        self._candidates = Candidates(
            watcher, find_in_use, monotonic, self._mounts.responds, find_tools
        )
        self._departures = Departures(find_in_use, monotonic)
        self._path_watches = PathWatches(watcher)
        self._worktrees = WorktreeTracker(watcher)
        self._trees = ParentTrees()
        # The paths that `_relist` is listing now. It does not list one of them again.
        self._relisted: set[bytes] = set()
        # Projects that a tree dropped although they still exist. `handle` rechecks them.
        self._dropped: set[bytes] = set()
        self.unexplored: set[bytes] = set()
        """The parents that `explore` has yet to build. Their projects only seem to be lost."""
        # The state of the trees for which `_follow_mounts` has nothing left to do.
        self._mounts_followed: object = None

    # Queries

    @property
    def trees(self) -> Sequence[ParentTree]:
        """The parents' trees."""
        return tuple(self._trees.values())

    @property
    def candidates(self) -> Candidates:
        """The projects that are being created."""
        return self._candidates

    def has_anything(self) -> bool:
        """Whether `sweep` has anything to check."""
        return bool(self._trees) or self._tracked.has_work()

    def unsettled(self, parent: bytes) -> frozenset[bytes]:
        """Return the projects below `parent` that will be reported within a few seconds.

        They only wait for their quiet periods. A project in which a process works, such as a
        running clone, is not included.
        """
        return frozenset(
            path
            for path in self._candidates.awaiting_quiet()
            if contains(parent, path) and path not in self._tracked
        )

    def outside_worktrees(self) -> tuple[bytes, ...]:
        """Return the worktrees of followed repositories that lie in no parent."""
        linked = {
            path for main in self._worktrees.mains() for path in self._worktrees.linked(main)
        }
        return tuple(sorted(path for path in linked if self._trees.parent_of(path) is None))

    def take(self) -> tuple[Observation, ...]:
        """Return the new observations since the last call, in order."""
        self._follow_mounts()
        if not self.unexplored:
            self._recheck_lost()
        return self._tracked.take()

    def _recheck_lost(self) -> None:
        for path in self._worktrees.take_unlinked():
            if self._trees.hold(path):
                self._trees.relist(path)
            elif path in self._tracked:
                self._recheck_orphans((path,))
        self._recheck_orphans(self._tracked.take_orphans_below_lost())

    # Requests

    def load(self, known: Mapping[bytes, Project]) -> None:
        """Start with the projects in the store. `recheck_orphans` checks each of them."""
        self._tracked.load(known.values())

    def set_parents(self, parents: Iterable[Parent]) -> list[ParentTree]:
        """Use these parents, and return the trees of new or changed parents.

        The caller must pass each returned tree to `explore`. The projects below a removed parent
        stay known, as orphans.
        """
        wanted = {parent.path: parent for parent in parents}
        self._mounts.set_parents(wanted.values())
        self._trees.drop_others(wanted)
        fresh = [
            ParentTree(parent, self._mounts.rules(parent, wanted), self._watcher, self)
            for path, parent in wanted.items()
            if path not in self._trees
        ]
        for tree in self._trees.values():
            # A walk stops at other parents inside its parent, and these may have changed.
            self._mounts.set_stops(tree, wanted)
        self._trees |= {tree.parent.path: tree for tree in fresh}
        self.unexplored = {tree.parent.path for tree in fresh}
        return fresh

    def explore(self, tree: ParentTree, progress: TreeProgressCallback | None = None) -> None:
        """Build the tree of one parent."""
        self._mounts.build(tree, progress)
        self.unexplored.discard(tree.parent.path)
        self._watch_parents_and_refresh()

    def set_roots(self, paths: AbstractSet[bytes], missing: Mapping[bytes, Project]) -> None:
        """Watch each approved root in `paths`, and each checkout whose Git directory one includes.

        The watches report a change of its permissions, its removal, its move, and its first
        worktree. `missing` has the approved roots that are gone. From now on, the engine checks
        whether they return.
        """
        self._path_watches.set_roots(paths)
        self._worktrees.set_roots(paths)
        self._mounts.set_extra_names(_names_along(missing))
        self._check_missing_roots(self._tracked.set_missing_roots(missing))

    def rescan(self, tree: ParentTree, progress: TreeProgressCallback | None = None) -> None:
        """List every folder of a parent again, even those with unchanged stamps."""
        if self._mounts.is_current(tree):
            tree.refresh(thorough=True, progress=progress)
        else:
            self.explore(tree, progress)

    def refresh(self, tree: ParentTree) -> None:
        """List the folders of a parent whose stamps changed."""
        if self._mounts.is_current(tree):
            tree.refresh(thorough=False)
        else:
            self._mounts.build(tree)

    def probe(self, path: bytes) -> Observation:
        """Check and report a folder that a person named, and track it from now on."""
        if not self._trees.hold(path):
            self._tracked.add_named(path)
        observation = self._probe(path)
        self._report(observation)
        return observation

    def release(self, paths: Iterable[bytes]) -> None:
        """Stop tracking the folders that a person named, and no longer wants to see listed.

        A repository may still link to one of them.
        """
        for path in paths:
            if self._tracked.is_named(path):
                self._tracked.forget(path)
                if self._worktrees.links_to(path):
                    self._report(self._probe(path))

    def scan_worktrees(self, mains: Iterable[bytes]) -> None:
        """Find the worktrees that the repositories `mains` link to now."""
        for main in mains:
            if main in self._tracked:
                self._follow_links(main)
        self.tick()

    def recheck(self, paths: Iterable[bytes]) -> None:
        """Check these paths and report them even if nothing changed.

        The daemon calls this for roots that it could not verify before an answer.
        """
        known = [path for path in paths if path in self._tracked]
        for path in known:
            self._tracked.report_again(path)
            self._report(self._probe(path))
        # If a path is out of reach, it is rechecked with the orphans until it is back.
        for path in known:
            if path in self._tracked:
                self._tracked.add_orphan(path)

    def recheck_orphans(self) -> None:
        """Check all orphans and missing roots."""
        self._dropped.clear()
        self._recheck_orphans(self._tracked.orphans())
        self._check_missing_roots(self._tracked.missing_roots)

    def sweep(self) -> None:
        """Check everything that no watch covers."""
        for tree in self._trees.values():
            if self._mounts.is_current(tree):
                tree.sweep()
            else:
                self.explore(tree)
        for path in self._path_watches.roots:
            # A root may get its Git directory later, and watches may run out.
            self._follow_links(path)
        self._settle(self._candidates.sweep())
        self.recheck_orphans()

    # Events

    def handle(self, events: Iterable[FileEvent | EventOverflow]) -> None:
        """Handle a batch of events. Many events about one entry cost as much as one event."""
        batch = EventBatch.of(events, self._trees.are_below)
        for event in batch.progress:
            self._settle(self._candidates.handle(event))
        for folder, _ in batch.entries:
            self._candidates.restart_quiet_time(folder)
        may_move_mounts = batch.may_bring_mounts or self._mounts.are_below(batch.departed())
        if may_move_mounts and self._mounts.mounts_moved():
            self.mounts_changed()
        if batch.overflow:
            self._handle_overflow()
        for folder in batch.links:
            if (main := self._worktrees.owner(folder)) is not None:
                self._follow_links(main)
                # HEAD may be another branch. Without one, somebody removes the repository.
                if os.path.lexists(child(folder, b"HEAD")):
                    self._report_root_again(main)
        for folder in batch.folders:
            self._folder_itself_changed(folder)
        self._handle_entries(batch)
        changed = (child(*entry) for entry in batch.entries)
        self._check_missing_roots(self._tracked.missing_roots_below(changed))
        dropped, self._dropped = self._dropped, set()
        self._recheck_orphans(
            [path for path in dropped if path in self._tracked and not self._is_proposed(path)]
        )

    def _handle_entries(self, batch: EventBatch) -> None:
        for (folder, name), (removed, moved) in batch.entries.items():
            for tree in self._trees.values():
                tree.entry_changed(folder, name, removed=removed, moved=moved)
        for folder, removed in batch.tops.items():
            self._departures.add(folder) if removed else self._check_top(folder)

    def _handle_overflow(self) -> None:
        """Compare every tree with the disk, because events were lost."""
        # Set the watches first: one of them may have ended, and the event for that may be lost.
        self._watch_parents()
        # Check the candidates before the trees add new ones, which need no second check.
        self._settle(self._candidates.handle_overflow())
        for tree in self._trees.values():
            self.refresh(tree)
        for main in self._worktrees.mains():
            self._follow_links(main)
        self.recheck_orphans()

    def has_deferred_work(self) -> bool:
        """Whether there is deferred work for `catch_up`."""
        return self._candidates.has_deferred_work or bool(self._trees.with_deferred_work())

    def catch_up(self, most: int) -> None:
        """Do deferred work for about as long as checking `most` projects takes."""
        if self._candidates.has_deferred_work:
            self._settle(self._candidates.catch_up(most))
            return
        for tree in self._trees.with_deferred_work():
            if self._mounts.is_current(tree):
                tree.catch_up(most)
            else:
                self.explore(tree)

    def mounts_changed(self) -> None:
        """Handle a mount or unmount on, above, or below a parent."""
        for tree in self._trees.values():
            self._mounts.set_stops(tree, self._trees.configured())
        self._follow_mounts()
        for tree in self.trees:
            if not self._mounts.is_current(tree):
                self.explore(tree)
        self.recheck_orphans()

    def _follow_mounts(self) -> None:
        """Give each mount to look into a tree of its own, and drop the trees of all others.

        A tree can only reach a mount if it has the folder around it. So repeat this for mounts
        inside mounts.
        """
        if not self._trees.have_mounts():
            return
        while self._mounts_followed != (state := self._trees.state()):
            self._mounts_followed = state
            reachable = {
                path: found
                for path, found in self._trees.reachable_mounts().items()
                if not self._leads_back(path)
            }
            trees = (tree for tree in self.trees if tree.is_mount)
            gone = [tree for tree in trees if not _is_reached(tree, reachable)]
            for tree in gone:
                self._trees.pop(tree.parent.path).abandon()
            for path in sorted(reachable.keys() - self._trees.keys()):
                self._add_mount(path, *reachable[path])

    def _leads_back(self, path: bytes) -> bool:
        """Return whether a bind mount at `path` is the parent, or the mount, that it lies in."""
        if not self._mounts.responds(path):
            return False
        return any(
            tree.is_built_from(path)
            for outer, tree in self._trees.items()
            if outer != path and contains(outer, path)
        )

    def _add_mount(self, path: bytes, place: WalkFolder, outer: ParentTree) -> None:
        parent = replace(outer.parent, path=path)
        rules = self._mounts.rules(parent, self._trees.configured())
        tree = ParentTree(parent, rules, self._watcher, self, place, outer.origin)
        self._trees[path] = tree
        self.explore(tree)

    def tick(self) -> None:
        """Check the candidates and the repositories without a marker that are due."""
        self._settle(self._candidates.due())
        for path in self._departures.take_due():
            self._check_top(path)

    def next_due(self) -> float | None:
        """Return when to call `tick`, on the monotonic clock, or None if nothing is pending."""
        due = (self._candidates.next_due(), self._departures.next_due())
        return min((when for when in due if when is not None), default=None)

    def _check_top(self, folder: bytes) -> None:
        """Find out which kind of project a folder is in which a marker came or went."""
        self._trees.relist(folder)
        if folder in self._tracked and not self._trees.hold(folder):
            self._recheck_orphans((folder,))

    def _folder_itself_changed(self, folder: bytes) -> None:
        self._path_watches.renew(folder)
        if self._trees.are_below(folder):
            # Set the watches first. The trees then find changes that happened without a watch.
            self._watch_parents()
            for tree in self._trees.values():
                self.refresh(tree)
            self.recheck_orphans()
        self._trees.relist(folder)
        self._report_root_again(folder)

    def _report_root_again(self, path: bytes) -> None:
        """Report an approved root, also if only files in it changed: tools may run them."""
        if path in self._path_watches.roots:
            self._tracked.report_again(path)
            self._report(self._probe(path))

    def _watch_parents_and_refresh(self) -> None:
        """Watch the parents and the folders above. Then refresh parents that changed meanwhile."""
        self._watch_parents()
        for tree in self._trees.values():
            if not self._mounts.is_current(tree):
                self.refresh(tree)

    def _watch_parents(self) -> None:
        self._path_watches.set_parents(filter(self._mounts.responds, self._trees))

    # Reports of the trees (rootsd.discovery.parent_tree.TreeObserver)

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        """Handle a project that a tree has at `path`."""
        self._tracked.adopt_by_tree(path)
        self._consider(path, kind, arrival)

    def remembered(self, path: bytes) -> None:
        """Handle a project that a tree had in an earlier run. `found` or `lost` follows."""
        self._tracked.adopt_by_tree(path)

    def lost(self, path: bytes) -> None:
        """Handle a project that a tree no longer has, and find out whether it is gone."""
        self._candidates.drop(path)
        self._departures.drop(path)
        self._tracked.add_lost(path)
        if path not in self._tracked:
            return
        self._worktrees.drop(path)
        self._tracked.add_orphan(path)
        if not self._mounts.responds(path):
            self._report(ProjectUnreachable(path))
            return
        files, known = self._mounts.files_at(path), self._tracked.identity(path)
        loss = classify_loss(path, self._trees.parent_of(path), known, files)
        if loss is not None:
            self._report(loss)
        else:  # it is inside another project now, or the parent's rules exclude it
            self._dropped.add(path)

    # Checks and reports

    def _consider(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        settled = self._candidates.consider(path, kind, arrival, self._tracked.identity(path))
        if settled is not None:
            self._settle([settled])

    def _settle(self, results: Iterable[CandidateResult]) -> None:
        for result in results:
            if result.kind is None:
                self._relist(result.path)
                continue
            if result.identity is None:
                # It is gone, or its `.git` file leads to a place that is out of reach. No watch
                # reports when that place is back.
                self._tracked.add_orphan(result.path)
                self._report(self._probe(result.path))
                continue
            self._report(
                ProjectObserved(
                    result.path,
                    result.kind,
                    self._tracked.reuse_identity(result.path, result.identity),
                    result.incomplete,
                    result.main_checkout,
                )
            )
            main = self._worktrees.repository_to_follow(result)
            if main is not None and main in self._tracked:
                self._follow_links(main)

    def _follow_links(self, main: bytes) -> None:
        """Find the worktrees of a repository, including those that no tree holds."""
        if not self._mounts.responds(main):
            return
        before = self._worktrees.linked(main)
        worktrees = self._worktrees.read_links(main)
        self._settle(self._candidates.check(worktrees))
        for path in sorted(worktrees - before):
            # git has linked it again, after it was reported without its repository.
            if path in self._tracked:
                self._report(self._probe(path))
        for path in sorted(filter(self._trees.lack, worktrees)):
            self._tracked.add_orphan(path)
            self._consider(path, ProjectKind.GIT, Arrival.FOUND)

    def _relist(self, path: bytes) -> None:
        """List a folder again because it is no project although its listing had a marker.

        If the second listing has a marker too, the marker is invalid or out of reach.
        """
        if path not in self._relisted:
            self._relisted.add(path)
            self._trees.relist(path)
            self._relisted.discard(path)
        elif os.access(path, os.X_OK):
            self._report(ProjectGone(path))
        else:
            self._report(ProjectUnreachable(path))

    def _recheck_orphans(self, paths: Iterable[bytes]) -> None:
        for observation in [self._probe_orphan(path) for path in sorted(paths)]:
            self._report(observation)

    def _check_missing_roots(self, paths: Iterable[bytes]) -> None:
        """Check whether something exists at the paths of missing roots, and report it."""
        missing = self._tracked.missing_roots
        taken = [path for path in paths if self._is_taken(path)]
        self._tracked.load(missing[path] for path in taken)
        for observation in [self._probe_orphan(path) for path in sorted(taken)]:
            if observation == ProjectGone(observation.path):
                # The folder there is neither the root nor another project: the root is still gone.
                self._tracked.forget(observation.path)
            else:
                self._report(observation)

    def _is_taken(self, path: bytes) -> bool:
        """Whether something exists at `path` outside the trees."""
        if self._trees.hold(path) or not self._mounts.responds(path):
            return False
        return os.path.lexists(path)

    def _report(self, observation: Observation) -> None:
        path = observation.path
        self._tracked.report(observation)
        if isinstance(observation, ProjectObserved) and path in self._path_watches.roots:
            self._path_watches.renew(path)

    def _probe(self, path: bytes) -> Observation:
        if not self._mounts.responds(path):
            return ProjectUnreachable(path)
        seen = probe(path, self._trees.parent_of(path), self._tracked.filesystem(path))
        if not isinstance(seen, ProjectObserved):
            return seen
        if self._tracked.is_named(path):
            return replace(seen, named=True)
        return seen if seen.named or self._is_proposed(path) else replace(seen, proposed=False)

    def _probe_orphan(self, path: bytes) -> Observation:
        """Check a folder that no tree holds. It needs a marker, unless a person named it."""
        seen = self._probe(path)
        if not isinstance(seen, ProjectObserved) or self._tracked.is_named(path):
            return seen
        return require_marker(seen, self._tracked.identity(path), self._mounts.files_at(path))

    def _is_proposed(self, path: bytes) -> bool:
        """Whether a tree has the folder as a project, or a repository links to it."""
        return self._trees.hold(path) or self._worktrees.links_to(path)


def _is_reached(
    tree: ParentTree, reachable: Mapping[bytes, tuple[WalkFolder, ParentTree]]
) -> bool:
    """Return whether the mount of the tree is still reached at the same place."""
    place, outer = reachable.get(tree.parent.path, (None, None))
    return outer is not None and place == tree.place and outer.origin is tree.origin


def _names_along(paths: Iterable[bytes]) -> frozenset[bytes]:
    """Return the names of these folders and of all folders above them.

    A symlink may appear in the place of any of them.
    """
    return frozenset(base_name(on) for path in paths for on in (path, *ancestors(path)))
