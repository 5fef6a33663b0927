"""Keep everything that discovery knows about a path in one record.

The trees (`rootsd.discovery.parent_tree`) know which folders are projects. They do not know what
the receiver of the observations has heard, and they hold no folder outside a parent. This module
keeps the rest. `TrackedPaths` has one record for each path, which answers three questions.

Was it reported? The record holds the identity that the receiver knows and the last report about
the path. So nothing is reported twice, and a path that was never reported is never reported as
gone.

Is it an orphan? An orphan is a known project that no tree holds: it lies outside every parent, or
below another project, or a person named a folder without a marker. No watch covers an orphan, so
the engine rechecks orphans one by one: about once a minute, and when a project above them is lost.

Is it a missing root? A missing root is an approved root that is gone. The root itself may return,
or something else may take its path, and then the approval lapses. A tree reports neither a symlink
nor a folder without a marker, so the engine looks at these paths itself.

`PathWatches` holds the watches that belong to paths instead of folders: on each parent, on the
folders above it, and on each approved root. The kernel does not notify a folder when a folder
above it moves. A missing parent can only be seen to return from the nearest folder above it that
exists. These watches are not part of the records, because most of them are on folders that are not
projects.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
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
from rootsd.core.paths import ancestors
from rootsd.disk.identity import PathAbsence, classify_absence, identify
from rootsd.disk.markers import BUILT_IN_PROJECT_FILES, ProjectFiles, repository_kind
from rootsd.disk.reader import list_names
from rootsd.disk.safety import FolderSafety
from rootsd.vcs.probe import observe_vanished
from rootsd.watch.events import Watcher, WatchOutcome, WatchPurpose


@dataclass(slots=True)
class ReportCounts:
    """The numbers of paths reported as new, gone or changed."""

    new: int = 0
    gone: int = 0
    changed: int = 0


class _ReportedState(NamedTuple):
    """A reported `ProjectObserved` without its path and identity, which differ for each project.

    Most projects have equal states, so they share one object.
    """

    kind: ProjectKind
    incomplete: IncompleteReason | None
    main_checkout: bytes | None
    named: bool
    proposed: bool
    hazards: tuple[LapseReason, ...]


@dataclass(slots=True)
class _TrackedPath:
    """Everything known about one path.

    `is_known`: the receiver knows a project here. `identity`: the identity that it knows.
    `last_report`: the last report about the path, None to send the next one in any case.
    `is_orphan`: no tree holds the project. `is_named`: a person named this folder, so it is a
    project even without a marker.
    """

    is_known: bool = False
    identity: Identity | None = None
    last_report: Observation | _ReportedState | None = None
    is_orphan: bool = False
    is_named: bool = False


class TrackedPaths:
    """One record for each path that was reported, is an orphan, or is a missing root.

    It collects the observations to report; `take` returns them. It never looks for projects. One
    thread calls all methods.
    """

    def __init__(self, safety: FolderSafety) -> None:
        self._safety = safety
        self._records: dict[bytes, _TrackedPath] = {}
        self._missing_roots: Mapping[bytes, Project] = MappingProxyType({})
        # Lost projects and unreadable folders: an orphan below one of them may have changed.
        self._lost: set[bytes] = set()
        self._states: dict[_ReportedState, _ReportedState] = {}
        self._outbox: list[Observation] = []
        self._counts = ReportCounts()
        self._safe: set[bytes] = set()

    # Reports

    def __contains__(self, path: bytes) -> bool:
        """Whether the receiver knows a project at `path`."""
        record = self._records.get(path)
        return record is not None and record.is_known

    def load(self, projects: Iterable[Project]) -> None:
        """Add projects that the receiver knows from an earlier run, as orphans.

        A tree may turn out to hold them. Their next reports are sent in any case.
        """
        for project in projects:
            observed = project.observed
            if observed.kind is not ProjectKind.URI:
                record = self._record(project.path)
                record.is_known, record.identity = True, observed.identity
                record.last_report = None
                record.is_orphan = True
                record.is_named |= observed.named

    def identity(self, path: bytes) -> Identity | None:
        """Return the identity last reported for `path`."""
        record = self._records.get(path)
        return record.identity if record is not None else None

    def reuse_identity(self, path: bytes, identity: Identity) -> Identity:
        """Return the object already held for `path` if it equals `identity`, else `identity`.

        The catalog shares that object, which saves 200 bytes for each project.
        """
        held = self.identity(path)
        return held if held == identity else identity

    def filesystem(self, path: bytes) -> bytes | None:
        """Return the file system on which the project was last seen."""
        identity = self.identity(path)
        return identity.filesystem if identity is not None else None

    def report(self, observation: Observation) -> None:
        """Add an observation to the outbox, unless it repeats the last report about its path.

        If the project's place is unsafe, the reason follows the observation. A path that the
        receiver does not know is never reported as gone. A project that is gone loses its record.
        """
        path = observation.path
        record = self._record(path)
        reports: tuple[Observation, ...] = (observation,)
        state: Observation | _ReportedState = observation
        is_same = True
        if isinstance(observation, ProjectObserved):
            hazards = self._hazards(path)
            reports = (observation, *hazards)
            state = self._shared_state(observation, hazards)
            is_same = record.is_known and record.identity == observation.identity
        if is_same and record.last_report == state:
            return
        if record.is_known or isinstance(observation, ProjectObserved):
            self._outbox += reports
            self._count(observation, known=record.is_known)
        record.last_report = state
        if isinstance(observation, ProjectGone):
            self.forget(path)
        elif isinstance(observation, ProjectObserved):
            record.is_known, record.identity = True, observation.identity

    def report_again(self, path: bytes) -> None:
        """Send the next report about `path` even if it repeats the last one."""
        if path in self._records:
            self._records[path].last_report = None

    def forget(self, path: bytes) -> None:
        """Drop everything known about `path`."""
        self._records.pop(path, None)

    def take(self) -> tuple[Observation, ...]:
        """Return the observations added since the last call, in order."""
        taken, self._outbox = tuple(self._outbox), []
        # A folder that was judged safe is safe for one batch only.
        self._safe.clear()
        return taken

    def take_counts(self) -> ReportCounts:
        """Return the counts since the last call."""
        taken, self._counts = self._counts, ReportCounts()
        return taken

    # Orphans

    def has_work(self) -> bool:
        """Whether there are orphans or missing roots to recheck."""
        return bool(self._missing_roots) or any(r.is_orphan for r in self._records.values())

    def orphans(self) -> list[bytes]:
        """Return all orphans."""
        return [path for path, record in self._records.items() if record.is_orphan]

    def add_orphan(self, path: bytes) -> None:
        """Mark `path` as held by no tree."""
        self._record(path).is_orphan = True

    def add_named(self, path: bytes) -> None:
        """Mark `path` as an orphan that a person named: it needs no marker to be a project."""
        record = self._record(path)
        record.is_orphan = record.is_named = True

    def is_named(self, path: bytes) -> bool:
        """Whether a person named this folder, and no tree holds it."""
        record = self._records.get(path)
        return record is not None and record.is_named

    def adopt_by_tree(self, path: bytes) -> None:
        """Mark `path` as held by a tree, which knows it by its marker."""
        record = self._records.get(path)
        if record is not None:
            record.is_orphan = record.is_named = False

    def add_lost(self, path: bytes) -> None:
        """Note that a project or unreadable folder was lost: recheck the orphans below it."""
        self._lost.add(path)

    def take_orphans_below_lost(self) -> list[bytes]:
        """Return the orphans below the paths passed to `add_lost` since the last call."""
        lost, self._lost = self._lost, set()
        if not lost:
            return []
        return [path for path in self.orphans() if not lost.isdisjoint(ancestors(path))]

    # Missing roots

    @property
    def missing_roots(self) -> Mapping[bytes, Project]:
        """The approved roots that are gone, by path."""
        return self._missing_roots

    def set_missing_roots(self, projects: Mapping[bytes, Project]) -> AbstractSet[bytes]:
        """Replace the missing roots, and return the new paths. The caller never changes the
        mapping."""
        fresh = projects.keys() - self._missing_roots.keys()
        self._missing_roots = projects
        return fresh

    def missing_roots_below(self, changed: Iterable[bytes]) -> list[bytes]:
        """Return the missing roots that lie at or below one of the `changed` paths."""
        if not self._missing_roots:
            return []
        changed = set(changed)
        return [
            path
            for path in self._missing_roots
            if not changed.isdisjoint((path, *ancestors(path)))
        ]

    def _record(self, path: bytes) -> _TrackedPath:
        record = self._records.get(path)
        if record is None:
            record = self._records[path] = _TrackedPath()
        return record

    def _shared_state(
        self, seen: ProjectObserved, hazards: tuple[ProjectUnsafe, ...]
    ) -> _ReportedState:
        reasons = tuple(hazard.reason for hazard in hazards)
        state = _ReportedState(
            seen.kind, seen.incomplete, seen.main_checkout, seen.named, seen.proposed, reasons
        )
        # Sharing saves 160 bytes for each project. The few with a main checkout are not shared.
        return state if state.main_checkout else self._states.setdefault(state, state)

    def _hazards(self, path: bytes) -> tuple[ProjectUnsafe, ...]:
        try:
            hazard = self._safety.hazard(path, self._safe)
        except OSError:
            return ()
        return () if hazard is None else (ProjectUnsafe(path, hazard.reason),)

    def _count(self, now: Observation, *, known: bool) -> None:
        if isinstance(now, ProjectGone | ProjectUnreachable):
            self._counts.gone += 1
        elif known:
            self._counts.changed += 1
        else:
            self._counts.new += 1


def require_marker(
    seen: ProjectObserved, known: Identity | None, files: ProjectFiles = BUILT_IN_PROJECT_FILES
) -> ProjectObserved | ProjectGone:
    """Return `seen` if its folder has a marker, else the end of the project.

    `known` is the identity of the project; `files` are the project files that count there.
    """
    if _has_marker(seen.path, files):
        return seen
    return _end_of(seen.path, known, seen.identity)


def classify_loss(
    path: bytes,
    within: bytes | None,
    known: Identity | None,
    files: ProjectFiles = BUILT_IN_PROJECT_FILES,
) -> ProjectGone | ProjectUnreachable | None:
    """Return why a tree lost the project at `path`, or None if the project is still there.

    It is still there if another project holds it now. `known` is its identity before, `within` is
    the parent, as in `classify_absence`, and `files` are the project files that count there.
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
    return _end_of(path, known, identity) if replaced or not _has_marker(path, files) else None


