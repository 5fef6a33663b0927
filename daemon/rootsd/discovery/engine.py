"""Hold all state of discovery, and turn each batch of file events into observations.

A batch of hints of what happened, sorted by what is to be looked at; many become one.

All of discovery's state, and what follows from each thing that happens.

Holds the parents' trees, the candidates, and what was last reported of each path. Has no thread
and no queue: `rootsd.discovery.service` calls it from one thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import Parent, Project, ProjectKind
from rootsd.core.paths import contains
from rootsd.discovery.candidates import Arrival, CandidateResult, Candidates
from rootsd.discovery.mount_context import MountContext
from rootsd.discovery.parent_tree import ParentTree, ParentTrees, TreeProgressCallback
from rootsd.discovery.tracked import (
    MissingRoots,
    Orphans,
    PathWatches,
    ReportCache,
    ReportCounts,
    classify_loss,
)
from rootsd.discovery.worktrees import WorktreeTracker
from rootsd.disk.markers import child
from rootsd.disk.safety import FolderSafety
from rootsd.system.processes import FindFoldersInUse
from rootsd.vcs.probe import probe
from rootsd.watch.events import EventOverflow, FileEvent, FileEventKind, Watcher, WatchPurpose


@dataclass(slots=True)
class EventBatch:
    """What a batch says, in the order in which it is to be followed up.

    `entries` tells for each folder and name whether it left, and whether a folder came by a rename
    and stayed.
    """

    at_work: list[FileEvent] = field(default_factory=list)
    overflow: bool = False
    links: dict[bytes, None] = field(default_factory=dict)
    folders: dict[bytes, None] = field(default_factory=dict)
    entries: dict[tuple[bytes, bytes], tuple[bool, bool]] = field(default_factory=dict)

    @property
    def of_moves(self) -> bool:
        """Whether a folder may have moved with all that is in it, or one above a parent."""
        told = self.overflow or bool(self.folders)
        return told or any(left or moved for left, moved in self.entries.values())

    @classmethod
    def of(
        cls, batch: Iterable[FileEvent | EventOverflow], leads_to_a_parent: Callable[[bytes], bool]
    ) -> EventBatch:
        """The hints of `batch`; of those above the parents only what leads to one, by its path."""
        hints = cls()
        for item in batch:
            if isinstance(item, EventOverflow):
                hints.overflow = True
            elif item.purpose is not WatchPurpose.ABOVE or leads_to_a_parent(
                child(item.folder, item.name) if item.name else item.folder
            ):
                hints._add(item)
        return hints

    def _add(self, item: FileEvent) -> None:
        match item.purpose:
            case WatchPurpose.AT_WORK:
                self.at_work.append(item)
            case WatchPurpose.LINKS:
                self.links[item.folder] = None
            case WatchPurpose.FRONTIER if item.change is not FileEventKind.ITSELF:
                left, moved = self.entries.get((item.folder, item.name), (False, False))
                went = item.change is FileEventKind.LEFT
                stayed = moved and not went
                self.entries[item.folder, item.name] = (left or went, stayed or item.moved)
            case _:
                self.folders[item.folder] = None


class DiscoveryEngine:
    """Turns what happens into observations; `take` hands them out."""

    def __init__(
        self,
        watcher: Watcher,
        surroundings: FolderSafety,
        worked_on: FindFoldersInUse,
        monotonic: Callable[[], float],
    ) -> None:
        self._watcher = watcher
        self._terrain = MountContext(watcher)
        self._told = ReportCache(surroundings)
        self._candidates = Candidates(watcher, worked_on, monotonic, self._terrain.answers)
        self._guards = PathWatches(watcher)
        self._linked = WorktreeTracker(watcher)
        self._territories = ParentTrees()
        self._strays = Orphans(self._probe, self._terrain.files_at, self._told.identity)
        self._awaited = MissingRoots(self._told, self._strays, self._terrain, self._territories)
        # Those that are looked at a second time, so that there is no third.
        self._doubted: set[bytes] = set()
        # Those that a tree held, and that are still there.
        self._unheld: set[bytes] = set()

    # What is asked

    @property
    def territories(self) -> Sequence[ParentTree]:
        """The parents' trees."""
        return tuple(self._territories.values())

    @property
    def candidates(self) -> Candidates:
        """The projects being made."""
        return self._candidates

    def close(self) -> None:
        """Give back what is held; nothing else is called after that."""
        self._terrain.close()

    def has_anything(self) -> bool:
        """Whether there is anything to sweep."""
        return bool(self._territories or self._strays or self._awaited)

    def unsettled(self, parent: bytes) -> frozenset[bytes]:
        """Return the projects below `parent` that were not reported yet and soon will be.

        A quiet time of a few seconds settles each of them. A project that a process works on, such
        as a running clone, is not among them.
        """
        return frozenset(
            path
            for path in self._candidates.awaiting_quiet()
            if contains(parent, path) and path not in self._told
        )

    def take(self) -> tuple[Observation, ...]:
        """What is to be reported since the last call, in order."""
        for path in self._linked.take_cut_off():
            if self._territories.hold(path):
                self._territories.look_at(path)
            elif path in self._told:
                self._report_all(self._strays.look_at((path,)))
        self._report_all(self._strays.look_below_the_lost())
        return self._told.take()

    def take_tally(self) -> ReportCounts:
        """The counts since the last call."""
        return self._told.take_tally()

    # What is ordered

    def know(self, known: Mapping[bytes, Project]) -> None:
        """Take over the projects of the store; each is looked at by `recheck_strays`."""
        self._told.know(known.values())
        strays = {path: project for path, project in known.items() if path in self._told}
        self._strays.know(strays)
        self._strays.name(path for path, project in strays.items() if project.observed.named)

    def set_parents(self, parents: Iterable[Parent]) -> list[ParentTree]:
        """Use these parents; returns the new or changed ones, which are still to be explored.

        What was found below a parent that is dropped stays known, and is looked at on its own.
        """
        wanted = {parent.path: parent for parent in parents}
        self._terrain.heed(wanted.values())
        self._territories.drop_others(wanted)
        fresh = [
            ParentTree(parent, self._terrain.rules(parent, wanted), self._watcher, self)
            for path, parent in wanted.items()
            if path not in self._territories
        ]
        for territory in self._territories.values():
            # A parent inside another one is that one's business no more, or again.
            self._terrain.set_stops(territory, wanted)
        self._territories |= {territory.parent.path: territory for territory in fresh}
        return fresh

    def explore(self, territory: ParentTree, progress: TreeProgressCallback | None = None) -> None:
        """Build one parent's tree."""
        self._terrain.build(territory, progress)
        self._guard_parents()

    def set_roots(self, paths: AbstractSet[bytes], awaited: Mapping[bytes, Project]) -> None:
        """Watch the approved roots themselves, for lost permission, removal and move, and look out
        for those that are gone, the `awaited`."""
        self._guards.set_roots(paths)
        self._report_all(self._awaited.expect(awaited))

    def rescan(self, territory: ParentTree, progress: TreeProgressCallback | None = None) -> None:
        """Look at every folder of a parent, whatever was told of it."""
        if self._terrain.stands(territory):
            territory.refresh(thorough=True, progress=progress)
        else:
            self.explore(territory, progress)

    def revisit(self, territory: ParentTree) -> None:
        """Look at every folder of a parent whose stamp is not the one it had."""
        if self._terrain.stands(territory):
            territory.refresh(thorough=False)
        else:
            self._terrain.build(territory)

    def probe(self, path: bytes) -> Observation:
        """One folder now; what is seen is also reported, and the folder known from now on."""
        if not self._territories.hold(path):
            self._strays.name((path,))
        observation = self._probe(path)
        self._report(observation)
        return observation

    def follow(self, mains: Iterable[bytes]) -> None:
        """Take in the worktrees that these repositories link to now."""
        for main in mains:
            if main in self._told:
                self._follow_links(main)
        self.tick()

    def doubt(self, paths: Iterable[bytes]) -> None:
        """Somebody could not see these as they were told: look, and say what is seen now."""
        known = [path for path in paths if path in self._told]
        for path in known:
            self._told.unsay(path)
            self._report(self._probe(path))
        # What is out of reach by now is looked at again with them.
        self._strays.know(path for path in known if path in self._told)

    def recheck_strays(self) -> None:
        """Look at what is known though no tree holds it, and for what is gone."""
        self._unheld.clear()
        self._report_all((*self._strays.look_at_all(), *self._awaited.look_at_all()))

    def sweep(self) -> None:
        """Look at what no watch tells of."""
        for territory in self._territories.values():
            if self._terrain.stands(territory):
                territory.sweep()
            else:
                self.explore(territory)
        for path in self._guards.roots:
            # The first worktree of a repository makes the folder that is watched from then on.
            self._follow_links(path)
        self._settle(self._candidates.sweep())
        self.recheck_strays()

    # What happens

    def happened(self, batch: Iterable[FileEvent | EventOverflow]) -> None:
        """Follow up a batch of hints; many about one entry cost no more than one."""
        hints = EventBatch.of(batch, self._territories.are_below)
        for item in hints.at_work:
            self._settle(self._candidates.happened(item))
        for folder, _ in hints.entries:
            self._candidates.disturbed(folder)
        if hints.of_moves and self._terrain.mounts_moved():
            self.mounts_changed()
        if hints.overflow:
            self._all_may_have_changed()
        for folder in hints.links:
            if (main := self._linked.owner(folder)) is not None:
                self._follow_links(main)
        for folder in hints.folders:
            self._itself_changed(folder)
        for (folder, name), (left, moved) in hints.entries.items():
            for territory in self._territories.values():
                territory.entry_changed(folder, name, left=left, moved=moved)
        self._report_all(self._awaited.look_below(child(*entry) for entry in hints.entries))
        unheld, self._unheld = self._unheld, set()
        self._report_all(
            self._strays.look_at(
                path for path in unheld if path in self._told and not self._is_proposed(path)
            )
        )

    def _all_may_have_changed(self) -> None:
        """Events were lost: compare every tree with the disk. Watches first: their ends, too."""
        self._set_guards()
        # Before the trees: what those come upon is watched and looked at from then on.
        self._settle(self._candidates.all_may_have_changed())
        for territory in self._territories.values():
            self.revisit(territory)
        for main in self._linked.mains():
            self._follow_links(main)
        self.recheck_strays()

    def is_behind(self) -> bool:
        """Whether something waits for `catch_up`."""
        return self._candidates.is_behind or bool(self._territories.behind())

    def catch_up(self, most: int) -> None:
        """Look at some of what can wait until the rest was told: as `most` projects take."""
        if self._candidates.is_behind:
            self._settle(self._candidates.catch_up(most))
            return
        for territory in self._territories.behind():
            if self._terrain.stands(territory):
                territory.catch_up(most)
            else:
                self.explore(territory)

    def mounts_changed(self) -> None:
        """Something was mounted or unmounted, perhaps on, above or below a parent."""
        for territory in self._territories.values():
            self._terrain.set_stops(territory, self._territories)
            if not self._terrain.stands(territory):
                self.explore(territory)
        self.recheck_strays()

    def tick(self) -> None:
        """Look at the candidates whose time has come."""
        self._settle(self._candidates.due())

    def _itself_changed(self, folder: bytes) -> None:
        self._guards.renew(folder)
        if self._territories.are_below(folder):
            # Watches first: those that they replace may have had something to tell.
            self._set_guards()
            for territory in self._territories.values():
                self.revisit(territory)
            self.recheck_strays()
        self._territories.look_at(folder)
        if folder in self._guards.roots:
            self._report(self._probe(folder))

    def _guard_parents(self) -> None:
        """Set the watches above the parents; a parent that changed meanwhile is explored."""
        self._set_guards()
        for territory in self._territories.values():
            if not self._terrain.stands(territory):
                self.revisit(territory)

    def _set_guards(self) -> None:
        self._guards.set_parents(filter(self._terrain.answers, self._territories))

    # What the trees tell (rootsd.discovery.parent_tree.TreeObserver)

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        """A tree has a project at `path`."""
        self._strays.found(path)
        self._consider(path, kind, arrival)

    def remembered(self, path: bytes) -> None:
        """A tree has a project at `path` as in an earlier life, and will say what it is now."""
        self._strays.held(path)

    def lost(self, path: bytes) -> None:
        """A tree has no project at `path` any more: find out whether it is gone."""
        self._candidates.drop(path)
        self._strays.uncover(path)
        if path not in self._told:
            return
        self._linked.drop(path)
        self._strays.lost(path)
        if not self._terrain.answers(path):
            self._report(ProjectUnreachable(path))
            return
        files, known = self._terrain.files_at(path), self._told.identity(path)
        became = classify_loss(path, self._territories.parent_of(path), known, files)
        if became is not None:
            self._report(became)
        else:  # another project holds it now, or the parent does not name it any more
            self._unheld.add(path)

    # How it is told

    def _consider(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        settled = self._candidates.consider(path, kind, arrival)
        if settled is not None:
            self._settle([settled])

    def _settle(self, ends: Iterable[CandidateResult]) -> None:
        for end in ends:
            if end.kind is None:
                self._doubt(end.path)
                continue
            if end.identity is None:
                # Gone; or what it leads to is out of reach, which no watch tells the end of.
                self._strays.know((end.path,))
                self._report(self._probe(end.path))
                continue
            identity = self._told.as_held(end.path, end.identity)
            self._report(
                ProjectObserved(end.path, end.kind, identity, end.incomplete, end.main_checkout)
            )
            main = self._linked.told_of_by(end)
            if main is not None and main in self._told:
                self._follow_links(main)

    def _follow_links(self, main: bytes) -> None:
        """Take in the worktrees of a repository, those that no tree holds as well."""
        if not self._terrain.answers(main):
            return
        before = self._linked.trees(main)
        trees = self._linked.look(main)
        self._settle(self._candidates.look_at(trees))
        for path in sorted(trees - before):
            # What was reported without its repository, which git has linked to it again.
            if path in self._told:
                self._report(self._probe(path))
        for path in sorted(filter(self._territories.miss, trees)):
            self._strays.know((path,))
            self._consider(path, ProjectKind.GIT, Arrival.FOUND)

    def _doubt(self, path: bytes) -> None:
        """A marker was listed and is not to be seen: it went, or is none, or is out of reach."""
        if path not in self._doubted:
            self._doubted.add(path)
            self._territories.look_at(path)
            self._doubted.discard(path)
        elif os.access(path, os.X_OK):
            self._report(ProjectGone(path))
        else:
            self._report(ProjectUnreachable(path))

    def _report_all(self, observations: Iterable[Observation]) -> None:
        for observation in observations:
            self._report(observation)

    def _report(self, observation: Observation) -> None:
        path = observation.path
        self._told.tell(observation)
        if isinstance(observation, ProjectGone):
            self._strays.forget(path)
        elif isinstance(observation, ProjectObserved) and path in self._guards.roots:
            self._guards.renew(path)

    # Helpers

    def _probe(self, path: bytes) -> Observation:
        if not self._terrain.answers(path):
            return ProjectUnreachable(path)
        seen = probe(path, self._territories.parent_of(path), self._told.filesystem(path))
        seen = self._strays.as_named(seen)
        if isinstance(seen, ProjectObserved) and not (seen.named or self._is_proposed(path)):
            return replace(seen, proposed=False)
        return seen

    def _is_proposed(self, path: bytes) -> bool:
        """Whether a parent, or a repository that has it as a worktree, proposes what is there."""
        return self._territories.hold(path) or self._linked.leads_to(path)
