"""Derive the approvals that approve rules and approved main checkouts give.

Each of them is a *grant*. A grant binds to the observed identity. So another directory in the same
place needs another grant, and the history records each of them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import datetime

from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.decide import (
    InheritanceBlocker,
    VerdictReason,
    approving_rule,
    entry_born_ns,
    inheritance_blocker,
)
from rootsd.core.encoding import to_ns
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    Actor,
    ActorKind,
    Grant,
    LapseReason,
    Presence,
    Project,
    Ruling,
)


def derive_grants(
    judged: Catalog,
    paths: Iterable[bytes],
    now: datetime,
    confirmed: Container[bytes] = frozenset(),
) -> Iterator[Project]:
    """Yield the pending projects at `paths` that a rule or a main checkout approves, with grants.

    `confirmed` has the worktrees that a person saw and confirmed.
    """
    for path in sorted(paths):
        project = judged.projects.get(path)
        if project is not None and _can_be_granted(project, judged):
            grant = _grant_for(project, judged, now, confirmed)
            if grant is not None:
                by_person = path in confirmed or project.ruling.by_person
                named = replace(
                    project.ruling,
                    name=judged.name_of(project),
                    by_person=by_person,
                    files=project.accepted_files,
                )
                yield replace(project, ruling=_with_grant(named, grant))


def approval_start_ns(worktrees: Iterable[Project | None], now: datetime) -> int | None:
    """Return the `since_ns` of an approval that the main checkout of `worktrees` gets at `now`.

    None means `now` itself. If a known worktree was born later than `now`, the result is the
    newest birth time. So every existing worktree is older than the approval, even if the clock for
    file times is ahead of ours: on a file server, or because our clock was set back.
    """
    births = (entry_born_ns(tree.observed.identity) for tree in worktrees if tree is not None)
    newest = max((born for born in births if born is not None), default=0)
    return newest if newest > to_ns(now) else None


def _can_be_granted(project: Project, judged: Catalog) -> bool:
    seen = project.observed
    return (
        judged.judgments[project.path].reason in (VerdictReason.UNDECIDED, VerdictReason.LAPSED)
        and seen.presence is Presence.PRESENT
        and seen.incomplete is None
        and seen.hazard is None
        and seen.identity is not None
        and seen.identity.same_as(seen.identity)  # otherwise the grant would never count
        and not _needs_person(project)
        and judged.places.why_no_root(project.path) is None
    )


def _needs_person(project: Project) -> bool:
    """Return whether only a person may approve `project` again.

    The store may have lost a denial of it with the end of its history, or its files changed.
    """
    lapse = project.ruling.lapse
    person_only = (LapseReason.STORE_RESTORED, LapseReason.CHANGED)
    return lapse is not None and lapse.reason in person_only


def _grant_for(
    project: Project, judged: Catalog, now: datetime, confirmed: Container[bytes]
) -> Grant | None:
    identity = project.observed.identity
    assert identity is not None, "_can_be_granted checked it"
    context = judged.decision_context
    giver = None
    if rule := approving_rule(project, context):
        giver = Actor(ActorKind.RULE, str(rule.number))
    elif entry := context.policy.approve_rule(project.path):
        giver = Actor(ActorKind.POLICY, safe_label(entry.pattern, limit=None))
    if giver is not None:
        worktrees = (judged.projects[path] for path in judged.worktrees.get(project.path, ()))
        return Grant(giver, identity, now, approval_start_ns(worktrees, now))
    main = project.observed.main_checkout
    since_ns = context.approved_since(main) if main is not None else None
    if main is None or since_ns is None:
        return None
    blocker = inheritance_blocker(project, context)
    if blocker is None or (blocker is InheritanceBlocker.OLDER and project.path in confirmed):
        actor = Actor(ActorKind.MAIN_CHECKOUT, safe_label(main, limit=None))
        return Grant(actor, identity, now, since_ns)
    return None


def _with_grant(ruling: Ruling, grant: Grant) -> Ruling:
    kept = tuple(each for each in ruling.grants if each.actor.kind is not grant.actor.kind)
    return replace(ruling, grants=(*kept, grant), lapse=None)
