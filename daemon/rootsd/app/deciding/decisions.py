"""A person's order on references becomes orders on projects, carried out or only shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rootsd.app.control.executed import ExecutedIn, nothing_executed
from rootsd.app.control.items import dropped_items_of, items_of
from rootsd.app.control.origins import OriginsOf, no_origins
from rootsd.app.control.register import WORDS_LIMIT, Entry, Order, order
from rootsd.app.control.worktrees import worktree_items
from rootsd.app.deciding.answering import NO_REQUESTS, Requests, access_for, session_for
from rootsd.app.deciding.choosing import Chooser, Chosen
from rootsd.app.deciding.following import Follow, follow_nothing
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.overtaking import Overtaken
from rootsd.app.deciding.references import is_glob
from rootsd.app.deciding.rules import rule_item
from rootsd.app.deciding.words import check_name, check_tag, check_word
from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground
from rootsd.core.errors import (
    IdentityChanged,
    NameTaken,
    OrderRefused,
    RootsdError,
    UnknownProject,
)
from rootsd.core.inputs import (
    Approve,
    ApproveRule,
    ConfirmedWorktree,
    Deny,
    Forget,
    Reinstate,
    Sighted,
    Verdicts,
)
from rootsd.core.inputs import Order as LedgerOrder
from rootsd.core.labels import safe_label
from rootsd.core.marks import mark_of
from rootsd.core.model import (
    UNDECIDED,
    Access,
    Actor,
    ActorKind,
    Expiry,
    Project,
    ProjectKind,
    SessionKey,
    Verdict,
    narrower,
)
from rootsd.core.parents import Parent
from rootsd.core.paths import is_utf8, text_of
from rootsd.wire.deciding import LONGEST_S, Decide, Decided, DecisionVerb, Effect, ExecutedItem
from rootsd.wire.projects import Selection
from rootsd.wire.request import BadRequest

_MOST_STAKES = 20
_NOBODY = Actor(ActorKind.PERSON)  # of a rehearsal, which leaves nothing behind


@dataclass(frozen=True, slots=True)
class Decisions:
    """Carries out `Decide` requests.

    `requests` knows which sessions ask for folders, and `origins_of` reads where projects come
    from. `follow` has the worktrees of repositories in the catalogue, as they are now.
    `executed_in` finds files that agents execute.
    """

    ledger: Ledger
    chooser: Chooser
    parents: Callable[[], Sequence[Parent]]
    requests: Requests = NO_REQUESTS
    origins_of: OriginsOf = no_origins
    follow: Follow = follow_nothing
    executed_in: ExecutedIn = nothing_executed

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (order(Decide, self.carry_out, self._order_in),)

    async def carry_out(self, request: Decide, actor: Actor) -> Decided:
        """Decide what the request names. Raises RootsdError, and then nothing was decided."""
        _check_words(request, self.ledger.catalog)
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
            trees = (
                tree for tree in would.get("worktrees", ()) if tree["id"] in request.worktrees
            )
            paths += [safe_label(tree["path"] or tree["name"], limit=None) for tree in trees]
        more = len(paths) - _MOST_STAKES
        lines = [f"{request.verb.value} {path}" for path in paths[:_MOST_STAKES]]
        return [*lines, f"and {more} more"] if more > 0 else lines

    async def _carry_out(
        self, request: Decide, actor: Actor, unseen: Sequence[Sighted]
    ) -> Decided:
        chosen = await self.chooser.choose(request, unseen)
        if request.name is not None and len(chosen.projects) != 1:
            raise NameTaken("--as names one project, and several are meant", "rootsd ls")
        if request.name is not None:
            check_name(request.name, chosen.projects[0].path, chosen.catalog)
        expiries, lasts = self.ledger.expiries, request.lasts
        ends = expiries.after(lasts) if lasts is not None else None
        approves = request.verb is DecisionVerb.APPROVE
        if approves:
            await self.follow([project.path for project in chosen.projects])
        is_applied = approves and request.effect is Effect.APPLY
        origins = await self.origins_of(chosen.projects) if is_applied else {}
        sessions = await self.requests.answered(request, chosen.projects)
        before = self.ledger.catalog
        confirmed = _confirmed(request, before)
        while True:
            orders = [
                _order(
                    request,
                    each,
                    actor,
                    ends or expiries.end_of_lapsed(each),
                    _Beside(
                        origins.get(each.path),
                        sessions.get(each.path),
                        confirmed.get(each.path, ()),
                    ),
                )
                for each in chosen.projects
            ]
            again = [ApproveRule(rule.number, actor) for rule in chosen.rules]
            so_already = [each for each in orders if _is_so_already(chosen.catalog, each)]
            renewed = {each.path for each in so_already if _is_renewed(request, each)}
            settled = {each.path for each in so_already} - renewed
            fresh = [order for order in orders if order.path not in settled]
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
        if renewed:
            answer["renewed"] = [p.id for p in chosen.projects if p.path in renewed]
        if approves:
            await self._tell_what_is_published(request, chosen, before, after, answer)
        if self.ledger.unsaved and request.effect is Effect.APPLY:
            answer["warnings"].append(
                "the disk refuses to keep this: it holds until the daemon ends"
            )
        return answer

    async def _tell_what_is_published(
        self, request: Decide, chosen: Chosen, before: Catalog, after: Catalog, answer: Decided
    ) -> None:
        """Add to the answer what an approval means for worktrees, and for what agents execute."""
        trees = worktree_items(after, (project.path for project in chosen.projects))
        known = {text_of(path) for path in before.roots}
        answer["worktrees"] = [tree for tree in trees if tree["path"] not in known]
        answer["published"] = [
            text_of(path) for path in sorted(after.roots.keys() - before.roots.keys())
        ]
        sweeps = request.select is not Selection.NAMED or any(map(is_glob, request.refs))
        if request.effect is Effect.DRY_RUN and sweeps:
            fresh = {item["id"] for item in answer["items"]}
            projects = [project for project in chosen.projects if project.id in fresh]
            found = await self.executed_in(projects)
            answer["executed"] = [
                ExecutedItem(
                    id=project.id,
                    name=after.name_of(after.projects[project.path]),
                    path=text_of(project.path) if is_utf8(project.path) else None,
                    files=list(found[project.path]),
                )
                for project in projects
                if project.path in found
            ]

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


def _check_words(request: Decide, catalog: Catalog) -> None:
    """Raise BadRequest for a time or a word that cannot be; a name is checked again later."""
    if request.lasts is not None and not 0 < request.lasts <= LONGEST_S:
        raise BadRequest("an approval lasts from a second to ten years")
    if request.name is not None:
        check_word(request.name)
    for tag in request.tags:
        check_tag(tag, catalog)


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is known of one project beside the catalogue: its origin, the session that an approval
    of it is about, and its worktrees that the person confirmed."""

    origin: str | None
    session: SessionKey | None
    worktrees: tuple[ConfirmedWorktree, ...]


