"""Handle approve, deny, and forget: decide about projects, or preview the decision.

A request is resolved to projects once and planned once. If another request changes the catalog in
between, both steps start over.

A session may have requested the folder that a person approves. Unless the person says otherwise,
the approval is then only for that session and only for reading.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rootsd.control.confirmation import ConfirmationGate, refuse_unconfirmed, refuse_unshown
from rootsd.control.daemon_parts import DiscoveryControl
from rootsd.control.handlers.rules import rule_item
from rootsd.control.items import (
    dropped_project_items,
    project_items,
    shared_git_item,
    unlisted_project_items,
    worktree_items,
)
from rootsd.control.plain_commands import note_taken_off
from rootsd.control.project_reader import ProjectReader
from rootsd.control.references import check_label, check_name, check_tag, is_glob
from rootsd.control.routes import COMMAND_TEXT_LIMIT, GuardedCommand, Route, command_route
from rootsd.control.selection import ProjectSelection, ProjectSelector, should_reinstate
from rootsd.control.services import ControlServices
from rootsd.control.session_requests import SessionRequests
from rootsd.core.access import Access, stricter_access
from rootsd.core.affected import NOTHING_FOUND, FoundBelow
from rootsd.core.catalog import Catalog
from rootsd.core.decide import VerdictReason
from rootsd.core.encoding import identity_fingerprint
from rootsd.core.errors import (
    IdentityChanged,
    NameTaken,
    NotPresent,
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
    ProjectObserved,
    Reinstate,
    VerdictOrder,
)
from rootsd.core.inputs import Order as LedgerOrder
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    UNDECIDED,
    Actor,
    ActorKind,
    Expiry,
    Identity,
    IncompleteReason,
    Presence,
    Project,
    SessionKey,
    Verdict,
)
from rootsd.core.paths import text_of
from rootsd.core.plan import Plan
from rootsd.core.shared_git import GitAccess, shared_git
from rootsd.core.transition import incomplete_error, is_only_named
from rootsd.state.ledger import Conflict, Ledger
from rootsd.wire.decisions import (
    MAX_APPROVAL_S,
    ApplyMode,
    ApprovalScope,
    DecideRequest,
    DecideResult,
    DecisionVerb,
    IncompleteItem,
)
from rootsd.wire.projects import Selection, SharedGitItem
from rootsd.wire.request import BadRequest


def session_for(request: DecideRequest, key: SessionKey | None) -> SessionKey | None:
    """Return the only session that the approval is for, or None if it is for all sessions.

    An approval with an expiry is for all sessions.
    """
    is_for_all = request.span is ApprovalScope.ALWAYS or request.lasts is not None
    return None if is_for_all else key


def access_for(request: DecideRequest, project: Project, key: SessionKey | None) -> Access:
    """Return the access that the approval gives.

    If the request names no access, an approved project keeps the access that it has.
    """
    if request.access is not None:
        return request.access
    decision = project.ruling.decision
    is_approved = decision is not None and decision.verdict is Verdict.APPROVED
    if decision is not None and is_approved and decision.session in (None, key):
        return decision.access
    return Access.READ_WRITE if key is None else Access.READ


_MAX_PREVIEW_LINES = 20
_DRY_RUN_ACTOR = Actor(ActorKind.PERSON)  # for a dry run, which changes nothing


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    ledger, discovery, reader = services.ledger, services.discovery, services.reader
    selector = ProjectSelector(ledger, services.real_path, discovery, reader)
    return DecisionHandlers(
        ledger, selector, discovery, services.gate, services.requests, reader
    ).routes()


class DecisionHandlers(Struct, frozen=True):
    """Handles `DecideRequest`. `requests` knows which sessions ask for folders."""

    ledger: Ledger
    selector: ProjectSelector
    discovery: DiscoveryControl
    gate: ConfirmationGate
    requests: SessionRequests
    reader: ProjectReader

    def routes(self) -> Iterable[Route[Any]]:
        """Return the routes of these handlers."""
        return (command_route(DecideRequest, self.carry_out, self._guarded_command),)

    async def carry_out(self, request: DecideRequest, actor: Actor) -> DecideResult:
        """Decide about the projects of the request. On RootsdError, nothing has changed.

        Before the approval of a named project is refused because of the state on the disk,
        discovery looks again: the project may have appeared, or become complete, a moment ago.
        Raises Unconfirmed if there are several, and `confirmed` does not stand for them.
        """
        _check_request(request, self.ledger.catalog)
        try:
            return await self._carry_out_now(request, actor)
        except (NotPresent, UnknownProject):
            if request.verb is not DecisionVerb.APPROVE or request.select is not Selection.NAMED:
                raise
        await self.selector.look_again(request)
        try:
            return await self._carry_out_now(request, actor)
        except NotPresent as refused:
            if (why := await self.selector.why_unsafe(request, refused.message)) is None:
                raise
            raise NotPresent(why, refused.remedy) from refused

    async def _carry_out_now(self, request: DecideRequest, actor: Actor) -> DecideResult:
        proposed: set[bytes] = set()
        while True:
            chosen = await self.selector.choose(request)
            is_applied = request.effect is ApplyMode.APPLY
            await self._refuse_at_work(request, chosen)
            if is_applied and chosen.unseen and request.verb is DecisionVerb.APPROVE:
                await self._refuse_before_proposing(request, actor, chosen)
                for folder in chosen.unseen:
                    await self.discovery.propose(folder.path)
                    proposed.add(folder.path)
                chosen = chosen.as_known(self.ledger.catalog)
            if is_applied and request.verb is DecisionVerb.DENY:
                proposed.update(folder.path for folder in chosen.unseen)
            try:
                decided = await self._carry_out(request, actor, chosen, proposed)
            except Conflict:
                continue  # another request came first, so resolve and plan with the new catalog
            if is_applied:
                for folder in chosen.unseen:
                    with suppress(RootsdError):  # the folder is gone, and stays denied
                        await self.discovery.propose(folder.path)
            return decided

    async def _refuse_before_proposing(
        self, request: DecideRequest, actor: Actor, chosen: ProjectSelection
    ) -> None:
        """Raise what the approval would raise while its folders are still unknown.

        An approval that is refused then leaves no trace.
        """
        planned = replace(request, effect=ApplyMode.DRY_RUN)
        would = await self._carry_out(planned, actor, chosen, ())
        _check_incomplete(request, chosen)
        refuse_unshown(would.get("confirmation"), request.confirmed)

    async def _refuse_at_work(self, request: DecideRequest, chosen: ProjectSelection) -> None:
        """Raise NotPresent if an approval names an incomplete project that a program works on."""
        if request.verb is not DecisionVerb.APPROVE:
            return
        for project in chosen.projects:
            is_incomplete = project.observed.incomplete is not None
            if is_incomplete and await self.discovery.is_at_work(_seen(project)):
                shown = safe_label(project.path, limit=None)
                raise NotPresent(
                    f"{shown} is incomplete, and a program still works on it",
                    "rootsd scan, when that has ended",
                )

    def _guarded_command(self, request: DecideRequest) -> GuardedCommand | None:
        if request.effect is ApplyMode.DRY_RUN:
            return None
        return GuardedCommand(_command_text(request), partial(self._preview, request))

    async def _preview(self, request: DecideRequest) -> Sequence[str]:
        """Return a line for each path that the request would decide about.

        Raises RootsdError if the request would be refused.
        """
        try:
            preview = await self.carry_out(
                replace(request, effect=ApplyMode.DRY_RUN), _DRY_RUN_ACTOR
            )
        except UnknownProject:
            # The folder is unknown, or nothing was found. The command itself reports that.
            paths = [safe_label(f"{ref} (in {request.cwd})", limit=None) for ref in request.refs]
        else:
            items = [*preview["items"], *preview["unchanged"]]
            paths = [
                safe_label(item["path"] or item["uri"] or item["name"], limit=None)
                for item in items
            ]
            paths += [f"rule {rule['number']}" for rule in preview.get("rules", ())]
            trees = (
                tree for tree in preview.get("worktrees", ()) if tree["id"] in request.worktrees
            )
            paths += [safe_label(tree["path"] or tree["name"], limit=None) for tree in trees]
            included = (git for git in preview.get("shared_git", ()) if git["included"])
            paths += [
                f"the use of {safe_label(git['git_directory'] or git['name'], limit=None)}"
                for git in included
            ]
        more = len(paths) - _MAX_PREVIEW_LINES
        lines = [f"{request.verb.value} {path}" for path in paths[:_MAX_PREVIEW_LINES]]
        return [*lines, f"and {more} more"] if more > 0 else lines

    async def _carry_out(
        self,
        request: DecideRequest,
        actor: Actor,
        chosen: ProjectSelection,
        proposed: Container[bytes],
    ) -> DecideResult:
        """Decide about the `chosen` projects. The request itself has added those in `proposed`."""
        _check_new_name(request, chosen)
        expiries, lasts = self.ledger.expiries, request.lasts
        ends = expiries.after(lasts) if lasts is not None else None
        approves = request.verb is DecisionVerb.APPROVE
        if approves:
            await self.discovery.refresh_worktrees([project.path for project in chosen.projects])
        origins = await self._origins_to_keep(request, chosen)
        found = await self._found_below(request, chosen)
        sessions = await self.requests.answered(request, chosen.projects)
        before = self.ledger.catalog
        known = chosen.catalog if chosen.unseen else before
        confirmed = _confirmed_worktrees(request, known)
        included = _included_checkouts(request, known)
        accepted = _accepted_incomplete(request, chosen)
        while True:
            orders = [
                _verdict_order(
                    request,
                    each,
                    actor,
                    ends or expiries.end_of_lapsed(each),
                    _ApprovalContext(
                        origins.get(each.path),
                        sessions.get(each.path),
                        confirmed.get(each.path, ()),
                        included.get(each.path),
                        each.path in proposed,
                        accepted.get(each.path),
                    ),
                )
                for each in chosen.projects
            ]
            fresh, renewed = _with_effect(request, chosen.catalog, orders)
            try:
                inputs = [*_rule_orders(chosen, actor), *chosen.unseen, *fresh]
                made = await self._applied(request, inputs, chosen.projects, found)
                break
            except OrderRefused:
                # In a selection, one project that has just changed does not stop the others.
                unchanged = chosen.without_changed(self.ledger.catalog)
                if request.select is Selection.NAMED or not 0 < len(unchanged) < len(chosen):
                    raise
                chosen = unchanged
        if request.effect is ApplyMode.APPLY:
            await note_taken_off(self.ledger, made, actor)
        answer = self._decided(chosen, made.catalog, {order.path for order in fresh})
        if approves:
            self._add_publication_facts(chosen, before, made.catalog, answer)
            _add_notes_on_chosen(chosen, renewed, answer)
        await self._add_confirmation(request, _Effect(before, made, found), answer)
        return answer

    async def _origins_to_keep(
        self, request: DecideRequest, chosen: ProjectSelection
    ) -> Mapping[bytes, str]:
        """Return the origins that an approval records."""
        if request.verb is not DecisionVerb.APPROVE or request.effect is ApplyMode.DRY_RUN:
            return {}
        return await self.reader.origins(chosen.projects)

    async def _found_below(self, request: DecideRequest, chosen: ProjectSelection) -> FoundBelow:
        """Return what an approval would show clients that the catalog does not have."""
        if request.verb is not DecisionVerb.APPROVE:
            return NOTHING_FOUND
        return await self.gate.found_below(self.ledger.catalog, chosen.projects)

    async def _add_confirmation(
        self, request: DecideRequest, effect: _Effect, answer: DecideResult
    ) -> None:
        """Add to a dry run what a person has to confirm, and to a decision what is not saved."""
        if request.effect is ApplyMode.DRY_RUN:
            confirmation = await self.gate.confirmation_of(
                effect.before, effect.made, effect.found
            )
            if confirmation is not None:
                answer["confirmation"] = confirmation
        elif self.ledger.unsaved:
            answer["warnings"].append(
                "the disk refuses to keep this: it holds until the daemon ends"
            )

    def _add_publication_facts(
        self, chosen: ProjectSelection, before: Catalog, after: Catalog, answer: DecideResult
    ) -> None:
        """Add worktrees, Git directories, and published paths to `answer`."""
        trees = worktree_items(after, (project.path for project in chosen.projects))
        answer["worktrees"] = [tree for tree in trees if after.ids[tree["id"]] not in before.roots]
        fresh = {item["id"] for item in answer["items"]}
        answer["shared_git"] = [
            git
            for project in chosen.projects
            if project.id in fresh and (git := _shared_git_of(after, project.path)) is not None
        ]
        answer["published"] = [
            text_of(path) for path in sorted(after.roots.keys() - before.roots.keys())
        ]

    async def _applied(
        self,
        request: DecideRequest,
        orders: Sequence[LedgerOrder | ProjectObserved],
        seen: Sequence[Project],
        found: FoundBelow,
    ) -> Plan:
        if request.effect is ApplyMode.DRY_RUN:
            return self.ledger.dry_run(orders)
        check = refuse_unconfirmed(request.confirmed, found)
        return await self.ledger.execute(orders, seen=seen, check=check)

    def _decided(
        self, chosen: ProjectSelection, after: Catalog, changed: set[bytes]
    ) -> DecideResult:
        parents = self.discovery.parents()
        known = [after.projects[p.path] for p in chosen.projects if p.path in after.projects]
        dropped = [p for p in chosen.projects if p.path not in after.projects]
        gone = [p for p in dropped if p.observed.presence is Presence.MISSING]
        unlisted = [p for p in dropped if p.observed.presence is not Presence.MISSING]
        withheld = [
            f"{safe_label(after.name_of(p))} is withheld: it holds a denied project"
            for p in after.containing(changed)
            if after.judgments[p.path].reason is VerdictReason.HOLDS_DENIED
        ]
        decided = DecideResult(
            revision=self.ledger.revision,
            items=[
                *project_items(after, (p for p in known if p.path in changed), parents),
                *dropped_project_items(chosen.catalog, gone, parents),
                *unlisted_project_items(chosen.catalog, unlisted, parents),
            ],
            unchanged=project_items(after, (p for p in known if p.path not in changed), parents),
            warnings=[*chosen.warnings, *withheld, *map(_how_to_list_again, _undecided(unlisted))],
        )
        if chosen.rules:
            numbers = {rule.number for rule in chosen.rules}
            rules = (rule for rule in after.rules if rule.number in numbers)
            decided["rules"] = [rule_item(rule, after) for rule in rules]
        return decided


def _undecided(projects: Iterable[Project]) -> Iterable[Project]:
    """Return those that nobody decided about: the history has no decision that undo could take."""
    return (project for project in projects if project.ruling == UNDECIDED)


def _how_to_list_again(project: Project) -> str:
    shown = safe_label(project.path, limit=None)
    return f"undo does not list {shown} again, because it was undecided; rootsd add does"


def _command_text(request: DecideRequest) -> str:
    what = request.refs if request.select is Selection.NAMED else (f"--{request.select.value}",)
    under = () if request.under is None else ("--under", request.under)
    words = " ".join((request.verb.value, *what, *under))
    return safe_label(words, COMMAND_TEXT_LIMIT)


def _check_request(request: DecideRequest, catalog: Catalog) -> None:
    """Raise BadRequest for an invalid duration, name, or tag. The name is checked again later."""
    if request.lasts is not None and not 0 < request.lasts <= MAX_APPROVAL_S:
        raise BadRequest("an approval lasts from a second to ten years")
    if request.name is not None:
        check_label(request.name)
    for tag in request.tags:
        check_tag(tag, catalog)


def _check_new_name(request: DecideRequest, chosen: ProjectSelection) -> None:
    """Raise NameTaken or BadRequest if the projects cannot get the name of the request."""
    if request.name is None:
        return
    if len(chosen.projects) != 1:
        raise NameTaken("--as names one project, but several match", "rootsd ls")
    check_name(request.name, chosen.projects[0].path, chosen.catalog)


def _rule_orders(chosen: ProjectSelection, actor: Actor) -> list[ApproveRule]:
    return [ApproveRule(rule.number, actor) for rule in chosen.rules]


class _Effect(Struct, frozen=True):
    """The plan of a request, the catalog before it, and what the gate found below its roots."""

    before: Catalog
    made: Plan
    found: FoundBelow


class _ApprovalContext(Struct, frozen=True):
    """The facts about one project that the catalog does not have.

    They are its origin, the session that the approval is about, its worktrees that the person
    confirmed, the undecided checkout whose Git directory the person included, whether the request
    itself has proposed the folder, and why it is incomplete, if the person knows that.
    """

    origin: str | None
    session: SessionKey | None
    worktrees: tuple[ConfirmedWorktree, ...]
    shared_git: Identity | None
    is_proposed: bool
    incomplete: IncompleteReason | None


def _verdict_order(
    request: DecideRequest,
    project: Project,
    actor: Actor,
    expires: Expiry | None,
    context: _ApprovalContext,
) -> VerdictOrder:
    match request.verb:
        case DecisionVerb.APPROVE:
            approval = Approve(
                path=project.path,
                identity=project.observed.identity,
                actor=actor,
                name=request.name,
                tags=request.tags,
                access=_access(request, project, context.session),
                expires=expires,
                origin=context.origin,
                number=_restored_number(request, project),
                worktrees=context.worktrees,
                session=session_for(request, context.session),
                shared_git=context.shared_git,
                proposes=context.is_proposed,
                incomplete=context.incomplete,
            )
            if should_reinstate(request, project):
                return Reinstate(project.path, approval, actor)
            return approval
        case DecisionVerb.DENY:
            return Deny(project.path, actor, context.is_proposed)
        case DecisionVerb.FORGET:
            return Forget(project.path, actor)


def _add_notes_on_chosen(
    chosen: ProjectSelection, renewed: Container[bytes], answer: DecideResult
) -> None:
    """Add the projects that were approved before, and those that are incomplete."""
    if again := [p.id for p in chosen.projects if p.path in renewed]:
        answer["renewed"] = again
    if incomplete := _incomplete_items(chosen):
        answer["incomplete"] = incomplete


def _seen(project: Project) -> ProjectObserved:
    seen = project.observed
    return ProjectObserved(
        project.path, seen.kind, seen.identity, seen.incomplete, seen.main_checkout, seen.named
    )


def _incomplete_items(chosen: ProjectSelection) -> list[IncompleteItem]:
    """Return the incomplete projects of an approval, with what they lack."""
    return [
        IncompleteItem(
            id=project.id,
            name=chosen.catalog.name_of(project),
            reason=reason.value,
            lacks=reason.lacks,
        )
        for project in chosen.projects
        if (reason := project.observed.incomplete) is not None
    ]


def _accepted_incomplete(
    request: DecideRequest, chosen: ProjectSelection
) -> Mapping[bytes, IncompleteReason]:
    """Return what the person knows to be missing, by path. A dry run shows it to the person.

    Only a name can mean an incomplete project: all other selections leave it out.
    """
    if request.verb is not DecisionVerb.APPROVE or request.select is not Selection.NAMED:
        return {}
    is_shown = request.effect is ApplyMode.DRY_RUN
    if len(request.incomplete) != len(request.incomplete_shown):
        raise BadRequest("each incomplete project needs the reason that was shown")
    known = dict(zip(request.incomplete, request.incomplete_shown, strict=True))
    return {
        project.path: reason
        for project in chosen.projects
        if (reason := project.observed.incomplete) is not None
        and (is_shown or known.get(project.id) == reason.value)
    }


def _check_incomplete(request: DecideRequest, chosen: ProjectSelection) -> None:
    """Raise NotPresent if a project is incomplete and the person has not accepted that."""
    accepted = _accepted_incomplete(request, chosen)
    for project in chosen.projects:
        reason = project.observed.incomplete
        if reason is not None and project.path not in accepted:
            raise incomplete_error(project.path, reason)


def _confirmed_worktrees(
    request: DecideRequest, catalog: Catalog
) -> Mapping[bytes, tuple[ConfirmedWorktree, ...]]:
    """Return the worktrees that the person confirmed, by the path of their main checkout.

    Raises IdentityChanged if one is not the directory that was shown.
    """
    if len(request.worktrees) != len(request.worktrees_shown):
        raise BadRequest("each worktree needs the identity that was shown", "rootsd pending")
    confirmed: dict[bytes, tuple[ConfirmedWorktree, ...]] = {}
    for id_, fingerprint in zip(request.worktrees, request.worktrees_shown, strict=True):
        path = catalog.ids.get(id_)
        project = catalog.projects[path] if path is not None else None
        identity = project.observed.identity if project is not None else None
        main = project.observed.main_checkout if project is not None else None
        if (
            path is None
            or main is None
            or identity is None
            or identity_fingerprint(identity) != fingerprint
        ):
            shown = safe_label(id_ if path is None else path, limit=None)
            raise IdentityChanged(f"{shown} is not the worktree you were shown", "rootsd pending")
        confirmed[main] = (*confirmed.get(main, ()), ConfirmedWorktree(path, identity))
    return confirmed


def _included_checkouts(request: DecideRequest, catalog: Catalog) -> Mapping[bytes, Identity]:
    """Return the checkouts whose Git directories the person included, by the path of the root.

    Raises IdentityChanged if one is not the directory that was shown.
    """
    if len(request.shared_git) != len(request.shared_git_shown):
        raise BadRequest("each Git directory needs the identity that was shown", "rootsd pending")
    included: dict[bytes, Identity] = {}
    for id_, fingerprint in zip(request.shared_git, request.shared_git_shown, strict=True):
        path = catalog.ids.get(id_)
        git = shared_git(catalog, catalog.projects[path]) if path is not None else None
        if (
            path is None
            or git is None
            or git.identity is None
            or identity_fingerprint(git.identity) != fingerprint
        ):
            shown = safe_label(id_ if path is None else path, limit=None)
            raise IdentityChanged(
                f"the Git directory of {shown} is not in the checkout you were shown",
                "rootsd pending",
            )
        included[path] = git.identity
    return included


def _shared_git_of(catalog: Catalog, path: bytes) -> SharedGitItem | None:
    """Return the Git directory of an undecided checkout that the approved project at `path` uses.

    Return None for an approval by a rule or for one session. A session that requests a folder does
    not request a Git directory elsewhere.
    """
    project = catalog.projects.get(path)
    decision = project.ruling.decision if project is not None else None
    if (
        project is None
        or decision is None
        or decision.verdict is not Verdict.APPROVED
        or decision.session is not None
    ):
        return None
    git = shared_git(catalog, project)
    if git is None or git.access not in (GitAccess.CHECKOUT_PENDING, GitAccess.INCLUDED):
        return None
    return shared_git_item(catalog, project)


def _access(request: DecideRequest, project: Project, session: SessionKey | None) -> Access:
    """Return the access to give. A restored approval gives no more access than it gave before."""
    ruling, access = project.ruling, access_for(request, project, session)
    return access if ruling.lapse is None else stricter_access(access, ruling.kept_access)


def _restored_number(request: DecideRequest, project: Project) -> int | None:
    """Return the number of the lapsed approval that is restored, or None for a new approval.

    An approval with a new number appears in running sessions. A request to restore everything that
    lapsed brings back earlier approvals, so they keep their numbers.
    """
    lapse = project.ruling.lapse
    is_restored = request.select is Selection.LAPSED and lapse is not None
    return lapse.number if is_restored and lapse is not None else None


def _with_effect(
    request: DecideRequest, catalog: Catalog, orders: Sequence[VerdictOrder]
) -> tuple[list[VerdictOrder], set[bytes]]:
    """Return the orders that do something, and the paths that are only approved again."""
    no_change = [each for each in orders if _is_unchanged(catalog, each)]
    renewed = {each.path for each in no_change if _is_renewed(request, each)}
    skipped = {each.path for each in no_change} - renewed
    return [order for order in orders if order.path not in skipped], renewed


def _is_renewed(request: DecideRequest, order: VerdictOrder) -> bool:
    """Return whether a person approves an approved project again, by its name.

    Running sessions then see it. A request about many projects covers only the pending ones.
    """
    is_named = request.select is Selection.NAMED and not any(map(is_glob, request.refs))
    return is_named and isinstance(order, Approve)


def _is_unchanged(catalog: Catalog, order: VerdictOrder) -> bool:
    ruling = catalog.projects[order.path].ruling
    match order:
        case Approve():
            return (
                # If something overrides the approval, plan it again, which reports the reason.
                catalog.judgments[order.path].reason is VerdictReason.APPROVED
                and ruling.decision is not None
                and ruling.decision.access is order.access
                and ruling.decision.expires == order.expires
                and ruling.decision.session == order.session
                and order.name in (None, ruling.name)
                and set(order.tags) <= set(ruling.tags)
                and not order.worktrees
                and order.shared_git in (None, ruling.decision.shared_git)
            )
        case Reinstate():
            return False
        case Deny():
            return ruling.decision is not None and ruling.decision.verdict is Verdict.DENIED
        case Forget():
            # To forget what only a person proposed removes it.
            return ruling == UNDECIDED and not is_only_named(catalog.projects[order.path])
