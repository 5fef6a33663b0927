"""A person's order on references becomes orders on projects, carried out or only shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from anyio import to_thread

from rootsd.app.control.items import dropped_items_of, items_of
from rootsd.app.control.origins import OriginsOf, no_origins
from rootsd.app.control.register import WORDS_LIMIT, Entry, Order, order
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.overtaking import Overtaken
from rootsd.app.deciding.references import Resolver, canonical, is_selected
from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground
from rootsd.core.errors import NameTaken, OrderRefused, UnknownProject
from rootsd.core.inputs import Approve, Deny, Forget, Verdicts
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    UNDECIDED,
    Access,
    Actor,
    ActorKind,
    Expiry,
    Parent,
    Project,
    ProjectKind,
    Verdict,
    narrower,
)
from rootsd.core.paths import contains
from rootsd.core.step import ALL_ALIKE, is_told_apart
from rootsd.core.uris import looks_like_a_uri
from rootsd.wire.deciding import LONGEST_S, Decide, Decided, DecisionVerb, Effect
from rootsd.wire.projects import Selection
from rootsd.wire.request import BadRequest

_MOST_STAKES = 20
_NOBODY = Actor(ActorKind.PERSON)  # of a rehearsal, which leaves nothing behind


@dataclass(frozen=True, slots=True)
class Decisions:
    """Carries out `Decide` requests.

    `real_path` makes a typed path canonical (it touches the disk: called in a thread). `propose`
    looks at one folder, takes what it sees into the catalogue, and raises RootsdError where no
    folder can be seen. `origins_of` reads where projects come from.
    """

    ledger: Ledger
    real_path: Callable[[str, str], bytes]
    propose: Callable[[bytes], Awaitable[None]]
    parents: Callable[[], Sequence[Parent]]
    origins_of: OriginsOf = no_origins

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (order(Decide, self.carry_out, self._order_in),)

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

    def _order_in(self, request: Decide) -> Order | None:
        if request.effect is Effect.DRY_RUN:
            return None
        return Order(_words(request), partial(self._stakes, request))

    async def _stakes(self, request: Decide) -> Sequence[str]:
        """What would be decided about, by path. Raises RootsdError where the order cannot be."""
        try:
            would = await self.carry_out(replace(request, effect=Effect.DRY_RUN), _NOBODY)
        except UnknownProject:
            # A folder that is not known yet; or nothing, which it will be told afterwards.
            paths = [safe_label(f"{ref} (in {request.cwd})", limit=None) for ref in request.refs]
        else:
            items = [*would["items"], *would["unchanged"]]
            paths = [
                safe_label(item["path"] or item["uri"] or item["name"], limit=None)
                for item in items
            ]
        more = len(paths) - _MOST_STAKES
        lines = [f"{request.verb.value} {path}" for path in paths[:_MOST_STAKES]]
        return [*lines, f"and {more} more"] if more > 0 else lines

    async def _carry_out(self, request: Decide, actor: Actor) -> Decided:
        chosen = await self._choose(request)
        if request.name is not None and len(chosen.projects) != 1:
            raise NameTaken("--as names one project, and several are meant", "rootsd ls")
        lasts = request.lasts
        expires = self.ledger.expiries.after(lasts) if lasts is not None else None
        approves = request.verb is DecisionVerb.APPROVE and request.effect is Effect.APPLY
        origins = await self.origins_of(chosen.projects) if approves else {}
        while True:
            orders = [
                _order(request, project, actor, expires, origins.get(project.path))
                for project in chosen.projects
            ]
            fresh = [order for order in orders if not _is_so_already(chosen.catalog, order)]
            try:
                after = await self._applied(request.effect, fresh, chosen.projects)
                break
            except OrderRefused:
                # Of many that nobody named, one that changed just now does not stop the others.
                steady = chosen.without_changed(self.ledger.catalog)
                if request.select is Selection.NAMED or not 0 < len(steady) < len(chosen):
                    raise
                chosen = steady
        answer = self._decided(chosen, after, {order.path for order in fresh})
        if self.ledger.unsaved and request.effect is Effect.APPLY:
            answer["warnings"].append(
                "the disk refuses to keep this: it holds until the daemon ends"
            )
        return answer

    async def _applied(
        self, effect: Effect, orders: Sequence[Verdicts], seen: Sequence[Project]
    ) -> Catalog:
        if effect is Effect.DRY_RUN:
            return self.ledger.rehearse(orders).catalog
        return (await self.ledger.obey(orders, seen=seen)).catalog

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
        paths = {project.path for project in fitting}
        warnings = tuple(
            _left_out(catalog, p, why)
            for p in selected
            if p.path not in paths and (why := _obstacle(catalog, p)) is not None
        )
        if not fitting:
            nothing = "nothing is waiting for a decision there"
            raise UnknownProject("; ".join(warnings) or nothing, "rootsd ls")
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

    def __len__(self) -> int:
        """How many projects there are."""
        return len(self.projects)

    def without_changed(self, now: Catalog) -> _Chosen:
        """Those that the disk shows as it did when they were chosen."""
        steady, warnings = [], [*self.warnings]
        for project in self.projects:
            known = now.projects.get(project.path)
            if known is not None and known.sighting == project.sighting:
                steady.append(project)
            else:
                warnings.append(_left_out(self.catalog, project, "it changed just now"))
        return _Chosen(self.catalog, tuple(steady), tuple(warnings))


def _words(request: Decide) -> str:
    what = request.refs if request.select is Selection.NAMED else (f"--{request.select.value}",)
    under = () if request.under is None else ("--under", request.under)
    words = " ".join((request.verb.value, *what, *under))
    return safe_label(words, WORDS_LIMIT)


def _fitting(catalog: Catalog, verb: DecisionVerb) -> Callable[[Project], bool]:
    """Whether an order that does not name a project may mean it.

    An approval by sweep overturns no denial, and is not stopped by what cannot be approved.
    """
    if verb is not DecisionVerb.APPROVE:
        return lambda _: True
    return lambda p: (
        p.path in catalog.roots or (catalog.is_waiting(p) and _obstacle(catalog, p) is None)
    )


def _obstacle(catalog: Catalog, project: Project) -> str | None:
    """Why an approval of a project that waits would be refused, as a sentence."""
    if project.path in catalog.surroundings.holding_denied:
        return "it holds a denied project"
    if project.sighting.kind is ProjectKind.URI:
        return None
    if not is_told_apart(project.sighting.identity):
        return ALL_ALIKE
    return catalog.places.why_no_root(project.path)


def _left_out(catalog: Catalog, project: Project, why: str) -> str:
    return f"{safe_label(catalog.name_of(project))} is left out: {why}"


def _looks_like_a_path(reference: str) -> bool:
    return (reference in (".", "..") or "/" in reference) and not looks_like_a_uri(reference)


def _check_words(request: Decide) -> None:
    """Names and tags reach every client: what cannot be read and typed again is refused."""
    if request.lasts is not None and not 0 < request.lasts <= LONGEST_S:
        raise BadRequest("an approval lasts from a second to ten years")
    for word in (request.name, *request.tags):
        if word is not None:
            check_word(word)


def check_word(word: str) -> None:
    """Raise BadRequest for what can be no name and no tag."""
    if safe_label(word) != word or word in (".", "..") or word.startswith("/"):
        raise BadRequest(
            f"{safe_label(word)} is no name and no tag: up to 64 visible characters, no path"
        )


def _order(
    request: Decide, project: Project, actor: Actor, expires: Expiry | None, origin: str | None
) -> Verdicts:
    match request.verb:
        case DecisionVerb.APPROVE:
            return Approve(
                path=project.path,
                identity=project.sighting.identity,
                actor=actor,
                name=request.name,
                tags=request.tags,
                access=_access(request, project),
                expires=expires,
                origin=origin,
            )
        case DecisionVerb.DENY:
            return Deny(project.path, actor)
        case DecisionVerb.FORGET:
            return Forget(project.path, actor)


def _access(request: Decide, project: Project) -> Access:
    """What was asked for; an approval that was lost comes back as narrow as it was."""
    ruling = project.ruling
    return request.access if ruling.lapse is None else narrower(request.access, ruling.kept_access)


def _is_so_already(catalog: Catalog, order: Verdicts) -> bool:
    ruling = catalog.projects[order.path].ruling
    match order:
        case Approve():
            return (
                # An approval that something stands against is asked for again, to hear what.
                catalog.judgements[order.path].ground is Ground.APPROVED
                and ruling.decision is not None
                and ruling.decision.access is order.access
                and ruling.decision.expires == order.expires
                and order.name in (None, ruling.name)
                and set(order.tags) <= set(ruling.tags)
            )
        case Deny():
            return ruling.decision is not None and ruling.decision.verdict is Verdict.DENIED
        case Forget():
            is_uri = catalog.projects[order.path].sighting.kind is ProjectKind.URI
            return ruling == UNDECIDED and not is_uri  # which to forget is to drop
