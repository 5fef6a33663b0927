"""Hold all state of discovery, and turn each batch of file events into observations.

Discovery keeps one list correct: the folders on the disk that are projects, with their states.
It trusts no event: an event only says where to look. An event may be late, duplicated, lost, or
about a folder that has moved. The result is still right, because every path through this module
ends in a look at the disk.

How an event travels. It goes through the packages in one direction, and it never returns to a
package that it has left:

1. watch. The watcher reads the kernel's events and posts them to the queue of the discovery
   thread (`rootsd.discovery.service`).
2. discovery. The thread gathers the queued events into a batch and calls
   `DiscoveryEngine.handle`. `EventBatch` merges the events about one folder or entry. The engine
   asks the parts that they concern to look:

   * a tree (`parent_tree`) lists the changed folder and reports projects that it found or lost
   * `candidates` judges a found project, and waits if it is still being made
   * `worktrees` reads the links of a repository to its worktrees
   * the engine itself rechecks orphans and missing roots (`tracked`)

   Each result becomes an observation. `tracked` drops what was reported before. `take` returns the
   rest.
3. state. The daemon moves the observations to the event loop and gives them to the ledger in
   batches (`Ledger.apply_events`). The ledger updates catalog and published set.
4. mcp. Each session waits for a newer revision of the published set, and notifies its client.

Two requests run the other way. They ask discovery to look; they carry no event. When the published
set changes, the daemon passes the roots to `set_roots`, so that each has its own watch. When
an answer finds a root out of reach, the daemon passes its path to `recheck`, so that discovery
watches for its return.

The engine has no thread and no queue. The service calls it from one thread, so it needs no lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import Parent, Project, ProjectKind
from rootsd.core.paths import ancestors, base_name, contains
from rootsd.discovery.candidates import Arrival, CandidateResult, Candidates
from rootsd.discovery.mount_context import MountContext
from rootsd.discovery.parent_tree import ParentTree, ParentTrees, TreeProgressCallback
from rootsd.discovery.tracked import (
    PathWatches,
    ReportCounts,
    TrackedPaths,
    classify_loss,
    require_marker,
)
from rootsd.discovery.worktrees import WorktreeTracker
from rootsd.disk.markers import child
from rootsd.disk.safety import FolderSafety
from rootsd.system.processes import FindFoldersInUse
from rootsd.vcs.probe import probe
from rootsd.watch.events import EventOverflow, FileEvent, FileEventKind, Watcher, WatchPurpose


@dataclass(slots=True)
class EventBatch:
    """The events of one batch, merged and sorted by the part that handles them.

    `entries` says for each folder and name whether the entry left, and whether a folder came
    there by a rename and stayed.
    """

    at_work: list[FileEvent] = field(default_factory=list)
    overflow: bool = False
    links: dict[bytes, None] = field(default_factory=dict)
    folders: dict[bytes, None] = field(default_factory=dict)
    entries: dict[tuple[bytes, bytes], tuple[bool, bool]] = field(default_factory=dict)

    @property
    def may_move_mounts(self) -> bool:
        """Whether a folder may have moved with everything in it, or a folder above a parent."""
        if self.overflow or self.folders:
            return True
        return any(left or moved for left, moved in self.entries.values())

    @classmethod
    def of(
        cls,
        events: Iterable[FileEvent | EventOverflow],
        leads_to_a_parent: Callable[[bytes], bool],
    ) -> EventBatch:
        """Merge `events`. Of those above the parents, keep only the paths that lead to one."""
        batch = cls()
        for event in events:
            if isinstance(event, EventOverflow):
                batch.overflow = True
            elif event.purpose is not WatchPurpose.ABOVE or leads_to_a_parent(
                child(event.folder, event.name) if event.name else event.folder
            ):
                batch._add(event)
        return batch

    def _add(self, event: FileEvent) -> None:
        match event.purpose:
            case WatchPurpose.PROGRESS:
                self.at_work.append(event)
            case WatchPurpose.LINKS:
                self.links[event.folder] = None
            case WatchPurpose.FRONTIER if event.kind is not FileEventKind.SELF:
                left, moved = self.entries.get((event.folder, event.name), (False, False))
                has_left = event.kind is FileEventKind.REMOVED
                stayed = moved and not has_left
                self.entries[event.folder, event.name] = (left or has_left, stayed or event.moved)
            case _:
                self.folders[event.folder] = None


class DiscoveryEngine:
    """All state of discovery. `take` returns the observations to report."""

    def __init__(
        self,
        watcher: Watcher,
        safety: FolderSafety,
        find_in_use: FindFoldersInUse,
        monotonic: Callable[[], float],
    ) -> None:
        self._watcher = watcher
        self._mounts = MountContext(watcher)
        self._tracked = TrackedPaths(safety)
        self._candidates = Candidates(watcher, find_in_use, monotonic, self._mounts.answers)
        self._path_watches = PathWatches(watcher)
        self._worktrees = WorktreeTracker(watcher)
        self._trees = ParentTrees()
        # Paths whose folder is listed a second time: this ends the recursion.
        self._relisted: set[bytes] = set()
        # Projects that a tree dropped though they are still there. `handle` rechecks them.
        self._dropped: set[bytes] = set()

    # Queries

    @property
    def trees(self) -> Sequence[ParentTree]:
        """The parents' trees."""
        return tuple(self._trees.values())

    @property
    def candidates(self) -> Candidates:
        """The projects that are being made."""
        return self._candidates

    def close(self) -> None:
        """Release all resources. Call nothing else after this."""
        self._mounts.close()

    def has_anything(self) -> bool:
        """Whether `sweep` has anything to look at."""
        return bool(self._trees) or self._tracked.has_work()

    def unsettled(self, parent: bytes) -> frozenset[bytes]:
        """Return the projects below `parent` that were not reported yet and soon will be.

        A quiet period of a few seconds settles each of them. A project that a process works on,
        such as a running clone, is not among them.
        """
        return frozenset(
            path
            for path in self._candidates.awaiting_quiet()
            if contains(parent, path) and path not in self._tracked
        )

    def take(self) -> tuple[Observation, ...]:
        """Return the observations to report since the last call, in order."""
        for path in self._worktrees.take_cut_off():
            if self._trees.hold(path):
                self._trees.look_at(path)
            elif path in self._tracked:
                self._recheck_orphans((path,))
        self._recheck_orphans(self._tracked.take_orphans_below_lost())
        return self._tracked.take()

    def take_counts(self) -> ReportCounts:
        """Return how many paths were reported as new, gone or changed since the last call."""
        return self._tracked.take_counts()

    # Requests

    def load(self, known: Mapping[bytes, Project]) -> None:
        """Start with the projects of the store. `recheck_orphans` looks at each of them."""
        self._tracked.load(known.values())

    def set_parents(self, parents: Iterable[Parent]) -> list[ParentTree]:
        """Use these parents, and return the trees of new or changed ones, still to be explored.

        The projects below a parent that is dropped stay known as orphans.
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
            # A tree stops at a parent that lies inside it, and that parent may have come or gone.
            self._mounts.set_stops(tree, wanted)
        self._trees |= {tree.parent.path: tree for tree in fresh}
        return fresh

    def explore(self, tree: ParentTree, progress: TreeProgressCallback | None = None) -> None:
        """Build the tree of one parent."""
        self._mounts.build(tree, progress)
        self._watch_parents_and_refresh()

    def set_roots(self, paths: AbstractSet[bytes], missing: Mapping[bytes, Project]) -> None:
        """Watch each approved root in `paths` for lost permission, removal and move.

        `missing` are the approved roots that are gone. Each is looked for from now on.
        """
        self._path_watches.set_roots(paths)
        self._mounts.set_extra_names(_names_along(missing))
        self._check_missing_roots(self._tracked.set_missing_roots(missing))

    def rescan(self, tree: ParentTree, progress: TreeProgressCallback | None = None) -> None:
        """List every folder of a parent again, even if its stamp is unchanged."""
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
        """Look at one folder that a person named, report it, and track it from now on."""
        if not self._trees.hold(path):
            self._tracked.add_named(path)
        observation = self._probe(path)
        self._report(observation)
        return observation

    def scan_worktrees(self, mains: Iterable[bytes]) -> None:
        """Find the worktrees that these repositories link to now."""
        for main in mains:
            if main in self._tracked:
                self._follow_links(main)
        self.tick()

    def recheck(self, paths: Iterable[bytes]) -> None:
        """Look at these again and report them in any case: an answer could not verify them."""
        known = [path for path in paths if path in self._tracked]
        for path in known:
            self._tracked.report_again(path)
            self._report(self._probe(path))
        # A path that is out of reach now is rechecked with the orphans until it is back.
        for path in known:
            if path in self._tracked:
                self._tracked.add_orphan(path)

    def recheck_orphans(self) -> None:
        """Look at all orphans and missing roots."""
        self._dropped.clear()
        self._recheck_orphans(self._tracked.orphans())
        self._check_missing_roots(self._tracked.missing_roots)

    def sweep(self) -> None:
        """Look at everything that no watch covers."""
        for tree in self._trees.values():
            if self._mounts.is_current(tree):
                tree.sweep()
            else:
                self.explore(tree)
        for path in self._path_watches.roots:
            # The first worktree of a repository creates the folder that is watched from then on.
            self._follow_links(path)
        self._settle(self._candidates.sweep())
        self.recheck_orphans()

    # Events

    def handle(self, events: Iterable[FileEvent | EventOverflow]) -> None:
        """Handle a batch of events. Many events about one entry cost no more than one."""
        batch = EventBatch.of(events, self._trees.are_below)
        for event in batch.at_work:
            self._settle(self._candidates.handle(event))
        for folder, _ in batch.entries:
            self._candidates.restart_quiet_time(folder)
        if batch.may_move_mounts and self._mounts.mounts_moved():
            self.mounts_changed()
        if batch.overflow:
            self._handle_overflow()
        for folder in batch.links:
            if (main := self._worktrees.owner(folder)) is not None:
                self._follow_links(main)
        for folder in batch.folders:
            self._folder_itself_changed(folder)
        for (folder, name), (left, moved) in batch.entries.items():
            for tree in self._trees.values():
                tree.entry_changed(folder, name, left=left, moved=moved)
        changed = (child(*entry) for entry in batch.entries)
        self._check_missing_roots(self._tracked.missing_roots_below(changed))
        dropped, self._dropped = self._dropped, set()
        self._recheck_orphans(
            [path for path in dropped if path in self._tracked and not self._is_proposed(path)]
        )

    def _handle_overflow(self) -> None:
        """Compare every tree with the disk, because events were lost."""
        # Watches first: the lost events may have been about the end of a watch.
        self._watch_parents()
        # Before the trees, which add candidates that need no second look.
        self._settle(self._candidates.handle_overflow())
        for tree in self._trees.values():
            self.refresh(tree)
        for main in self._worktrees.mains():
            self._follow_links(main)
        self.recheck_orphans()

    def is_behind(self) -> bool:
        """Whether deferred work waits for `catch_up`."""
        return self._candidates.is_behind or bool(self._trees.behind())

    def catch_up(self, most: int) -> None:
        """Do as much deferred work as judging `most` projects takes."""
        if self._candidates.is_behind:
            self._settle(self._candidates.catch_up(most))
            return
        for tree in self._trees.behind():
            if self._mounts.is_current(tree):
                tree.catch_up(most)
            else:
                self.explore(tree)

    def mounts_changed(self) -> None:
        """Handle a mount or unmount, which may be on, above or below a parent."""
        for tree in self._trees.values():
            self._mounts.set_stops(tree, self._trees)
            if not self._mounts.is_current(tree):
                self.explore(tree)
        self.recheck_orphans()

    def tick(self) -> None:
        """Look at the candidates that are due."""
        self._settle(self._candidates.due())

    def _folder_itself_changed(self, folder: bytes) -> None:
        self._path_watches.renew(folder)
        if self._trees.are_below(folder):
            # Watches first: events that the replaced watches would have had are lost.
            self._watch_parents()
            for tree in self._trees.values():
                self.refresh(tree)
            self.recheck_orphans()
        self._trees.look_at(folder)
        if folder in self._path_watches.roots:
            self._report(self._probe(folder))

    def _watch_parents_and_refresh(self) -> None:
        """Watch the parents and the folders above; refresh a parent that changed meanwhile."""
        self._watch_parents()
        for tree in self._trees.values():
            if not self._mounts.is_current(tree):
                self.refresh(tree)

    def _watch_parents(self) -> None:
        self._path_watches.set_parents(filter(self._mounts.answers, self._trees))

    # Reports of the trees (rootsd.discovery.parent_tree.TreeObserver)

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        """Handle a project that a tree has at `path`."""
        self._tracked.adopt_by_tree(path)
        self._consider(path, kind, arrival)

    def remembered(self, path: bytes) -> None:
        """Handle a project that a tree had in an earlier run; `found` or `lost` follows."""
        self._tracked.adopt_by_tree(path)

    def lost(self, path: bytes) -> None:
        """Handle a project that a tree no longer has: find out whether it is gone."""
        self._candidates.drop(path)
        self._tracked.add_lost(path)
        if path not in self._tracked:
            return
        self._worktrees.drop(path)
        self._tracked.add_orphan(path)
        if not self._mounts.answers(path):
            self._report(ProjectUnreachable(path))
            return
        files, known = self._mounts.files_at(path), self._tracked.identity(path)
        loss = classify_loss(path, self._trees.parent_of(path), known, files)
        if loss is not None:
            self._report(loss)
        else:  # another project holds it now, or the parent's rules exclude it
            self._dropped.add(path)

    # Judging and reporting

    def _consider(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        settled = self._candidates.consider(path, kind, arrival)
        if settled is not None:
            self._settle([settled])

    def _settle(self, results: Iterable[CandidateResult]) -> None:
        for result in results:
            if result.kind is None:
                self._relist(result.path)
                continue
            if result.identity is None:
                # It is gone. Or its `.git` file leads out of reach, and no watch reports the end
                # of that.
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
        if not self._mounts.answers(main):
            return
        before = self._worktrees.trees(main)
        worktrees = self._worktrees.look(main)
        self._settle(self._candidates.look_at(worktrees))
        for path in sorted(worktrees - before):
            # It was reported without its repository, and git has linked it again.
            if path in self._tracked:
                self._report(self._probe(path))
        for path in sorted(filter(self._trees.miss, worktrees)):
            self._tracked.add_orphan(path)
            self._consider(path, ProjectKind.GIT, Arrival.FOUND)

    def _relist(self, path: bytes) -> None:
        """List a folder again that has no project though its listing had a marker.

        If the second listing does not help, the marker is gone, invalid, or out of reach.
        """
        if path not in self._relisted:
            self._relisted.add(path)
            self._trees.look_at(path)
            self._relisted.discard(path)
        elif os.access(path, os.X_OK):
            self._report(ProjectGone(path))
        else:
            self._report(ProjectUnreachable(path))

    def _recheck_orphans(self, paths: Iterable[bytes]) -> None:
        for observation in [self._probe_orphan(path) for path in sorted(paths)]:
            self._report(observation)

    def _check_missing_roots(self, paths: Iterable[bytes]) -> None:
        """Look whether something now exists at the paths of missing roots, and report it."""
        missing = self._tracked.missing_roots
        taken = [path for path in paths if self._is_taken(path)]
        self._tracked.load(missing[path] for path in taken)
        for observation in [self._probe_orphan(path) for path in sorted(taken)]:
            if observation == ProjectGone(observation.path):
                # Neither the root nor another project took the path: the root is still gone.
                self._tracked.forget(observation.path)
            else:
                self._report(observation)

    def _is_taken(self, path: bytes) -> bool:
        """Whether something exists at `path` outside the trees."""
        if self._trees.hold(path) or not self._mounts.answers(path):
            return False
        return os.path.lexists(path)

    def _report(self, observation: Observation) -> None:
        path = observation.path
        self._tracked.report(observation)
        if isinstance(observation, ProjectObserved) and path in self._path_watches.roots:
            self._path_watches.renew(path)

    def _probe(self, path: bytes) -> Observation:
        if not self._mounts.answers(path):
            return ProjectUnreachable(path)
        seen = probe(path, self._trees.parent_of(path), self._tracked.filesystem(path))
        if not isinstance(seen, ProjectObserved):
            return seen
        if self._tracked.is_named(path):
            return replace(seen, named=True)
        return seen if seen.named or self._is_proposed(path) else replace(seen, proposed=False)

    def _probe_orphan(self, path: bytes) -> Observation:
        """Look at a folder that no tree holds. Unless a person named it, it needs a marker."""
        seen = self._probe(path)
        if not isinstance(seen, ProjectObserved) or self._tracked.is_named(path):
            return seen
        return require_marker(seen, self._tracked.identity(path), self._mounts.files_at(path))

    def _is_proposed(self, path: bytes) -> bool:
        """Whether a parent proposes the folder, or a repository that links to it as a worktree."""
        return self._trees.hold(path) or self._worktrees.leads_to(path)


def _names_along(paths: Iterable[bytes]) -> frozenset[bytes]:
    """Return the names of these folders and of all folders above them.

    A symlink may take the place of each.
    """
    return frozenset(base_name(on) for path in paths for on in (path, *ancestors(path)))
