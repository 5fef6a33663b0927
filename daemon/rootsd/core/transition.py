"""Apply one input to one project. No other code changes a project.

An event changes the observed state. It can take an approval away, but never give one. An order
changes the ruling, or is refused.
"""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import assert_never

from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.errors import CannotUndo, IdentityChanged, NotPresent, UnknownProject
from rootsd.core.inputs import (
    Accept,
    ApprovalExpired,
    Approve,
    Deny,
    Forget,
    InputEvent,
    PolicyRuleEnded,
    ProjectGone,
    ProjectInspected,
    ProjectNamed,
    ProjectObserved,
    ProjectOrder,
    ProjectUnreachable,
    ProjectUnsafe,
    Reinstate,
    Rename,
    Restore,
    Retag,
    SessionEnded,
)
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    UNDECIDED,
    ActorKind,
    Decision,
    Identity,
    IncompleteReason,
    Lapse,
    LapseReason,
    ObservedState,
    Presence,
    Project,
    ProjectKind,
    Ruling,
    Verdict,
    has_lost_git,
)

NO_STABLE_IDENTITY = (
    "its file system cannot distinguish a folder from another one that takes its place"
)
_HAZARDS = {
    LapseReason.EXPOSED: "others can write to it or to a folder above it",
    LapseReason.REFUSED_PLACE: "it lies in a place that can never be a root",
    LapseReason.REPLACED: "it was replaced",
    LapseReason.MOUNTED_AGAIN: "its file system was mounted again",
    LapseReason.MOUNTED_INSIDE: "another file system was mounted inside it",
    LapseReason.RETARGETED: "its git data lies elsewhere",
    LapseReason.STORE_RESTORED: "the store was restored",
    LapseReason.EXPIRED: "its approval ended",
    LapseReason.SESSION_ENDED: "its approval ended with a session",
    LapseReason.POLICY: "the policy refuses it",
    LapseReason.OTHER_OWNER: "it belongs to another user",
    LapseReason.CHANGED: "files that run by themselves changed",
}
_EventOfKnown = (
    ProjectUnsafe
    | ProjectNamed
    | ProjectInspected
    | ApprovalExpired
    | SessionEnded
    | PolicyRuleEnded
)
_ONLY_HAZARDS = (LapseReason.POLICY, LapseReason.OTHER_OWNER)


def apply_input(
    project: Project | None, event: InputEvent | ProjectOrder, new_id: str, now: datetime
) -> Project | None:
    """Return `project` after `event`, or None if there is nothing left to keep.

    `new_id` is the id for a new project. Raises OrderRefused for an order: UnknownProject,
    NotPresent, or IdentityChanged. Raises ValueError for an impossible observation: a folder
    without an absolute path, or a URI with one.
    """
    match event:
        case ProjectObserved():
            if not event.proposed and (project is None or _is_only_proposed(project)):
                return None
            return _after_observation(project, event, new_id, now)
        case ProjectGone():
            if project is not None and event.lapse is not None:
                project = _lapsed(project, event.lapse, now)
            return _absent(project, Presence.MISSING, now)
        case ProjectUnreachable():
            return _absent(project, Presence.SUSPENDED, now)
        case _ if isinstance(event, _EventOfKnown):
            return _after_event(project, event, now) if project else None
        case _:
            return _ordered(_known(project, event), event, now)


def _after_event(project: Project, event: _EventOfKnown, now: datetime) -> Project:
    match event:
        case ProjectUnsafe():
            return _hazardous(project, event, now)
        case ProjectNamed():
            kept = project.name or event.name
            return replace(project, observed=replace(project.observed, name=kept))
        case ProjectInspected():
            return _inspected(project, event, now)
        case ApprovalExpired():
            return _expired(project, event, now)
        case SessionEnded():
            return _after_session(project, event, now)
        case PolicyRuleEnded():
            return _without_policy_grant(project)
        case _:
            assert_never(event)


def _ordered(project: Project, order: ProjectOrder, now: datetime) -> Project | None:
    match order:
        case Approve():
            return _approved(project, order, now)
        case Reinstate():
            return _reinstated(project, order)
        case Accept():
            return _accepted(project, order)
        case Deny():
            return _denied(project, order, now)
        case Forget():
            return _forgotten(project)
        case Rename():
            by_person = project.ruling.by_person or project.ruling.name != order.name
            ruling = replace(project.ruling, name=order.name, by_person=by_person)
            return replace(project, ruling=ruling)
        case Retag():
            tags = tuple(sorted({*project.ruling.tags, *order.on}.difference(order.off)))
            return replace(project, ruling=replace(project.ruling, tags=tags))
        case Restore():
            return _restored(project, order, now)
        case _:
            assert_never(order)


