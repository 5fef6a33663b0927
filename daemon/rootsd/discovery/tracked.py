"""Keep one record for each path that discovery has reported or must recheck.

The trees (`rootsd.discovery.parent_tree`) know which folders are projects. They do not know what
was reported, and they have no folders outside of the parents. `TrackedPaths` does. Its record for
a path answers three questions:

* What was reported? The record has the identity that the receiver of the observations knows, and
  the last report about the path. So discovery reports nothing twice, and never reports a path as
  gone that it did not report before.
* Is the path an orphan? An orphan is a known project that no tree holds: it is outside of all
  parents, or below another project, or a person named a folder without a marker. No watch covers
  it. So the engine rechecks orphans about once a minute, and when a project above them is lost.
* Is it a missing root, that is, an approved root that is gone? The root may return. Something else
  may also appear at its path, and then the approval lapses. A tree reports neither a symlink nor a
  folder without a marker, so the engine checks the paths of missing roots itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from rootsd.core.inputs import (
    Observation,
    ProjectGone,
    ProjectObserved,
    ProjectUnsafe,
)
from rootsd.core.model import Identity, LapseReason, Project, ProjectKind
from rootsd.core.paths import ancestors
from rootsd.disk.safety import FolderSafety

_ReportedState = tuple[ProjectObserved, tuple[LapseReason, ...]]
"""A reported project, and why it is unsafe.

The path is empty and the identity None, since these two differ between projects. Most projects are
equal in the rest and share one object.
"""


class _TrackedPath(Struct):
    """Everything known about one path.

    * `is_known`: the receiver knows a project here; `identity`: the identity that it knows.
    * `last_report`: the last report about the path. If it is None, the next report is sent even if
      it says nothing new.
    * `is_orphan`: no tree holds the project.
    * `is_named`: a person named this folder, so it is a project even without a marker.
    """

    is_known: bool = False
    identity: Identity | None = None
    last_report: Observation | _ReportedState | None = None
    is_orphan: bool = False
    is_named: bool = False


class TrackedPaths:
    """The records of all paths, and the observations to report, which `take` returns.

    One thread calls all methods.
    """

    def __init__(self, safety: FolderSafety) -> None:
        self._safety = safety
        self._records: dict[bytes, _TrackedPath] = {}
        self._missing_roots: Mapping[bytes, Project] = MappingProxyType({})
        # Lost projects and unreadable folders. Orphans below them may have changed.
        self._lost: set[bytes] = set()
        self._states: dict[_ReportedState, _ReportedState] = {}
        self._outbox: list[Observation] = []
        self._safe: set[bytes] = set()

    # Reports

    def __contains__(self, path: bytes) -> bool:
        """Whether the receiver knows a project at `path`."""
        record = self._records.get(path)
        return record is not None and record.is_known

    def load(self, projects: Iterable[Project]) -> None:
        """Add projects that the receiver knows from an earlier run.

        They are orphans until a tree finds them. The next report about each of them is sent even
        if it says nothing new.
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
        """Return the stored identity of `path` if it equals `identity`, else `identity`.

        The catalog has the same object. Sharing it saves 200 bytes for each project.
        """
        held = self.identity(path)
        return held if held == identity else identity

    def filesystem(self, path: bytes) -> bytes | None:
        """Return the id of the file system on which the project was last seen, or None."""
        identity = self.identity(path)
        return identity.filesystem if identity is not None else None

    def report(self, observation: Observation) -> None:
        """Add an observation to the outbox, unless it repeats the last report about its path.

        If the folder is unsafe, add the hazard after the observation. Do not report a path as gone
        that the receiver does not know. Forget a project that is gone.
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
        # A check for safety is valid for one batch only.
        self._safe.clear()
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
        """Mark `path` as a project that a tree found by its marker."""
        record = self._records.get(path)
        if record is not None:
            record.is_orphan = record.is_named = False

    def add_lost(self, path: bytes) -> None:
        """Note that a project or an unreadable folder was lost."""
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
        """Replace the missing roots, and return the new ones.

        The caller never changes `projects`.
        """
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
        state = replace(seen, path=b"", identity=None), reasons
        # Sharing saves 160 bytes for each project. States with a main checkout are rarely equal.
        return state if seen.main_checkout else self._states.setdefault(state, state)

    def _hazards(self, path: bytes) -> tuple[ProjectUnsafe, ...]:
        try:
            hazard = self._safety.hazard(path, self._safe)
        except OSError:
            return ()
        return () if hazard is None else (ProjectUnsafe(path, hazard.reason),)