def _order(
    request: Decide,
    project: Project,
    actor: Actor,
    expires: Expiry | None,
    beside: _Beside,
) -> Verdicts:
    match request.verb:
        case DecisionVerb.APPROVE:
            approval = Approve(
                path=project.path,
                identity=project.sighting.identity,
                actor=actor,
                name=request.name,
                tags=request.tags,
                access=_access(request, project, beside.session),
                expires=expires,
                origin=beside.origin,
                number=_number(request, project),
                worktrees=beside.worktrees,
                session=session_for(request, beside.session),
            )
            if _is_to_be_reinstated(request, project):
                return Reinstate(project.path, approval, actor)
            return approval
        case DecisionVerb.DENY:
            return Deny(project.path, actor)
        case DecisionVerb.FORGET:
            return Forget(project.path, actor)


def _confirmed(request: Decide, catalog: Catalog) -> Mapping[bytes, tuple[ConfirmedWorktree, ...]]:
    """Return main checkout -> the worktrees of it that the person confirmed.

    Raises IdentityChanged if one is not the directory that was shown.
    """
    if len(request.worktrees) != len(request.worktrees_shown):
        raise BadRequest("each worktree goes with the identity that was shown", "rootsd pending")
    confirmed: dict[bytes, tuple[ConfirmedWorktree, ...]] = {}
    for id_, mark in zip(request.worktrees, request.worktrees_shown, strict=True):
        path = catalog.ids.get(id_)
        project = catalog.projects[path] if path is not None else None
        identity = project.sighting.identity if project is not None else None
        main = project.sighting.main_checkout if project is not None else None
        if path is None or main is None or identity is None or mark_of(identity) != mark:
            shown = safe_label(id_ if path is None else path, limit=None)
            raise IdentityChanged(f"{shown} is not the worktree you were shown", "rootsd pending")
        confirmed[main] = (*confirmed.get(main, ()), ConfirmedWorktree(path, identity))
    return confirmed


def _is_to_be_reinstated(request: Decide, project: Project) -> bool:
    """Whether all that lapsed is to be as it was, and no person had approved this project."""
    lapse = project.ruling.lapse
    is_by_person = lapse is None or lapse.by is None or lapse.by.may_decide
    asks_for_more = request.tags or request.lasts is not None or request.access is Access.READ
    return request.select is Selection.LAPSED and not is_by_person and not asks_for_more


def _access(request: Decide, project: Project, session: SessionKey | None) -> Access:
    """Return what was asked for; an approval that was lost comes back as narrow as it was."""
    ruling, access = project.ruling, access_for(request, project, session)
    return access if ruling.lapse is None else narrower(access, ruling.kept_access)


def _number(request: Decide, project: Project) -> int | None:
    """Return the number of the approval that is restored as it was; None for a new approval.

    Sessions that run see what is approved from now on. A sweep over all that lapsed is no such
    approval: it brings back what was approved before.
    """
    lapse = project.ruling.lapse
    is_restored = request.select is Selection.LAPSED and lapse is not None
    return lapse.number if is_restored and lapse is not None else None


def _is_renewed(request: Decide, order: Verdicts) -> bool:
    """Return whether a person approves this very project again, so that sessions that run see it
    from now on. An order on many projects means only those that wait."""
    is_named = request.select is Selection.NAMED and not any(map(is_glob, request.refs))
    return is_named and isinstance(order, Approve)


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
                and ruling.decision.session == order.session
                and order.name in (None, ruling.name)
                and set(order.tags) <= set(ruling.tags)
                and not order.worktrees
            )
        case Reinstate():
            return False
        case Deny():
            return ruling.decision is not None and ruling.decision.verdict is Verdict.DENIED
        case Forget():
            is_uri = catalog.projects[order.path].sighting.kind is ProjectKind.URI
            return ruling == UNDECIDED and not is_uri  # which to forget is to drop
