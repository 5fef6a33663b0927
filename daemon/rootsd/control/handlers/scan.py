"""Handle a requested scan, and report how it changed the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

from anyio import to_thread

from rootsd.control.items import dropped_project_items, project_items
from rootsd.control.references import canonical_path
from rootsd.control.routes import ProgressSink, RequestContext, Route
from rootsd.core.catalog import Catalog
from rootsd.core.errors import UnknownProject
from rootsd.core.inputs import ProjectObserved
from rootsd.core.labels import safe_label
from rootsd.core.model import Parent, Presence, Project
from rootsd.core.paths import contains
from rootsd.state.ledger import Ledger
from rootsd.wire.daemon import ParentStatus, ScanRequest, ScanResponse


@dataclass(frozen=True, slots=True)
class ScanStats:
    """What one scan went through, and the projects that were not seen to be whole yet."""

    folders: int
    seconds: float
    being_made: frozenset[bytes]


class DiscoveryControl(Protocol):
    """Discovery, as requests need it."""

    def parents(self) -> Sequence[Parent]:
        """The parents in force."""

    def parent_status(self, catalog: Catalog) -> list[ParentStatus]:
        """How each parent stands."""

    def watches(self) -> int:
        """How many watches the kernel keeps for discovery."""

    def degraded(self) -> list[str]:
        """What discovery cannot do as it should, a sentence each."""

    async def scan(self, parent: bytes | None, progress: ProgressSink | None) -> ScanStats:
        """Scan now, and return when the catalog holds every project that the scan found."""

    async def propose(self, path: bytes) -> None:
        """Look at one folder and take it into the catalog. Raises RootsdError."""

    async def foresee(self, path: bytes) -> ProjectObserved:
        """What `propose` would see; nothing is taken in. Raises as `propose` does."""

    async def follow(self, mains: Sequence[bytes]) -> None:
        """Have the worktrees of these repositories in the catalog, as they are now."""


@dataclass(frozen=True, slots=True)
class ScanHandlers:
    """Answers `ScanOrder`. `real_path` is as for `rootsd.control.selection`."""

    ledger: Ledger
    surveyor: DiscoveryControl
    real_path: Callable[[str, str], bytes]

    def entries(self) -> Iterable[Route[Any]]:
        """What is answered here; a scan finds, and decides nothing."""
        return (Route(ScanRequest, self.scan, lambda _: None),)

    async def scan(self, order: ScanRequest, call: RequestContext) -> ScanResponse:
        """Scan, and compare with what was known before. Raises UnknownProject."""
        parent = None
        if order.parent is not None:
            parent = await to_thread.run_sync(canonical_path, self.real_path, order.parent, "/")
            if all(known.path != parent for known in self.surveyor.parents()):
                shown = safe_label(order.parent, limit=None)
                raise UnknownProject(f"{shown} is no parent", "rootsd parent ls")
        before = self.ledger.catalog
        cost = await self.surveyor.scan(parent, call.progress)
        found = _CatalogDiff(before, self.ledger.catalog, parent or b"/")
        after, parents = found.after, self.surveyor.parents()
        return ScanResponse(
            revision=self.ledger.revision,
            new=project_items(after, found.new(), parents),
            gone=[
                *project_items(after, found.missing(), parents),
                *dropped_project_items(before, found.dropped(), parents),
            ],
            changed=project_items(after, found.changed(), parents),
            projects=len(after.projects),
            folders=cost.folders,
            seconds=round(cost.seconds, 3),
            being_made=len(cost.being_made - after.projects.keys()),
            warnings=[],
        )


@dataclass(frozen=True, slots=True)
class _CatalogDiff:
    """What a scan of `parent` made of a catalog; each project is in one list at most."""

    before: Catalog
    after: Catalog
    parent: bytes

    def new(self) -> list[Project]:
        """What was not known before."""
        return self._of(self.after, self.after.projects.keys() - self.before.projects.keys())

    def dropped(self) -> list[Project]:
        """What is gone, and nothing was decided about it; as it was before."""
        return self._of(self.before, self.before.projects.keys() - self.after.projects.keys())

    def missing(self) -> list[Project]:
        """What is gone, and stays known for what was decided about it."""
        return [project for project in self._other() if _is_missing(project)]

    def changed(self) -> list[Project]:
        """What else differs."""
        return [project for project in self._other() if not _is_missing(project)]

    def _other(self) -> list[Project]:
        both = self.before.projects.keys() & self.after.projects.keys()
        return [
            project
            for project in self._of(self.after, both)
            if project is not (old := self.before.projects[project.path]) and project != old
        ]

    def _of(self, catalog: Catalog, paths: AbstractSet[bytes]) -> list[Project]:
        return [catalog.projects[path] for path in sorted(paths) if contains(self.parent, path)]


def _is_missing(project: Project) -> bool:
    return project.observed.presence is Presence.MISSING
