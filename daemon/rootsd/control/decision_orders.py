"""Turn a decision request about known projects into orders for the ledger.

Nothing here reads the disk or changes anything. `DecisionFacts` has what the catalog does not
have. What the person was shown travels with the request, and each order is only about that.

A session may have requested the folder that a person approves. Unless the person says otherwise,
the approval is then only for that session and only for reading.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from msgspec import Struct

from rootsd.control.references import is_glob
from rootsd.control.selection import ProjectSelection, should_reinstate
from rootsd.core.access import Access, stricter_access
from rootsd.core.catalog import Catalog
from rootsd.core.decide import VerdictReason
from rootsd.core.encoding import changes_fingerprint, identity_fingerprint
from rootsd.core.errors import IdentityChanged, UnknownProject
from rootsd.core.inputs import (
    Accept,
    Approve,
    ApproveRule,
    ConfirmedWorktree,
    Deny,
    Forget,
    Reinstate,
    VerdictOrder,
)
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    UNDECIDED,
    Actor,
    Identity,
    IncompleteReason,
    Project,
    SessionKey,
    Verdict,
)
from rootsd.core.shared_git import shared_git
from rootsd.core.transition import incomplete_error, is_only_named
from rootsd.state.expiry import ExpiryTracker
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb
from rootsd.wire.projects import Selection
from rootsd.wire.request import ApplyMode, BadRequest


class DecisionFacts(Struct, frozen=True):
    """What the catalog does not have about the projects of a request.

    `origins` has where they come from, and `sessions` the sessions that the approvals are about,
    by path. The request itself has added the projects in `proposed`.
    """

    actor: Actor
    expiries: ExpiryTracker
    origins: Mapping[bytes, str]
    sessions: Mapping[bytes, SessionKey]
    proposed: Container[bytes]


class RequestedOrders(Struct, frozen=True):
    """The orders that do something, and the paths that are only approved again."""

    fresh: Sequence[VerdictOrder]
    renewed: Container[bytes]


def orders_of(
    request: DecideRequest, chosen: ProjectSelection, known: Catalog, facts: DecisionFacts
) -> RequestedOrders:
    """Return the orders about the `chosen` projects, one for each that is not as requested yet.

    `known` is the catalog in which the worktrees and checkouts are that the person confirmed.
    Raises IdentityChanged if one of them is not the directory that was shown.
    """
    expiries = facts.expiries
    ends = None if request.lasts is None else expiries.after(request.lasts)
    confirmed = _confirmed_worktrees(request, known)
    included = _included_checkouts(request, known)
    accepted = _accepted_incomplete(request, chosen)

    def order_for(project: Project) -> VerdictOrder:
        path, actor = project.path, facts.actor
        match request.verb:
            case DecisionVerb.APPROVE:
                session = facts.sessions.get(path)
                approval = Approve(
                    path=path,
                    identity=project.observed.identity,
                    actor=actor,
                    name=request.name,
                    tags=request.tags,
                    access=_access(request, project, session),
                    expires=ends or expiries.end_of_lapsed(project),
                    origin=facts.origins.get(path),
                    number=_restored_number(request, project),
                    worktrees=confirmed.get(path, ()),
                    session=_session_for(request, session),
                    shared_git=included.get(path),
                    proposes=path in facts.proposed,
                    incomplete=accepted.get(path),
                )
                if should_reinstate(request, project):
                    return Reinstate(path, approval, actor)
                return approval
            case DecisionVerb.ACCEPT:
                seen = project.observed.inspection
                return Accept(path, actor, () if seen is None else seen.files)
            case DecisionVerb.DENY:
                return Deny(path, actor, path in facts.proposed)
            case DecisionVerb.FORGET:
                return Forget(path, actor)

    return _with_effect(request, chosen.catalog, [order_for(each) for each in chosen.projects])


def rule_orders(chosen: ProjectSelection, actor: Actor) -> list[ApproveRule]:
    """Return the orders about the lapsed rules that the request approves again."""
    return [ApproveRule(rule.number, actor) for rule in chosen.rules]


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


def check_incomplete(request: DecideRequest, chosen: ProjectSelection) -> None:
    """Raise NotPresent if a project is incomplete and the person has not accepted that."""
    accepted = _accepted_incomplete(request, chosen)
    for project in chosen.projects:
        reason = project.observed.incomplete
        if reason is not None and project.path not in accepted:
            raise incomplete_error(project.path, reason)


def check_changes_shown(request: DecideRequest, chosen: ProjectSelection) -> None:
    """Raise IdentityChanged if the person was not shown the changed files as they are."""
    for project in chosen.projects:
        shown = safe_label(project.path, limit=None)
        if not project.ruling.approves:
            raise UnknownProject(f"{shown} is not approved", "rootsd review")
        if changes_fingerprint(project) not in request.changes_shown:
            raise IdentityChanged(
                f"files of {shown} changed after you were shown them", "rootsd review --changed"
            )


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


def _session_for(request: DecideRequest, key: SessionKey | None) -> SessionKey | None:
    """Return the only session that the approval is for, or None if it is for all sessions.

    An approval with an expiry is for all sessions.
    """
    is_for_all = request.span is ApprovalScope.ALWAYS or request.lasts is not None
    return None if is_for_all else key


def _access_for(request: DecideRequest, project: Project, key: SessionKey | None) -> Access:
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


def _access(request: DecideRequest, project: Project, session: SessionKey | None) -> Access:
    """Return the access to give. A restored approval gives no more access than it gave before."""
    ruling, access = project.ruling, _access_for(request, project, session)
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
) -> RequestedOrders:
    no_change = [each for each in orders if _is_unchanged(catalog, each)]
    renewed = {each.path for each in no_change if _is_renewed(request, each)}
    skipped = {each.path for each in no_change} - renewed
    return RequestedOrders([order for order in orders if order.path not in skipped], renewed)


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
        case Accept():
            return not catalog.projects[order.path].changed_files
        case Deny():
            return ruling.decision is not None and ruling.decision.verdict is Verdict.DENIED
        case Forget():
            # To forget what only a person proposed removes it.
            return ruling == UNDECIDED and not is_only_named(catalog.projects[order.path])