def _end_of(path: bytes, known: Identity | None, now: Identity | None) -> ProjectGone:
    """Return the end of the project `known`, at whose path the folder `now` lies.

    That folder is another one, or it is no project any more.
    """
    if known is None or now is None:
        return ProjectGone(path)
    if not known.same_as(now):
        return ProjectGone(path, LapseReason.REPLACED)
    return ProjectGone(path, None if known.keeps_git(now) else LapseReason.RETARGETED)


def _has_marker(path: bytes, files: ProjectFiles) -> bool:
    names = list_names(path)
    return repository_kind(names) is not None or files.any_in(names)


_PathWatch = tuple[bytes, WatchPurpose]


class PathWatches:
    """The watches that belong to paths: each is set again when another folder takes the path.

    `roots` are the approved roots. The caller never changes that set.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._parents: frozenset[_PathWatch] = frozenset()
        self.roots: AbstractSet[bytes] = frozenset()

    def set_parents(self, parents: Iterable[bytes]) -> None:
        """Watch these parents and the folders above them, each path again."""
        parents = tuple(parents)
        before: frozenset[_PathWatch] | None = None
        # A folder that came before the watch above it was set caused no event. So repeat until
        # nothing changes.
        while (watches := self._watch_all(parents)) != before:
            for path, purpose in self._parents - watches:
                if purpose is not WatchPurpose.ROOT or path not in self.roots:
                    self._watcher.unwatch(path, purpose)
            self._parents = before = watches

    def _watch_all(self, parents: Iterable[bytes]) -> frozenset[_PathWatch]:
        """Watch the parents and what is above them, and return the watches.

        If a folder is missing or unreadable, the folder above it is watched for its return.
        """
        watches: set[_PathWatch] = set()
        for parent in parents:
            purpose = WatchPurpose.ROOT
            for path in (parent, *ancestors(parent)):
                watch = (path, purpose)
                if watch in watches or self._has_watched(path, purpose):
                    watches.add(watch)
                    purpose = WatchPurpose.ROOT
                else:
                    purpose = WatchPurpose.ABOVE
        return frozenset(watches)

    def _has_watched(self, path: bytes, purpose: WatchPurpose) -> bool:
        """Watch a folder; return False if it cannot be watched.

        A folder that is just being removed may still be visible but not watchable.
        """
        if not _is_folder(path) or not os.access(path, os.R_OK):
            return False
        return self._watcher.watch(path, purpose) is not WatchOutcome.GONE

    def set_roots(self, roots: AbstractSet[bytes]) -> None:
        """Watch these roots for changes to the folders themselves, and no others."""
        parents = {path for path, purpose in self._parents if purpose is WatchPurpose.ROOT}
        for path in self.roots - roots - parents:
            self._watcher.unwatch(path, WatchPurpose.ROOT)
        for path in roots - self.roots:
            self._watcher.watch(path, WatchPurpose.ROOT)
        self.roots = roots

    def renew(self, path: bytes) -> None:
        """Watch the folder that is at `path` now, which may be another one."""
        purposes = {purpose for watched, purpose in self._parents if watched == path}
        if path in self.roots:
            purposes.add(WatchPurpose.ROOT)
        for purpose in purposes:
            self._watcher.watch(path, purpose)


def can_watch_for_return(parent: bytes) -> bool:
    """Whether a watch can report the return of a missing parent.

    It cannot if the nearest existing folder above may be searched but not read: only a program
    that asks for a name there finds it.
    """
    nearest = next(filter(_is_folder, ancestors(parent)), b"/")
    return os.access(nearest, os.R_OK)


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
