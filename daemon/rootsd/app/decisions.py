"""A person's order on references becomes orders on projects, carried out or only shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from anyio import to_thread

from rootsd.app.items import items_of
from rootsd.app.ledger import Ledger
from rootsd.app.references import Resolver
from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground
from rootsd.core.errors import NameTaken, UnknownProject
from rootsd.core.inputs import Approve, Deny, Forget, ProjectOrder
from rootsd.core.labels import safe_label
from rootsd.core.model import UNDECIDED, Actor, Parent, Project, Verdict
from rootsd.core.paths import contains
from rootsd.wire.control import Decide, Decided, DecisionVerb, Effect, Selection


@dataclass(frozen=True, slots=True)
class Decisions:
    """Carries out `Decide` requests.

    `real_path` makes a typed path canonical (it touches the disk: called in a thread). `propose`
    looks at one folder, takes what it sees into the catalogue, and raises RootsdError where no
    folder can be seen.
    """

    ledger: Ledger
    real_path: Callable[[str, str], bytes]
    propose: Callable[[bytes], Awaitable[None]]
    parents: Callable[[], Sequence[Parent]]

    async def carry_out(self, request: Decide, actor: Actor) -> Decided:
        """Decide what the request names. Raises RootsdError, and then nothing was changed."""
        projects = await self._projects(request)
        if request.name is not None and len(projects) != 1:
            raise NameTaken("--as names one project, and several are meant", "rootsd ls")
        orders = [_order(request, project, actor) for project in projects]
        fresh = [
            (project, order)
            for project, order in zip(projects, orders, strict=True)
            if not _is_so_already(project, order)
        ]
        if request.effect is Effect.DRY_RUN:
            made = self.ledger.rehearse([order for _, order in fresh])
        else:
            made = await self.ledger.obey([order for _, order in fresh])
        return self._decided(made.catalog, projects, [project for project, _ in fresh])

    def _decided(
        self, catalog: Catalog, projects: Sequence[Project], fresh: Sequence[Project]
    ) -> Decided:
        changed = {project.path for project in fresh}
        parents = self.parents()
        after = [catalog.projects.get(p.path, p) for p in projects]
        known = [p for p in after if p.path in catalog.projects]
        warnings = [
            f"{safe_label(catalog.name_of(p))} is withheld: it holds a denied project"
            for p in catalog.projects.values()
            if catalog.judgements[p.path].ground is Ground.HOLDS_DENIED
            and any(contains(p.path, path) for path in changed)
        ]
        if self.ledger.unsaved:
            warnings.append("the disk refuses to keep this: it holds until the daemon ends")
        return Decided(
            revision=self.ledger.revision,
            items=items_of(catalog, (p for p in known if p.path in changed), parents),
            unchanged=items_of(catalog, (p for p in known if p.path not in changed), parents),
            warnings=warnings,
        )

    async def _projects(self, request: Decide) -> list[Project]:
        if request.select is not Selection.NAMED:
            return await self._selected(request)
        if not request.refs:
            raise UnknownProject("no project was named", "rootsd pending")
        resolver = self._resolver(request.cwd)
        if request.verb is DecisionVerb.APPROVE:
            for reference in request.refs:
                await self._propose_unknown(resolver, reference)
            resolver = self._resolver(request.cwd)
        catalog = self.ledger.catalog
        # A glob is a sweep: it asks about what waits, and does not overturn a denial.
        fits = (
            (lambda project: not catalog.is_denied(project))
            if request.verb is DecisionVerb.APPROVE
            else (lambda _: True)
        )
        return await to_thread.run_sync(lambda: resolver.all(request.refs, fits))

    async def _propose_unknown(self, resolver: Resolver, reference: str) -> None:
        """`approve PATH` of a folder that no scan has found proposes it first."""
        if not _looks_like_a_path(reference):
            return
        if await to_thread.run_sync(resolver.one, reference) is None:
            path = await to_thread.run_sync(resolver.real_path, reference)
            if path not in self.ledger.catalog.projects:
                await self.propose(path)

    async def _selected(self, request: Decide) -> list[Project]:
        catalog = self.ledger.catalog
        under = (
            await to_thread.run_sync(self.real_path, request.under, request.cwd)
            if request.under is not None
            else b"/"
        )
        projects = [
            project
            for project in sorted(catalog.projects.values(), key=lambda p: p.path)
            if catalog.is_waiting(project)
            and (request.select is not Selection.LAPSED or project.ruling.lapse is not None)
            and contains(under, project.path)
        ]
        if not projects:
            raise UnknownProject("nothing is waiting for a decision there", "rootsd ls")
        return projects

    def _resolver(self, cwd: str) -> Resolver:
        return Resolver(self.ledger.catalog, lambda typed: self.real_path(typed, cwd))


def _looks_like_a_path(reference: str) -> bool:
    return reference in (".", "..") or "/" in reference


def _order(request: Decide, project: Project, actor: Actor) -> ProjectOrder:
    match request.verb:
        case DecisionVerb.APPROVE:
            return Approve(
                path=project.path,
                identity=project.sighting.identity,
                actor=actor,
                name=request.name,
                tags=request.tags,
                access=request.access,
            )
        case DecisionVerb.DENY:
            return Deny(project.path, actor)
        case DecisionVerb.FORGET:
            return Forget(project.path, actor)


def _is_so_already(project: Project, order: ProjectOrder) -> bool:
    ruling = project.ruling
    match order:
        case Approve():
            return (
                ruling.decision is not None
                and ruling.decision.verdict is Verdict.APPROVED
                and ruling.decision.access is order.access
                and order.name in (None, ruling.name)
                and set(order.tags) <= set(ruling.tags)
            )
        case Deny():
            return ruling.decision is not None and ruling.decision.verdict is Verdict.DENIED
        case Forget():
            return ruling == UNDECIDED
