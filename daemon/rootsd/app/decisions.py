"""A person's order on references becomes orders on projects, carried out or only shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from anyio import to_thread

from rootsd.app.items import dropped_items_of, items_of
from rootsd.app.ledger import Ledger, Overtaken
from rootsd.app.references import Resolver, canonical, is_selected
from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground
from rootsd.core.errors import NameTaken, UnknownProject
from rootsd.core.inputs import Approve, Deny, Forget, ProjectOrder
from rootsd.core.labels import safe_label
from rootsd.core.model import UNDECIDED, Actor, Parent, Project, Verdict
from rootsd.core.paths import contains
from rootsd.wire.control import BadRequest, Decide, Decided, DecisionVerb, Effect, Selection


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
        """Decide what the request names. Raises RootsdError, and then nothing was decided."""
        _check_words(request)
        while True:
            if request.verb is DecisionVerb.APPROVE and request.select is Selection.NAMED:
                await self._propose_unknown(request)
            try:
                return await self._carry_out(request, actor)
            except Overtaken:
                continue  # whoever came first may have left less to do, or to be refused

    async def _carry_out(self, request: Decide, actor: Actor) -> Decided:
        chosen = await self._choose(request)
        if request.name is not None and len(chosen.projects) != 1:
            raise NameTaken("--as names one project, and several are meant", "rootsd ls")
        orders = [_order(request, project, actor) for project in chosen.projects]
        fresh = [order for order in orders if not _is_so_already(chosen.catalog, order)]
        if request.effect is Effect.DRY_RUN:
            after = self.ledger.rehearse(fresh).catalog
        else:
            after = (await self.ledger.obey(fresh, seen=chosen.projects)).catalog
        answer = self._decided(chosen, after, {order.path for order in fresh})
        if self.ledger.unsaved and request.effect is Effect.APPLY:
            answer["warnings"].append(
                "the disk refuses to keep this: it holds until the daemon ends"
            )
        return answer

    def _decided(self, chosen: _Chosen, after: Catalog, changed: set[bytes]) -> Decided:
        parents = self.parents()
        known = [after.projects[p.path] for p in chosen.projects if p.path in after.projects]
        dropped = (p for p in chosen.projects if p.path not in after.projects)
        withheld = [
            f"{safe_label(after.name_of(p))} is withheld: it holds a denied project"
            for p in after.projects.values()
            if after.judgements[p.path].ground is Ground.HOLDS_DENIED
            and any(contains(p.path, path) for path in changed)
        ]
        return Decided(
            revision=self.ledger.revision,
            items=[
                *items_of(after, (p for p in known if p.path in changed), parents),
                *dropped_items_of(chosen.catalog, dropped, parents),
            ],
            unchanged=items_of(after, (p for p in known if p.path not in changed), parents),
            warnings=[*chosen.warnings, *withheld],
        )

    async def _choose(self, request: Decide) -> _Chosen:
        catalog = self.ledger.catalog
        if request.select is not Selection.NAMED:
            return await self._select(catalog, request)
        if not request.refs:
            raise UnknownProject("no project was named", "rootsd pending")
        resolver = self._resolver(catalog, request.cwd)
        fits = _fitting(catalog, request.verb)
        chosen = await to_thread.run_sync(resolver.all, request.refs, fits)
        return _Chosen(catalog, tuple(chosen), ())

    async def _select(self, catalog: Catalog, request: Decide) -> _Chosen:
        under = b"/"
        if request.under is not None:
            under = await to_thread.run_sync(self._canonical, request.under, request.cwd)
        selected = [
            project
            for project in sorted(catalog.projects.values(), key=lambda p: p.path)
            if contains(under, project.path) and is_selected(catalog, project, request.select)
        ]
        fitting = tuple(filter(_fitting(catalog, request.verb), selected))
        if not fitting:
            raise UnknownProject("nothing is waiting for a decision there", "rootsd ls")
        paths = {project.path for project in fitting}
        warnings = tuple(
            f"{safe_label(catalog.name_of(p))} is left out: it holds a denied project"
            for p in selected
            if p.path not in paths and p.path in catalog.surroundings.holding_denied
        )
        return _Chosen(catalog, fitting, warnings)

    async def _propose_unknown(self, request: Decide) -> None:
        """`approve PATH` of a folder that no scan has found proposes it first.

        Only once all other references are known to mean something: an order that fails leaves
        nothing behind.
        """
        resolver = self._resolver(self.ledger.catalog, request.cwd)
        unknown = [
            reference
            for reference in request.refs
            if not await to_thread.run_sync(resolver.find, reference)
        ]
        words = [reference for reference in unknown if not _looks_like_a_path(reference)]
        await to_thread.run_sync(resolver.all, words)  # raises where there are any
        for reference in unknown:
            if request.effect is Effect.DRY_RUN:
                shown = safe_label(reference, limit=None)
                raise UnknownProject(
                    f"{shown} is not known yet, and a dry run proposes nothing",
                    "rootsd approve PATH",
                )
            await self.propose(await to_thread.run_sync(resolver.real_path, reference))

    def _resolver(self, catalog: Catalog, cwd: str) -> Resolver:
        return Resolver(catalog, lambda typed: self._canonical(typed, cwd))

    def _canonical(self, typed: str, cwd: str) -> bytes:
        return canonical(self.real_path, typed, cwd)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The projects that a request means, as they are in `catalog`."""

    catalog: Catalog
    projects: tuple[Project, ...]
    warnings: tuple[str, ...]


def _fitting(catalog: Catalog, verb: DecisionVerb) -> Callable[[Project], bool]:
    """Whether an order that does not name a project may mean it.

    An approval by sweep overturns no denial, and is not stopped by what cannot be approved.
    """
    if verb is not DecisionVerb.APPROVE:
        return lambda _: True
    holding_denied = catalog.surroundings.holding_denied
    return lambda p: (
        p.path in catalog.roots or (catalog.is_waiting(p) and p.path not in holding_denied)
    )


def _looks_like_a_path(reference: str) -> bool:
    return reference in (".", "..") or "/" in reference


def _check_words(request: Decide) -> None:
    """Names and tags reach every client: what cannot be read and typed again is refused."""
    for word in (request.name, *request.tags):
        if word is None:
            continue
        if safe_label(word) != word or word in (".", "..") or word.startswith("/"):
            raise BadRequest(
                f"{safe_label(word)} is no name and no tag: up to 64 visible characters, no path"
            )


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


def _is_so_already(catalog: Catalog, order: ProjectOrder) -> bool:
    ruling = catalog.projects[order.path].ruling
    match order:
        case Approve():
            return (
                # An approval that something stands against is asked for again, to hear what.
                catalog.judgements[order.path].ground is Ground.APPROVED
                and ruling.decision is not None
                and ruling.decision.access is order.access
                and order.name in (None, ruling.name)
                and set(order.tags) <= set(ruling.tags)
            )
        case Deny():
            return ruling.decision is not None and ruling.decision.verdict is Verdict.DENIED
        case Forget():
            return ruling == UNDECIDED
