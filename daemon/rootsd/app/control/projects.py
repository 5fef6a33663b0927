"""Projects as they are listed and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import anyio
from anyio import to_thread

from rootsd.app.control.facts import FactsOf
from rootsd.app.control.items import NoteOn, items_of
from rootsd.app.control.origins import OriginsOf
from rootsd.app.control.register import Entry, look
from rootsd.app.control.worktrees import worktree_items
from rootsd.app.deciding.following import Follow, follow_nothing
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.references import Resolver, canonical, is_selected
from rootsd.core.catalog import Catalog
from rootsd.core.errors import OrderRefused
from rootsd.core.inputs import Approve
from rootsd.core.marks import mark_of
from rootsd.core.model import Actor, ActorKind, Project
from rootsd.core.parents import Parent
from rootsd.core.paths import contains
from rootsd.wire.facts import ShowQuery, WorktreeItem
from rootsd.wire.guarding import LONGEST_WAIT_S
from rootsd.wire.projects import Listing, NextWaiting, ProjectsQuery, Selection

_NOBODY = Actor(ActorKind.PERSON)  # who gives an order that is only rehearsed


@dataclass(frozen=True, slots=True)
class Projects:
    """Answers `ProjectsQuery` and `ShowQuery`. `real_path` is as for
    `rootsd.app.deciding.choosing`, `follow` as for `rootsd.app.deciding.decisions`."""

    ledger: Ledger
    real_path: Callable[[str, str], bytes]
    parents: Callable[[], Sequence[Parent]]
    note_on: NoteOn
    facts_of: FactsOf
    origins_of: OriginsOf
    follow: Follow = follow_nothing

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (
            look(ProjectsQuery, self.listing),
            look(ShowQuery, self.show),
            look(NextWaiting, self.next_waiting),
        )

    async def listing(self, query: ProjectsQuery) -> Listing:
        """The projects that the query means, verified. Raises RootsdError where a reference fits
        nothing, or several."""
        # The two belong together: whoever follows from this revision on misses nothing.
        revision = (await self.ledger.current()).revision
        catalog = self.ledger.catalog
        if query.refs:
            resolver = Resolver(catalog, lambda typed: self._canonical(typed, query.cwd))
            candidates = await to_thread.run_sync(resolver.all, query.refs)
        else:
            candidates = sorted(catalog.projects.values(), key=lambda p: p.path)
        under = (
            await to_thread.run_sync(self._canonical, query.under, query.cwd)
            if query.under is not None
            else None
        )
        chosen = [
            project
            for project in candidates
            if _is_selected(catalog, project, query)
            and (under is None or contains(under, project.path))
        ]
        back = [p for p in chosen if catalog.is_waiting(p) and catalog.may_come_back(p)]
        origins = await self.origins_of(back)
        listing = Listing(
            revision=revision,
            items=items_of(catalog, chosen, self.parents(), self.note_on, origins),
            warnings=[],
        )
        if query.select is Selection.WAITING:
            hopeless = [project for project in candidates if catalog.is_hopeless(project)]
            listing["hopeless"] = items_of(catalog, hopeless, self.parents())
        return listing

    async def next_waiting(self, query: NextWaiting) -> Listing:
        """What waits beyond what is known, as soon as there is something."""
        known = frozenset(query.known)
        catalog, fresh = self.ledger.catalog, self._waiting(known)
        with anyio.move_on_after(min(query.wait_s, LONGEST_WAIT_S)):
            while not fresh:
                catalog = await self.ledger.another(catalog)
                fresh = self._waiting(known)
        listing = await self.listing(ProjectsQuery("/", select=Selection.WAITING))
        listing["items"] = [item for item in listing["items"] if item["id"] not in known]
        return listing

    def _waiting(self, known: frozenset[str]) -> bool:
        catalog = self.ledger.catalog
        projects = catalog.projects.values()
        return any(p.id not in known and catalog.is_waiting(p) for p in projects)

    async def show(self, query: ShowQuery) -> Listing:
        """The same with what is to be seen of each."""
        revision, catalog = self.ledger.revision, self.ledger.catalog
        resolver = Resolver(catalog, lambda typed: self._canonical(typed, query.cwd))
        chosen = await to_thread.run_sync(resolver.all, query.refs)
        seen = await self.facts_of(chosen)
        pairs = zip(chosen, seen, strict=True)
        origins = {p.path: facts["origin"] for p, facts in pairs if facts.get("origin")}
        items = items_of(catalog, chosen, self.parents(), self.note_on, origins)
        await self.follow([project.path for project in chosen])
        for item, project, facts in zip(items, chosen, seen, strict=True):
            if trees := self._worktrees(project):
                item["worktrees"] = trees
            # As it was known before the facts were read: what took its place since is refused.
            item["identity"] = mark_of(project.sighting.identity)
            cast("dict[str, Any]", item).update(facts)
        return Listing(revision=revision, items=items, warnings=[])

    def _worktrees(self, project: Project) -> list[WorktreeItem]:
        """Return what an approval of the project would mean for its worktrees."""
        catalog = self.ledger.catalog
        if not catalog.linked.get(project.path):
            return []
        if catalog.since(project) is None:
            approval = Approve(project.path, project.sighting.identity, _NOBODY)
            try:
                catalog = self.ledger.rehearse([approval]).catalog
            except OrderRefused:
                return []
        return worktree_items(catalog, [project.path])

    def _canonical(self, typed: str, cwd: str) -> bytes:
        return canonical(self.real_path, typed, cwd)


def _is_selected(catalog: Catalog, project: Project, query: ProjectsQuery) -> bool:
    return (
        is_selected(catalog, project, query.select)
        and (query.verdict is None or catalog.judgements[project.path].verdict is query.verdict)
        and (query.tag is None or query.tag in project.ruling.tags)
    )
