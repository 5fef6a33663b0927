"""A person's order on references becomes orders on projects, carried out or only shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rootsd.app.control.items import dropped_items_of, items_of
from rootsd.app.control.origins import OriginsOf, no_origins
from rootsd.app.control.register import WORDS_LIMIT, Entry, Order, order
from rootsd.app.deciding.choosing import Chooser, Chosen
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.overtaking import Overtaken
from rootsd.app.deciding.rules import rule_item
from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground
from rootsd.core.errors import NameTaken, OrderRefused, RootsdError, UnknownProject
from rootsd.core.inputs import Approve, ApproveRule, Deny, Forget, Reinstate, Sighted, Verdicts
from rootsd.core.inputs import Order as LedgerOrder
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    UNDECIDED,
    Access,
    Actor,
    ActorKind,
    Expiry,
    Project,
    ProjectKind,
    Verdict,
    narrower,
)
from rootsd.core.parents import Parent
from rootsd.wire.deciding import LONGEST_S, Decide, Decided, DecisionVerb, Effect
from rootsd.wire.projects import Selection
from rootsd.wire.request import BadRequest

_MOST_STAKES = 20
_NOBODY = Actor(ActorKind.PERSON)  # of a rehearsal, which leaves nothing behind


@dataclass(frozen=True, slots=True)
class Decisions:
    """Carries out `Decide` requests; `origins_of` reads where projects come from."""

    ledger: Ledger
    chooser: Chooser
    parents: Callable[[], Sequence[Parent]]
    origins_of: OriginsOf = no_origins

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (order(Decide, self.carry_out, self._order_in),)

    async def carry_out(self, request: Decide, actor: Actor) -> Decided:
        """Decide what the request names. Raises RootsdError, and then nothing was decided."""
        _check_words(request)
        while True:
            unseen = await self.chooser.unseen(request)
            try:
                decided = await self._carry_out(request, actor, unseen)
            except Overtaken:
                continue  # whoever came first may have left less to do, or to be refused
            if request.effect is Effect.APPLY:
                for folder in unseen:
                    with suppress(RootsdError):  # it is gone by now, and stays denied
                        await self.chooser.propose(folder.path)
            return decided

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
            paths += [f"rule {rule['number']}" for rule in would.get("rules", ())]
        more = len(paths) - _MOST_STAKES
        lines = [f"{request.verb.value} {path}" for path in paths[:_MOST_STAKES]]
        return [*lines, f"and {more} more"] if more > 0 else lines

    async def _carry_out(
        self, request: Decide, actor: Actor, unseen: Sequence[Sighted]
    ) -> Decided:
        chosen = await self.chooser.choose(request, unseen)
        if request.name is not None and len(chosen.projects) != 1:
            raise NameTaken("--as names one project, and several are meant", "rootsd ls")
        expiries, lasts = self.ledger.expiries, request.lasts
        ends = expiries.after(lasts) if lasts is not None else None
        approves = request.verb is DecisionVerb.APPROVE and request.effect is Effect.APPLY
        origins = await self.origins_of(chosen.projects) if approves else {}
        while True:
            orders = [
                _order(request, each, actor, ends or expiries.end_of_lapsed(each), origins)
                for each in chosen.projects
            ]
            again = [ApproveRule(rule.number, actor) for rule in chosen.rules]
            fresh = [order for order in orders if not _is_so_already(chosen.catalog, order)]
            try:
                inputs = [*again, *unseen, *fresh]
                after = await self._applied(request.effect, inputs, chosen.projects)
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
        self, effect: Effect, orders: Sequence[LedgerOrder | Sighted], seen: Sequence[Project]
    ) -> Catalog:
        if effect is Effect.DRY_RUN:
            return self.ledger.rehearse(orders).catalog
        return (await self.ledger.obey(orders, seen=seen)).catalog

    def _decided(self, chosen: Chosen, after: Catalog, changed: set[bytes]) -> Decided:
        parents = self.parents()
        known = [after.projects[p.path] for p in chosen.projects if p.path in after.projects]
        dropped = (p for p in chosen.projects if p.path not in after.projects)
        withheld = [
            f"{safe_label(after.name_of(p))} is withheld: it holds a denied project"
            for p in after.over(changed)
            if after.judgements[p.path].ground is Ground.HOLDS_DENIED
        ]
        decided = Decided(
            revision=self.ledger.revision,
            items=[
                *items_of(after, (p for p in known if p.path in changed), parents),
                *dropped_items_of(chosen.catalog, dropped, parents),
            ],
            unchanged=items_of(after, (p for p in known if p.path not in changed), parents),
            warnings=[*chosen.warnings, *withheld],
        )
        if chosen.rules:
            numbers = {rule.number for rule in chosen.rules}
            rules = (rule for rule in after.rules if rule.number in numbers)
            decided["rules"] = [rule_item(rule, after) for rule in rules]
        return decided


def _words(request: Decide) -> str:
    what = request.refs if request.select is Selection.NAMED else (f"--{request.select.value}",)
    under = () if request.under is None else ("--under", request.under)
    words = " ".join((request.verb.value, *what, *under))
    return safe_label(words, WORDS_LIMIT)


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
    request: Decide,
    project: Project,
    actor: Actor,
    expires: Expiry | None,
    origins: Mapping[bytes, str],
) -> Verdicts:
    match request.verb:
        case DecisionVerb.APPROVE:
            approval = Approve(
                path=project.path,
                identity=project.sighting.identity,
                actor=actor,
                name=request.name,
                tags=request.tags,
                access=_access(request, project),
                expires=expires,
                origin=origins.get(project.path),
            )
            if _is_to_be_reinstated(request, project):
                return Reinstate(project.path, approval, actor)
            return approval
        case DecisionVerb.DENY:
            return Deny(project.path, actor)
        case DecisionVerb.FORGET:
            return Forget(project.path, actor)


def _is_to_be_reinstated(request: Decide, project: Project) -> bool:
    """Whether all that lapsed is to be as it was, and no person had approved this project."""
    lapse = project.ruling.lapse
    is_by_person = lapse is None or lapse.by in (None, ActorKind.PERSON)
    asks_for_more = request.tags or request.lasts is not None or request.access is Access.READ
    return request.select is Selection.LAPSED and not is_by_person and not asks_for_more


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
        case Reinstate():
            return False
        case Deny():
            return ruling.decision is not None and ruling.decision.verdict is Verdict.DENIED
        case Forget():
            is_uri = catalog.projects[order.path].sighting.kind is ProjectKind.URI
            return ruling == UNDECIDED and not is_uri  # which to forget is to drop
