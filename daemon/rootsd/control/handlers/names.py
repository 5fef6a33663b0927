"""Handle rename and tag: the names and tags that a person gives to projects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from anyio import to_thread

from rootsd.control.references import (
    check_name,
    check_tag,
    several_match,
)
from rootsd.control.routes import Route, plain_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.catalog import Catalog
from rootsd.core.inputs import Rename, Retag
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Project
from rootsd.wire.decisions import DecideResult, RenameRequest, TagRequest
from rootsd.wire.request import ApplyMode, BadRequest


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = NameHandlers(services)
    return (
        plain_route(RenameRequest, handlers.rename, lambda r: f"rename {r.ref} {r.name}"),
        plain_route(TagRequest, handlers.tag, _tag_command),
    )


class NameHandlers(Handlers):
    """Handles `RenameRequest` and `TagRequest`."""

    async def rename(self, request: RenameRequest, actor: Actor) -> DecideResult:
        """Name a project.

        Raises NameTaken, BadRequest for an invalid name, and AmbiguousReference if the reference
        means several projects.
        """
        catalog = self.ledger.catalog
        chosen = await self._chosen(catalog, (request.ref,), request.cwd)
        if len(chosen) > 1:
            raise several_match(catalog, request.ref, chosen, ", but a name is for one")
        for project in chosen:
            check_name(request.name, project.path, catalog)
        renames = [Rename(project.path, request.name, actor) for project in chosen]
        return await self._carry_out(request.effect, (), chosen, renames)

    async def tag(self, request: TagRequest, actor: Actor) -> DecideResult:
        """Add tags to projects and remove tags. Raises BadRequest for an invalid tag."""
        for tag in request.on:
            check_tag(tag, self.ledger.catalog)
        if both := set(request.on).intersection(request.off):
            shown = safe_label(min(both))
            raise BadRequest(f"{shown} cannot be added and removed at once", "rootsd tag --help")
        chosen = await self._chosen(self.ledger.catalog, request.refs, request.cwd)
        retags = [Retag(project.path, request.on, request.off, actor) for project in chosen]
        return await self._carry_out(request.effect, request.confirmed, chosen, retags)

    async def _chosen(
        self, catalog: Catalog, references: Sequence[str], cwd: str
    ) -> Sequence[Project]:
        return await to_thread.run_sync(self.resolver(catalog, cwd).all, references)

    async def _carry_out(
        self,
        effect: ApplyMode,
        confirmed: Sequence[str],
        chosen: Sequence[Project],
        orders: Sequence[Rename | Retag],
    ) -> DecideResult:
        made, confirmation = await self.carried_out(effect, orders, confirmed=confirmed)
        changed = {change.path for change in made.changes if hasattr(change, "path")}
        known = [made.catalog.projects[project.path] for project in chosen]
        result = DecideResult(
            revision=self.ledger.revision,
            items=self.items(made.catalog, (p for p in known if p.path in changed)),
            unchanged=self.items(made.catalog, (p for p in known if p.path not in changed)),
            warnings=[],
        )
        if confirmation is not None:
            result["confirmation"] = confirmation
        return result


def _tag_command(request: TagRequest) -> str:
    off = [word for tag in request.off for word in ("--rm", tag)]
    return " ".join(("tag", *request.refs, *request.on, *off))
