"""Names and tags that a person gives to projects, decided about or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from rootsd.app.control.items import items_of
from rootsd.app.control.register import Entry, Order, order, plain
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.references import Resolver, canonical, typed_for
from rootsd.app.deciding.words import check_name, check_tag
from rootsd.core.catalog import Catalog
from rootsd.core.errors import AmbiguousReference
from rootsd.core.inputs import Rename, Retag
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Project
from rootsd.core.parents import Parent
from rootsd.wire.deciding import Decided, Effect
from rootsd.wire.naming import Renaming, Tagging
from rootsd.wire.request import BadRequest

_MOST_CHOICES = 20


@dataclass(frozen=True, slots=True)
class Naming:
    """Carries out `Renaming` and `Tagging`; `real_path` is as for `Chooser`."""

    ledger: Ledger
    real_path: Callable[[str, str], bytes]
    parents: Callable[[], Sequence[Parent]]

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return order(Renaming, self.rename, _renaming), order(Tagging, self.tag, _tagging)

    async def rename(self, request: Renaming, actor: Actor) -> Decided:
        """Give the project its name. Raises NameTaken, BadRequest for what can be no name, and
        AmbiguousReference where several projects are meant."""
        catalog = self.ledger.catalog
        chosen = await self._chosen(catalog, (request.ref,), request.cwd)
        if len(chosen) > 1:
            raise AmbiguousReference(
                f"{safe_label(request.ref)} fits several projects, and a name is for one",
                "rootsd ls",
                [typed_for(catalog, project) for project in chosen[:_MOST_CHOICES]],
            )
        for project in chosen:
            check_name(request.name, project.path, catalog)
        renames = [Rename(project.path, request.name, actor) for project in chosen]
        return await self._carried_out(request.effect, chosen, renames)

    async def tag(self, request: Tagging, actor: Actor) -> Decided:
        """Tag the projects. Raises BadRequest for what can be no tag."""
        for tag in request.on:
            check_tag(tag, self.ledger.catalog)
        if both := set(request.on).intersection(request.off):
            shown = safe_label(min(both))
            raise BadRequest(f"{shown} is to be added and to be taken away", "rootsd tag --help")
        chosen = await self._chosen(self.ledger.catalog, request.refs, request.cwd)
        retags = [Retag(project.path, request.on, request.off, actor) for project in chosen]
        return await self._carried_out(request.effect, chosen, retags)

    async def _chosen(
        self, catalog: Catalog, references: Sequence[str], cwd: str
    ) -> Sequence[Project]:
        resolver = Resolver(catalog, lambda typed: canonical(self.real_path, typed, cwd))
        return await to_thread.run_sync(resolver.all, references)

    async def _carried_out(
        self, effect: Effect, chosen: Sequence[Project], orders: Sequence[Rename | Retag]
    ) -> Decided:
        if effect is Effect.DRY_RUN:
            made = self.ledger.rehearse(orders)
        else:
            made = await self.ledger.obey(orders)
        changed = {change.path for change in made.changes if hasattr(change, "path")}
        known = [made.catalog.projects[project.path] for project in chosen]
        parents = self.parents()
        return Decided(
            revision=self.ledger.revision,
            items=items_of(made.catalog, (p for p in known if p.path in changed), parents),
            unchanged=items_of(made.catalog, (p for p in known if p.path not in changed), parents),
            warnings=[],
        )


def _renaming(request: Renaming) -> Order | None:
    if request.effect is Effect.DRY_RUN:
        return None
    return plain(f"rename {request.ref} {request.name}")


def _tagging(request: Tagging) -> Order | None:
    if request.effect is Effect.DRY_RUN:
        return None
    off = [word for tag in request.off for word in ("--rm", tag)]
    return plain(" ".join(("tag", *request.refs, *request.on, *off)))