def _after_observation(
    project: Project | None, event: ProjectObserved, new_id: str, now: datetime
) -> Project:
    if event.path.startswith(b"/") is (event.kind is ProjectKind.URI):
        raise ValueError("a folder has an absolute path, and a URI has none")
    seen = ObservedState(
        kind=event.kind,
        identity=event.identity,
        first_seen=now,
        incomplete=event.incomplete,
        main_checkout=event.main_checkout,
        named=event.named,
    )
    if project is None:
        return Project(path=event.path, id=new_id, observed=seen)
    old = project.observed
    seen = replace(seen, name=old.name)
    if old.identity == seen.identity or _is_same(old.identity, seen.identity):
        seen = replace(seen, first_seen=old.first_seen, inspection=old.inspection)
    if (reason := _why_lapsed(project, seen)) is not None:
        project = _lapsed(project, reason, now)
    elif seen.identity is not None:
        project = _without_replaced_link(project, seen.identity, now)
    return replace(project, observed=seen)


def _without_replaced_link(project: Project, seen: Identity, now: datetime) -> Project:
    """Return `project` without its grant as a worktree if its `.git` file was replaced."""
    ruling = project.ruling
    kept = tuple(
        grant
        for grant in ruling.grants
        if grant.actor.kind is not ActorKind.MAIN_CHECKOUT or grant.identity.keeps_git_file(seen)
    )
    if kept == ruling.grants:
        return project
    rest = replace(ruling, grants=kept)
    if rest.approves:
        return replace(project, ruling=rest)
    return _lapsed(project, LapseReason.RETARGETED, now)


def _why_lapsed(project: Project, seen: ObservedState) -> LapseReason | None:
    """Return why the folder is no longer the approved one, or None.

    The result is also None if there was no approval.
    """
    if seen.kind is ProjectKind.URI:
        return None
    ruling = project.ruling
    approved = [grant.identity for grant in ruling.grants]
    if ruling.decision is not None and ruling.decision.verdict is Verdict.APPROVED:
        approved.append(ruling.decision.identity) if ruling.decision.identity else None
    if not approved:
        return None
    now = seen.identity
    if now is None:
        return LapseReason.REPLACED
    if others := [identity for identity in approved if not identity.same_as(now)]:
        is_other_mount = now.mount is not None and any(
            each.mount not in (None, now.mount) for each in others
        )
        return LapseReason.MOUNTED_AGAIN if is_other_mount else LapseReason.REPLACED
    if not all(identity.keeps_git(now) for identity in approved):
        return LapseReason.RETARGETED
    if not all(identity.keeps_mounts(now) for identity in approved):
        return LapseReason.MOUNTED_INSIDE
    return LapseReason.RETARGETED if _has_other_main_checkout(project.observed, seen) else None


def _has_other_main_checkout(before: ObservedState, seen: ObservedState) -> bool:
    """Return whether a worktree now belongs to another main checkout.

    The result is False while its git data cannot be read, because the main checkout is unknown.
    """
    if has_lost_git(before.identity) or has_lost_git(seen.identity):
        return False
    return before.main_checkout != seen.main_checkout


def has_stable_identity(identity: Identity | None) -> bool:
    """Return whether an identity distinguishes its folder from another one in the same place.

    The result is True for None, which means that there is no folder, or none was observed.
    """
    return identity is None or identity.same_as(identity)


def _inspected(project: Project, event: ProjectInspected, now: datetime) -> Project:
    """Return the project after a look into it. The first one is what its approval is based on."""
    if project.observed.identity != event.identity:  # another folder is there by now
        return project
    seen = replace(project, observed=replace(project.observed, inspection=event.inspection))
    if seen.ruling.files is None and seen.ruling.approves:
        files = event.inspection.files if event.accepted is None else event.accepted
        seen = replace(seen, ruling=replace(seen.ruling, files=files))
    if event.lapse is not None and seen.changed_files:
        return _lapsed(seen, event.lapse, now)
    return seen


def _accepted(project: Project, order: Accept) -> Project:
    inspection = project.observed.inspection
    if inspection is None or inspection.files != order.files:
        shown = safe_label(project.path, limit=None)
        raise IdentityChanged(
            f"the files of {shown} are not those that you were shown", "rootsd review --changed"
        )
    return replace(project, ruling=replace(project.ruling, files=project.accepted_files))


