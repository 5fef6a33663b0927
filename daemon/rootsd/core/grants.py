"""Approvals that no person typed: a rule, or an approved main checkout, speaks for a project.

Each becomes a grant, bound to the identity seen, so that it is a row of the history, and so that
another directory in the same place needs another grant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from rootsd.core.catalog import Catalog
from rootsd.core.decide import Ground, approving_rule
from rootsd.core.labels import safe_label
from rootsd.core.model import (
    Actor,
    ActorKind,
    Grant,
    LapseReason,
    Presence,
    Project,
)


def given(judged: Catalog, paths: Iterable[bytes], now: datetime) -> Iterator[Project]:
    """Those of the pending projects at `paths` that something speaks for, each with its grant."""
    for path in sorted(paths):
        project = judged.projects.get(path)
        if project is not None and _can_be_granted(project, judged):
            actor = _who_speaks_for(project, judged)
            if actor is not None:
                yield _with_grant(project, actor, judged.name_of(project), now)


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


def _who_speaks_for(project: Project, judged: Catalog) -> Actor | None:
    around = judged.surroundings
    main = project.sighting.main_checkout
    if rule := approving_rule(project, around):
        return Actor(ActorKind.RULE, str(rule.number))
    if main is not None and around.approved(main):
        return Actor(ActorKind.MAIN_CHECKOUT, safe_label(main, limit=None))
    return None


def _with_grant(project: Project, actor: Actor, name: str, now: datetime) -> Project:
    identity = project.sighting.identity
    assert identity is not None, "_can_be_granted looked"
    ruling = project.ruling
    kept = tuple(grant for grant in ruling.grants if grant.actor.kind is not actor.kind)
    grants = (*kept, Grant(actor, identity, now))
    return replace(project, ruling=replace(ruling, grants=grants, lapse=None, name=name))
