"""Handle a requested scan, and report how it changed the catalog."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from anyio import to_thread
from msgspec import Struct

from rootsd.control.exclusions import left_out_sentence
from rootsd.control.items import dropped_project_items
from rootsd.control.routes import RequestContext, Route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.catalog import Catalog
from rootsd.core.errors import UnknownProject
from rootsd.core.labels import safe_label
from rootsd.core.model import Presence, Project
from rootsd.core.paths import contains
from rootsd.wire.scans import ScanRequest, ScanResponse


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module. A scan decides nothing, so it is a query."""
    handlers = ScanHandlers(services)
    return (Route(ScanRequest, handlers.scan, lambda _: None),)


class ScanHandlers(Handlers):
    """Handles `ScanRequest`."""

    async def scan(self, order: ScanRequest, call: RequestContext) -> ScanResponse:
        """Scan, and return the changes. Raises UnknownProject if the folder is no parent."""
        parent = None
        if order.parent is not None:
            parent = await to_thread.run_sync(self.canonical, order.parent, "/")
            if all(known.path != parent for known in self.discovery.parents()):
                shown = safe_label(order.parent, limit=None)
                raise UnknownProject(f"{shown} is not a parent", "rootsd parent ls")
        before = self.ledger.catalog
        cost = await self.discovery.scan(parent, call.progress)
        found = _CatalogDiff(before, self.ledger.catalog, parent or b"/")
        after, parents = found.after, self.discovery.parents()
        return ScanResponse(
            revision=self.ledger.revision,
            items=self.items(after, found.new()),
            gone=[
                *self.items(after, found.missing()),
                *dropped_project_items(before, found.dropped(), parents),
            ],
            changed=self.items(after, found.changed()),
            projects=len(after.projects),
            folders=cost.folders,
            seconds=round(cost.seconds, 3),
            being_made=len(cost.being_made - after.projects.keys()),
            left_out=[left_out_sentence(each) for each in await self.discovery.left_out()],
            warnings=[],
        )


class _CatalogDiff(Struct, frozen=True):
    """The changes in the catalog below `parent`. Each project is in one list at most."""

    before: Catalog
    after: Catalog
    parent: bytes

    def new(self) -> list[Project]:
        """Return the projects that are new."""
        return self._of(self.after, self.after.projects.keys() - self.before.projects.keys())

    def dropped(self) -> list[Project]:
        """Return the undecided projects that are gone, as they were before."""
        return self._of(self.before, self.before.projects.keys() - self.after.projects.keys())

    def missing(self) -> list[Project]:
        """Return the decided projects that are gone, which stay in the catalog."""
        return [project for project in self._other() if _is_missing(project)]

    def changed(self) -> list[Project]:
        """Return the other projects that changed."""
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
