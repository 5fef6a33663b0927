"""Approvals that no person typed: a rule, or an approved main checkout, speaks for a project.

Each becomes a grant, bound to the identity seen, so that it is a row of the history, and so that
another directory in the same place needs another grant.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground, approving_rule, doubt_about
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    Actor,
    ActorKind,
    Grant,
    LapseReason,
    Presence,
    Project,
)
from rootsd.core.records import to_ns
from rootsd.core.worktrees import Doubt, entry_born_ns


def given(
    judged: Catalog,
    paths: Iterable[bytes],
    now: datetime,
    confirmed: Container[bytes] = frozenset(),
) -> Iterator[Project]:
    """Yield each pending project at `paths` that something speaks for, with its grant.

    `confirmed` are the worktrees that a person was shown and confirmed.
    """
    for path in sorted(paths):
        project = judged.projects.get(path)
        if project is not None and _can_be_granted(project, judged):
            grant = _grant_for(project, judged, now, is_confirmed=path in confirmed)
            if grant is not None:
                yield _with_grant(project, grant, judged.name_of(project))


def since_now(trees: Iterable[Project | None], now: datetime) -> int | None:
    """Return the `since_ns` of an approval that is given `now` to the main checkout of `trees`.

    It is None for `now` itself. If one of the known worktrees was born later than that, it is the
    birth of the newest: all that exist are then older than the approval, even if the clock that
    stamps files is ahead of ours, on a server or because ours was set back.
    """
    births = (entry_born_ns(tree.sighting.identity) for tree in trees if tree is not None)
    newest = max((born for born in births if born is not None), default=0)
    return newest if newest > to_ns(now) else None


def _can_be_granted(project: Project, judged: Catalog) -> bool:
    seen = project.sighting
    return (
        judged.judgements[project.path].ground in (Ground.UNDECIDED, Ground.LAPSED)
        and seen.presence is Presence.PRESENT
        and seen.incomplete is None
        and seen.hazard is None
        and seen.identity is not None
        and seen.identity.same_as(seen.identity)  # else the grant would not hold
        and not _may_have_been_revoked(project)
        and judged.places.why_no_root(project.path) is None
    )


def _may_have_been_revoked(project: Project) -> bool:
    """A store that lost its end may have lost a denial: only a person brings such a root back."""
    lapse = project.ruling.lapse
    return lapse is not None and lapse.reason is LapseReason.STORE_RESTORED


def _grant_for(
    project: Project, judged: Catalog, now: datetime, *, is_confirmed: bool
) -> Grant | None:
    identity = project.sighting.identity
    assert identity is not None, "_can_be_granted looked"
    around = judged.surroundings
    if rule := approving_rule(project, around):
        actor = Actor(ActorKind.RULE, str(rule.number))
        trees = (judged.projects[path] for path in judged.linked.get(project.path, ()))
        return Grant(actor, identity, now, since_now(trees, now))
    main = project.sighting.main_checkout
    since_ns = around.approved_since(main) if main is not None else None
    if main is None or since_ns is None:
        return None
    doubt = doubt_about(project, around)
    if doubt is None or (doubt is Doubt.OLDER and is_confirmed):
        actor = Actor(ActorKind.MAIN_CHECKOUT, safe_label(main, limit=None))
        return Grant(actor, identity, now, since_ns)
    return None


def _with_grant(project: Project, grant: Grant, name: str) -> Project:
    ruling = project.ruling
    kept = tuple(each for each in ruling.grants if each.actor.kind is not grant.actor.kind)
    return replace(project, ruling=replace(ruling, grants=(*kept, grant), lapse=None, name=name))
