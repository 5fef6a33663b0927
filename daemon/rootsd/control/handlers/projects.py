"""Handle requests that list, show, and wait for projects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio
from anyio import lowlevel, to_thread

from rootsd.control.items import (
    project_items,
    shared_git_item,
    worktree_items,
)
from rootsd.control.listing import add_risks, matches_risk, matching_projects, unread_warnings
from rootsd.control.references import is_selected
from rootsd.control.routes import DRY_RUN_ACTOR, Route, query_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.catalog import Catalog
from rootsd.core.encoding import identity_fingerprint
from rootsd.core.errors import OrderRefused
from rootsd.core.inputs import Approve
from rootsd.core.model import Project
from rootsd.vcs.facts import CollectedRisks
from rootsd.wire.guard import MAX_LOG_WAIT_S
from rootsd.wire.projects import (
    NextPendingQuery,
    ProjectItem,
    ProjectListing,
    ProjectsQuery,
    RequestNote,
    RiskReading,
    Selection,
    ShowQuery,
    WaitingItem,
    WaitingResult,
    WorktreeItem,
)

QUICK_PROJECTS = 1_000
ITEMS_PER_TURN = 128
_QUICK_S = 0.8
_THOROUGH_S = 10.0


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = ProjectHandlers(services)
    return (
        query_route(ProjectsQuery, handlers.listing),
        query_route(ShowQuery, handlers.show),
        query_route(NextPendingQuery, handlers.next_pending),
    )


class ProjectHandlers(Handlers):
    """Handles `ProjectsQuery`, `ShowQuery`, and `NextPendingQuery`."""

    async def listing(self, query: ProjectsQuery) -> ProjectListing:
        """Verify the roots, and return the projects that the query means.

        Raises RootsdError if a reference means nothing, or is ambiguous.
        """
        late = 0
        if query.select is Selection.CHANGED:
            late = await self.services.inspector.sweep()
        # Read the revision first. Then a client that waits for a later one misses no change.
        revision = (await self.ledger.current()).revision
        catalog = self.ledger.catalog
        # In a thread, because references are read from the disk, and 20,000 projects take 30 ms.
        matching, chosen = await to_thread.run_sync(
            _choose, catalog, query, self.services.real_path
        )
        risks = await self._risks_of(chosen, query.risks)
        warnings = unread_warnings(chosen, risks, query.risks)
        if late:
            warnings.append(f"approved projects not read in time: {late}; try again")
        if query.risk:
            chosen = [p for p in chosen if matches_risk(risks.get(p.path), query.risk)]
        back = [p for p in chosen if catalog.may_match_origin(p) and catalog.is_pending(p)]
        origins = dict(
            await self.services.reader.origins([p for p in back if p.path not in risks])
        )
        origins |= {path: each.origin for path, each in risks.items() if each.origin}
        items = await self._items(catalog, chosen, origins)
        if query.risks is not RiskReading.NEVER:
            for item, project in zip(items, chosen, strict=True):
                add_risks(item, risks.get(project.path))
        listing = ProjectListing(revision=revision, items=items, warnings=warnings)
        if query.select is Selection.PENDING:
            unpublishable = [p for p in matching if catalog.is_unpublishable(p)]
            incomplete = [p for p in matching if catalog.is_incomplete(p)]
            if query.risk:
                unpublishable, incomplete = [], []
            listing["unpublishable"] = await self._items(catalog, unpublishable, origins)
            listing["incomplete"] = await self._items(catalog, incomplete, origins)
        return listing

    async def _items(
        self,
        catalog: Catalog,
        projects: Sequence[Project],
        origins: Mapping[bytes, str],
    ) -> list[ProjectItem]:
        """Return the items of `projects`. Let other tasks run in between: 20,000 take 0.3 s."""
        items: list[ProjectItem] = []
        parents = self.discovery.parents()
        for start in range(0, len(projects), ITEMS_PER_TURN):
            part = projects[start : start + ITEMS_PER_TURN]
            items += project_items(catalog, part, parents, self.services.note_on, origins)
            await lowlevel.checkpoint()
        return items

    async def _risks_of(
        self, projects: Sequence[Project], reading: RiskReading
    ) -> Mapping[bytes, CollectedRisks]:
        if reading is RiskReading.NEVER:
            return {}
        if reading is RiskReading.THOROUGH:
            return await self.services.reader.risks(projects, _THOROUGH_S)
        if len(projects) > QUICK_PROJECTS:
            return {}
        return await self.services.reader.risks(projects, _QUICK_S)

    async def next_pending(self, query: NextPendingQuery) -> WaitingResult:
        """Wait for pending projects that the client does not know, and return them."""
        known = frozenset(query.known)
        catalog, fresh = self.ledger.catalog, self._has_new_pending(known)
        with anyio.move_on_after(min(query.wait_s, MAX_LOG_WAIT_S)):
            while not fresh:
                catalog = await self.ledger.wait_for_change(catalog)
                fresh = self._has_new_pending(known)
        revision = (await self.ledger.current()).revision
        catalog = self.ledger.catalog
        items = [
            WaitingItem(
                id=project.id,
                identity=identity_fingerprint(project.observed.identity),
                requested=isinstance(self.services.note_on(path), RequestNote),
            )
            for path, project in sorted(catalog.projects.items())
            if project.id not in known
            and (catalog.is_pending(project) or catalog.is_incomplete(project))
        ]
        return WaitingResult(revision=revision, items=items, warnings=[])

    def _has_new_pending(self, known: frozenset[str]) -> bool:
        catalog = self.ledger.catalog
        projects = catalog.projects.values()
        return any(p.id not in known and catalog.is_pending(p) for p in projects)

    async def show(self, query: ShowQuery) -> ProjectListing:
        """Return the projects with their facts, as the disk is now."""
        revision, catalog = self.ledger.revision, self.ledger.catalog
        chosen = await to_thread.run_sync(self.resolver(catalog, query.cwd).all, query.refs)
        seen = await self.services.reader.facts(chosen)
        origins = {
            project.path: origin
            for project, facts in zip(chosen, seen, strict=True)
            if facts is not None and (origin := facts["origin"])
        }
        items = project_items(
            catalog, chosen, self.discovery.parents(), self.services.note_on, origins
        )
        await self.discovery.refresh_worktrees([project.path for project in chosen])
        for item, project, facts in zip(items, chosen, seen, strict=True):
            if trees := self._worktrees(project):
                item["worktrees"] = trees
            place = None if facts is None else facts.get("git_directory")
            if (git := shared_git_item(catalog, project, place)) is not None:
                item["shared_git"] = git
            # Return the identity that was known before the facts were read. Then an approval of a
            # folder that was replaced in between is refused.
            item["identity"] = identity_fingerprint(project.observed.identity)
        items = [
            item if facts is None else {**item, **facts}
            for item, facts in zip(items, seen, strict=True)
        ]
        return ProjectListing(revision=revision, items=items, warnings=[])

    def _worktrees(self, project: Project) -> list[WorktreeItem]:
        """Return the worktrees that an approval of the project would publish or ask about."""
        catalog = self.ledger.catalog
        if not catalog.worktrees.get(project.path):
            return []
        if catalog.approved_since(project) is None:
            approval = Approve(project.path, project.observed.identity, DRY_RUN_ACTOR)
            try:
                catalog = self.ledger.dry_run([approval]).catalog
            except OrderRefused:
                return []
        return worktree_items(catalog, [project.path])


def _choose(
    catalog: Catalog, query: ProjectsQuery, real_path: Callable[[str, str], bytes]
) -> tuple[Sequence[Project], Sequence[Project]]:
    """Return the projects that match the query, and those of them that it selects."""
    matching = matching_projects(catalog, query, real_path)
    return matching, [p for p in matching if is_selected(catalog, p, query.select)]
