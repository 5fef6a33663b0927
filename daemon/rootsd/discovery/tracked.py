"""Track known paths outside the trees: reports sent, orphans, missing roots, path watches.

What discovery has told about each path, so that nothing is told twice.

Projects that are known though no parent's tree holds them: looked at one by one.

Approved roots that are gone: what comes to lie at their paths is looked at.

It may be the root itself, or something else that takes its place, by which the approval lapses. A
tree tells of neither a link nor a folder without a marker; and of what no parent holds, no watch
is left once it is gone.

Watches what no tree holds: the folders above the parents, and the approved roots themselves.

A folder is not told when one above it is moved, and a parent that is missing can only be seen to
return from the nearest folder above it that lives.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from rootsd.core.inputs import (
    Observation,
    ProjectGone,
    ProjectObserved,
    ProjectUnreachable,
    ProjectUnsafe,
)
from rootsd.core.model import Identity, IncompleteReason, LapseReason, Project, ProjectKind
from rootsd.core.paths import ancestors, base_name
from rootsd.discovery.mount_context import MountContext
from rootsd.discovery.parent_tree import ParentTrees
from rootsd.disk.identity import PathAbsence, classify_absence, identify
from rootsd.disk.markers import BUILT_IN_PROJECT_FILES, ProjectFiles, repository_kind
from rootsd.disk.reader import list_names
from rootsd.disk.safety import FolderSafety
from rootsd.vcs.probe import observe_vanished
from rootsd.watch.events import Watcher, WatchOutcome, WatchPurpose


@dataclass(slots=True)
class ReportCounts:
    """How many paths were new, gone or changed since it was last taken."""

    new: int = 0
    gone: int = 0
    changed: int = 0


class _ReportedState(NamedTuple):
    """How a project was seen to stand; who it is, is kept apart. Most stand alike."""

    kind: ProjectKind
    incomplete: IncompleteReason | None
    main_checkout: bytes | None
    named: bool
    proposed: bool
    hazards: tuple[LapseReason, ...]


class ReportCache:
    """Collects observations to be handed out, and remembers the last of each path."""

    def __init__(self, surroundings: FolderSafety) -> None:
        self._surroundings = surroundings
        # For a sighting `_seen` has the rest of it.
        self._reported: dict[bytes, Observation | _ReportedState] = {}
        self._stands: dict[_ReportedState, _ReportedState] = {}
        self._seen: dict[bytes, Identity | None] = {}
        self._outbox: list[Observation] = []
        self._tally = ReportCounts()
        self._safe: set[bytes] = set()

    def __contains__(self, path: bytes) -> bool:
        """Whether somebody was told that a project is at `path`, or knew it before."""
        return path in self._seen

    def know(self, projects: Iterable[Project]) -> None:
        """These were told in an earlier life; what they are now is yet to be said."""
        for project in projects:
            if project.observed.kind is not ProjectKind.URI:
                self._seen[project.path] = project.observed.identity
                self.unsay(project.path)

    def identity(self, path: bytes) -> Identity | None:
        """The identity of what was last seen at `path`."""
        return self._seen.get(path)

    def as_held(self, path: bytes, identity: Identity) -> Identity:
        """An identity just read, as the object that is held of `path` already where it is equal.

        The catalog has that one as well: 200 B for each project.
        """
        held = self._seen.get(path)
        return held if held == identity else identity

    def filesystem(self, path: bytes) -> bytes | None:
        """The file system that a project was last seen on."""
        identity = self._seen.get(path)
        return identity.filesystem if identity is not None else None

    def tell(self, observation: Observation) -> None:
        """Hand an observation out, unless it was the last thing said of its path.

        A sighting in a hazardous place is followed by the hazard. Nobody is told that a path which
        they never heard of is gone.
        """
        path, known = observation.path, observation.path in self._seen
        if isinstance(observation, ProjectObserved):
            hazards = self._hazards(path)
            told: tuple[Observation, ...] = (observation, *hazards)
            report: Observation | _ReportedState = self._stand(observation, hazards)
            is_same = self._seen.get(path) == observation.identity
        else:
            told, report, is_same = (observation,), observation, True
        if is_same and self._reported.get(path) == report:
            return
        if known or isinstance(observation, ProjectObserved):
            self._outbox += told
            self._count(observation, known=known)
        self._reported[path] = report
        if isinstance(observation, ProjectGone):
            self.forget(path)
        elif isinstance(observation, ProjectObserved):
            self._seen[path] = observation.identity

    def _stand(self, seen: ProjectObserved, hazards: tuple[ProjectUnsafe, ...]) -> _ReportedState:
        reasons = tuple(hazard.reason for hazard in hazards)
        stand = _ReportedState(
            seen.kind, seen.incomplete, seen.main_checkout, seen.named, seen.proposed, reasons
        )
        # 160 B for each project; those with a main checkout of their own are few.
        return stand if stand.main_checkout else self._stands.setdefault(stand, stand)

    def unsay(self, path: bytes) -> None:
        """Others know better by now: the next thing said of it is handed out in any case."""
        self._reported.pop(path, None)

    def forget(self, path: bytes) -> None:
        """No project is known there, as if nobody had ever been told of one."""
        self._reported.pop(path, None)
        self._seen.pop(path, None)

    def take(self) -> tuple[Observation, ...]:
        """What is to be handed out since the last call, in order."""
        taken, self._outbox = tuple(self._outbox), []
        # What was judged safe holds for one batch only.
        self._safe.clear()
        return taken

    def take_tally(self) -> ReportCounts:
        """The counts since the last call."""
        taken, self._tally = self._tally, ReportCounts()
        return taken

    def _hazards(self, path: bytes) -> tuple[ProjectUnsafe, ...]:
        try:
            hazard = self._surroundings.hazard(path, self._safe)
        except OSError:
            return ()
        return () if hazard is None else (ProjectUnsafe(path, hazard.reason),)

    def _count(self, now: Observation, *, known: bool) -> None:
        if isinstance(now, ProjectGone | ProjectUnreachable):
            self._tally.gone += 1
        elif known:
            self._tally.changed += 1
        else:
            self._tally.new += 1


class Orphans:
    """`look` probes a folder, `files_at` tells what is a project file there, `known` what a folder
    was when it was told of. Nothing is reported here: the observations are handed back."""

    def __init__(
        self,
        look: Callable[[bytes], Observation],
        files_at: Callable[[bytes], ProjectFiles] = lambda _: BUILT_IN_PROJECT_FILES,
        known: Callable[[bytes], Identity | None] = lambda _: None,
    ) -> None:
        self._look = look
        self._files_at = files_at
        self._known = known
        self._all: set[bytes] = set()
        # A folder without a marker is a project only as long as somebody calls it one.
        self._named: set[bytes] = set()
        # Projects and hidden folders that were lost: what is known below may be gone with them.
        self._uncovered: set[bytes] = set()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._all)

    def know(self, paths: Iterable[bytes]) -> None:
        """These are known from an earlier life; a tree may hold them yet."""
        self._all.update(paths)

    def name(self, paths: Iterable[bytes]) -> None:
        """Somebody called these folders projects, marker or not."""
        named = set(paths)
        self._all |= named
        self._named |= named

    def as_named(self, seen: Observation) -> Observation:
        """What was seen, with whether it is a project because somebody called it one."""
        if isinstance(seen, ProjectObserved) and seen.path in self._named:
            return replace(seen, named=True)
        return seen

    def held(self, path: bytes) -> None:
        """A tree had it in an earlier life, by its marker, and will say what it is now."""
        self.found(path)

    def found(self, path: bytes) -> None:
        """A tree holds it, by its marker."""
        self._all.discard(path)
        self._named.discard(path)

    def lost(self, path: bytes) -> None:
        """No tree holds it any more."""
        self._all.add(path)

    def uncover(self, path: bytes) -> None:
        """What lies below it is not what it was: a project, or a folder nobody could look into."""
        self._uncovered.add(path)

    def forget(self, path: bytes) -> None:
        """It is gone."""
        self._all.discard(path)
        self._named.discard(path)

    def look_at_all(self) -> list[Observation]:
        """What each of them is now."""
        return self.look_at(self._all)

    def look_below_the_lost(self) -> list[Observation]:
        """What became of those that lay below what was lost since the last call."""
        uncovered, self._uncovered = self._uncovered, set()
        if not uncovered:
            return []
        return self.look_at(p for p in self._all if not uncovered.isdisjoint(ancestors(p)))

    def look_at(self, paths: Iterable[bytes]) -> list[Observation]:
        """What each of these is now."""
        return [self._seen(path) for path in sorted(paths)]

    def _seen(self, path: bytes) -> Observation:
        seen = self._look(path)
        if not isinstance(seen, ProjectObserved) or path in self._named:
            return seen
        if not _is_marked(path, self._files_at(path)):
            return _vanished_as(path, self._known(path), seen.identity)
        return seen


def classify_loss(
    path: bytes,
    within: bytes | None,
    known: Identity | None,
    files: ProjectFiles = BUILT_IN_PROJECT_FILES,
) -> ProjectGone | ProjectUnreachable | None:
    """Why a tree that held a project holds it no more; None if it is there, held by another one.

    `known` is what it was; `within` is as for `absence`; `files` are the project files there.
    Raises nothing.
    """
    filesystem = known.filesystem if known is not None else None
    away = classify_absence(path, within, filesystem)
    if away is not None:
        return observe_vanished(path) if away is PathAbsence.GONE else ProjectUnreachable(path)
    try:
        identity = identify(path)
    except OSError:
        return ProjectUnreachable(path)
    if filesystem not in (None, identity.filesystem):
        return ProjectUnreachable(path)
    replaced = known is not None and not known.same_as(identity)
    return _vanished_as(path, known, identity) if replaced or not _is_marked(path, files) else None


def _vanished_as(path: bytes, known: Identity | None, now: Identity | None) -> ProjectGone:
    """The end of the project that was `known`, at whose path a folder `now` lies that is none, or
    another one."""
    if known is None or now is None:
        return ProjectGone(path)
    if not known.same_as(now):
        return ProjectGone(path, LapseReason.REPLACED)
    return ProjectGone(path, None if known.keeps_git(now) else LapseReason.RETARGETED)


def _is_marked(path: bytes, files: ProjectFiles) -> bool:
    names = list_names(path)
    return repository_kind(names) is not None or files.any_in(names)


class MissingRoots:
    """What a tree holds is left to it. Nothing is reported here: the observations are handed
    back."""

    def __init__(
        self, told: ReportCache, strays: Orphans, terrain: MountContext, territories: ParentTrees
    ) -> None:
        self._told = told
        self._strays = strays
        self._terrain = terrain
        self._territories = territories
        self._all: Mapping[bytes, Project] = MappingProxyType({})

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._all)

    def expect(self, projects: Mapping[bytes, Project]) -> list[Observation]:
        """Await these, by path, from now on; what is to be said of those that came already."""
        fresh = projects.keys() - self._all.keys()
        self._all = projects
        self._terrain.heed_names(_names_along(projects))
        return self._look_at(fresh)

    def look_at_all(self) -> list[Observation]:
        """What came to lie at their paths."""
        return self._look_at(self._all)

    def look_below(self, changed: Iterable[bytes]) -> list[Observation]:
        """The same of those that lie at or below a path where something changed."""
        if not self._all:
            return []
        changed = set(changed)
        return self._look_at(
            path for path in self._all if not changed.isdisjoint((path, *ancestors(path)))
        )

    def _look_at(self, paths: Iterable[bytes]) -> list[Observation]:
        come = [path for path in paths if self._has_come(path)]
        self._told.know(self._all[path] for path in come)
        self._strays.know(come)
        self._strays.name(path for path in come if self._all[path].observed.named)
        seen = self._strays.look_at(come)
        for path in (each.path for each in seen if each == ProjectGone(each.path)):
            self._told.forget(path)  # it is not what was awaited, and no other one: still gone
            self._strays.forget(path)
        return [each for each in seen if each != ProjectGone(each.path)]

    def _has_come(self, path: bytes) -> bool:
        if self._territories.hold(path) or not self._terrain.answers(path):
            return False
        return os.path.lexists(path)


def _names_along(paths: Iterable[bytes]) -> frozenset[bytes]:
    """The names of the folders at these paths and above: a link may come in the place of each."""
    return frozenset(base_name(on) for path in paths for on in (path, *ancestors(path)))


_PathWatch = tuple[bytes, WatchPurpose]


class PathWatches:
    """The watches that belong to paths rather than to folders: set anew when one moves.

    `roots` are the approved roots; whoever gave them changes them no more.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._parents: frozenset[_PathWatch] = frozenset()
        self.roots: AbstractSet[bytes] = frozenset()

    def set_parents(self, parents: Iterable[bytes]) -> None:
        """Guard these parents, and watch each path anew: another folder may be there by now."""
        parents = tuple(parents)
        before: frozenset[_PathWatch] | None = None
        # What came before the watch on the folder above it was not told.
        while (guards := self._watch_all(parents)) != before:
            for path, purpose in self._parents - guards:
                if purpose is not WatchPurpose.ROOT or path not in self.roots:
                    self._watcher.unwatch(path, purpose)
            self._parents = before = guards

    def _watch_all(self, parents: Iterable[bytes]) -> frozenset[_PathWatch]:
        """Watch the parents and what is above them: the folder above one that is missing, or
        unreadable, has to tell of it."""
        guards: set[_PathWatch] = set()
        for parent in parents:
            purpose = WatchPurpose.ROOT
            for path in (parent, *ancestors(parent)):
                guard = (path, purpose)
                if guard in guards or self._has_watched(path, purpose):
                    guards.add(guard)
                    purpose = WatchPurpose.ROOT
                else:
                    purpose = WatchPurpose.ABOVE
        return frozenset(guards)

    def _has_watched(self, path: bytes, purpose: WatchPurpose) -> bool:
        """False where no watch can be: one that is just being removed may still be seen."""
        if not _is_folder(path) or not os.access(path, os.R_OK):
            return False
        return self._watcher.watch(path, purpose) is not WatchOutcome.GONE

    def set_roots(self, roots: AbstractSet[bytes]) -> None:
        """Watch these folders for what happens to themselves."""
        guarded = {path for path, purpose in self._parents if purpose is WatchPurpose.ROOT}
        for path in self.roots - roots - guarded:
            self._watcher.unwatch(path, WatchPurpose.ROOT)
        for path in roots - self.roots:
            self._watcher.watch(path, WatchPurpose.ROOT)
        self.roots = roots

    def renew(self, path: bytes) -> None:
        """What is at `path` may be another folder now: watch that one instead."""
        purposes = {purpose for guarded, purpose in self._parents if guarded == path}
        if path in self.roots:
            purposes.add(WatchPurpose.ROOT)
        for purpose in purposes:
            self._watcher.watch(path, purpose)


def can_watch_for_return(parent: bytes) -> bool:
    """Whether the folder in which a missing parent would return can be watched: one that may be
    searched and not read has names that only who asks for them sees."""
    nearest = next(filter(_is_folder, ancestors(parent)), b"/")
    return os.access(nearest, os.R_OK)


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