def _is_only_proposed(project: Project) -> bool:
    """Return whether no person has decided about `project`, tagged it, or named it."""
    return project.ruling == UNDECIDED and not project.observed.named


def _is_undecided_by_people(project: Project) -> bool:
    """Return whether to drop `project` when its folder is gone, because nobody decided about it.

    Agents create and remove worktrees all day, and these inherit an approval. A lapse of the whole
    store stays, because a person may have denied the worktree.
    """
    ruling, seen = project.ruling, project.observed
    if ruling == UNDECIDED:
        return True
    return (
        seen.kind is ProjectKind.GIT_WORKTREE
        and not (ruling.by_person or ruling.tags or ruling.decision or seen.named)
        and (ruling.lapse is None or ruling.lapse.reason is not LapseReason.STORE_RESTORED)
    )


def is_only_named(project: Project) -> bool:
    """Return whether only a person has proposed `project`, so that no scan finds it again."""
    return project.observed.named or project.observed.kind is ProjectKind.URI


def _is_same(one: Identity | None, other: Identity | None) -> bool:
    return one is not None and other is not None and one.same_as(other)


def _absent(project: Project | None, presence: Presence, now: datetime) -> Project | None:
    if project is None or project.observed.kind is ProjectKind.URI:
        return project
    if presence is Presence.MISSING and _is_undecided_by_people(project):
        return None
    seen = project.observed
    if presence is Presence.MISSING and seen.identity is not None and seen.identity.is_its_path:
        # Nothing would distinguish a folder that is made in its place.
        project = _lapsed(project, LapseReason.REPLACED, now)
    since = now if seen.presence is Presence.PRESENT else seen.absent_since
    return replace(project, observed=replace(seen, presence=presence, absent_since=since))


def _hazardous(project: Project, event: ProjectUnsafe, now: datetime) -> Project:
    marked = replace(project, observed=replace(project.observed, hazard=event.reason))
    if event.reason in _ONLY_HAZARDS:
        return marked  # the approval counts again when the policy allows it, or the owner is back
    return _lapsed(marked, event.reason, now)


def _lapsed(project: Project, reason: LapseReason, now: datetime) -> Project:
    """Return the project without its approvals, but with its denial.

    The name, tags, and access stay for the next approval.
    """
    ruling = project.ruling
    decision = ruling.decision
    approved = decision is not None and decision.verdict is Verdict.APPROVED
    if not ruling.approves:
        return project
    return replace(
        project,
        ruling=replace(
            ruling,
            decision=None if approved else decision,
            grants=(),
            lapse=make_lapse(decision, reason, now),
            kept_access=ruling.access,
            files=ruling.files if reason is LapseReason.CHANGED else None,
        ),
    )


def make_lapse(
    decision: Decision | None, reason: LapseReason, now: datetime, by: ActorKind | None = None
) -> Lapse:
    """Return the record of a lapsed approval. `decision` is its decision, if there was one."""
    if decision is None:
        return Lapse(reason, now, by)
    for_session = decision.session is not None
    return Lapse(reason, now, by, decision.expires, decision.number, for_session)


def _expired(project: Project, event: ApprovalExpired, now: datetime) -> Project:
    """Return the project without the approval that expired. Grants have no end, so they stay."""
    decision = project.ruling.decision
    if decision is None or decision.expires != event.expires:
        return project
    return _ended(project, LapseReason.EXPIRED, now)


def _after_session(project: Project, event: SessionEnded, now: datetime) -> Project:
    """Return the project without the approval for the session that ended."""
    decision = project.ruling.decision
    if decision is None or decision.session != event.session:
        return project
    return _ended(project, LapseReason.SESSION_ENDED, now)


def _without_policy_grant(project: Project) -> Project:
    ruling = project.ruling
    kept = tuple(grant for grant in ruling.grants if grant.actor.kind is not ActorKind.POLICY)
    return replace(project, ruling=replace(ruling, grants=kept))


def _ended(project: Project, reason: LapseReason, now: datetime) -> Project:
    ruling = project.ruling
    # The access for one session does not limit a later approval.
    kept = Access.READ_WRITE if reason is LapseReason.SESSION_ENDED else ruling.access
    ended = replace(ruling, decision=None, lapse=Lapse(reason, now), kept_access=kept)
    return replace(project, ruling=ended)


def _known(project: Project | None, order: ProjectOrder) -> Project:
    if project is None:
        raise UnknownProject(
            f"no project is known at {safe_label(order.path, limit=None)}", "rootsd scan"
        )
    return project


def _approved(project: Project, order: Approve, now: datetime) -> Project:
    _check_approvable(project, order.identity, order.incomplete)
    decision = Decision(
        Verdict.APPROVED,
        order.actor,
        now,
        order.identity,
        order.access,
        order.expires,
        order.number or 0,
        order.since_ns,
        order.session,
        order.shared_git,
        order.proposes,
    )
    return replace(
        project,
        ruling=Ruling(
            decision=decision,
            grants=project.ruling.grants,
            name=order.name or project.ruling.name,
            tags=tuple(sorted({*project.ruling.tags, *order.tags})),
            origin=order.origin,
            by_person=True,
            files=project.accepted_files,
        ),
    )


def _reinstated(project: Project, order: Reinstate) -> Project:
    """Return the project as pending, without its lapse. Its name, tags, and access stay."""
    _check_approvable(project, order.approval.identity, order.approval.incomplete)
    ruling = replace(project.ruling, lapse=None, by_person=True, files=project.accepted_files)
    return replace(project, ruling=ruling)


def _restored(project: Project, order: Restore, now: datetime) -> Project | None:
    """Return the project with an earlier ruling, but without grants. Rules may grant again."""
    shown = safe_label(project.path, limit=None)
    if replace(project.ruling, grants=()) != replace(order.undone, grants=()):
        raise CannotUndo(f"another decision about {shown} was made since", "rootsd log")
    decision = order.ruling.decision
    if decision is not None and decision.verdict is Verdict.APPROVED:
        _check_approvable(project, decision.identity)
        if decision.expires is not None and decision.expires.at <= now:
            raise CannotUndo(
                f"the approval of {shown} would have expired by now", f"rootsd approve {shown}"
            )
    restored = replace(project, ruling=replace(order.ruling, grants=()))
    is_gone = project.observed.presence is Presence.MISSING
    undone = order.undone.decision
    is_unproposed = undone is not None and undone.proposes and is_only_named(project)
    if is_unproposed and restored.ruling == UNDECIDED:
        return None
    return None if is_gone and _is_undecided_by_people(restored) else restored


def incomplete_error(path: bytes, reason: IncompleteReason) -> NotPresent:
    """Return the refusal of an approval that does not say that the project is incomplete."""
    shown = safe_label(path, limit=None)
    return NotPresent(
        f"{shown} is incomplete ({reason.value}): {reason.lacks}",
        f"rootsd approve {shlex.quote(shown)} --incomplete",
    )


def _check_approvable(
    project: Project,
    shown_identity: Identity | None,
    shown_incomplete: IncompleteReason | None = None,
) -> None:
    seen = project.observed
    shown = safe_label(project.path, limit=None)
    if seen.presence is not Presence.PRESENT:
        raise NotPresent(f"{shown} is {seen.presence.value}", "rootsd scan")
    if seen.incomplete is not None and seen.incomplete is not shown_incomplete:
        raise incomplete_error(project.path, seen.incomplete)
    if seen.hazard is not None:
        is_about_mode = seen.hazard in (LapseReason.EXPOSED, LapseReason.OTHER_OWNER)
        remedy = f"ls -ld {shlex.quote(shown)}" if is_about_mode else "rootsd scan"
        raise NotPresent(f"{shown} cannot be published: {_HAZARDS[seen.hazard]}", remedy)
    if not has_stable_identity(seen.identity):
        raise NotPresent(f"{shown} cannot be approved: {NO_STABLE_IDENTITY}", "rootsd ls")
    if seen.kind is not ProjectKind.URI and not (
        shown_identity is not None
        and seen.identity is not None
        and shown_identity.holds_for(seen.identity)
    ):
        raise IdentityChanged(
            f"{shown} is not the folder you were shown: it was replaced", "rootsd pending"
        )


def _denied(project: Project, order: Deny, now: datetime) -> Project:
    """Return the project with a denial, which binds to the path and so to any folder there."""
    ruling = project.ruling
    decision = Decision(Verdict.DENIED, order.actor, now, proposes=order.proposes)
    denied = Ruling(decision=decision, name=ruling.name, tags=ruling.tags, by_person=True)
    return replace(project, ruling=denied)


def _forgotten(project: Project) -> Project | None:
    """Return the project as undecided, or None if no scan would find it again."""
    if project.observed.presence is Presence.MISSING or is_only_named(project):
        return None
    return replace(project, ruling=UNDECIDED)
