"""Decide which changes take effect at once and which wait for the disk.

`rootsd.state.ledger` explains the rule: a change that narrows the published set takes effect at
once, and a change that widens it is saved first. `only_narrows` classifies a plan. If the disk
refuses to save a grant, the ledger defers it, and `plan_deferred_grants` plans it again once the
disk accepts writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.changes import Change, ChangeVerb, ProjectChange, RuleChange
from rootsd.core.decide import approving_rule, is_denied_by_person
from rootsd.core.inputs import PolicyRuleEnded, ProjectObserved
from rootsd.core.model import ActorKind, Presence, Project, Verdict
from rootsd.core.plan import Plan, plan


def only_narrows(catalog: Catalog, made: Plan) -> bool:
    """Return whether the plan approves nothing, now or later, that was not approved before.

    Grants do not count, because the ledger handles them separately.
    """
    if not all(
        _narrows(change) for change in made.changes if change.verb is not ChangeVerb.GRANTED
    ):
        return False
    return made.immediate.catalog.roots.items() <= catalog.roots.items()


def _narrows(change: Change) -> bool:
    match change:
        case RuleChange(before=before, after=after):
            denied = before is not None and before.verdict is Verdict.DENIED
            approves = after is not None and after.verdict is Verdict.APPROVED
            return not denied and not approves
        case ProjectChange(verb=ChangeVerb.FORGOTTEN, before=project) if project is not None:
            decision = project.ruling.decision
            return decision is None or decision.verdict is not Verdict.DENIED
        case ProjectChange(verb=ChangeVerb.UNDONE, before=before, after=after):
            return not _approves(after) and (not _is_denied(before) or _is_denied(after))
        case _:
            return change.verb in (
                ChangeVerb.OBSERVED,
                ChangeVerb.DENIED,
                ChangeVerb.LAPSED,
                ChangeVerb.NOTED,
                ChangeVerb.WITHDRAWN,
            )


def _approves(project: Project | None) -> bool:
    return project is not None and project.ruling.approves


def _is_denied(project: Project | None) -> bool:
    return project is not None and is_denied_by_person(project)


def granted_projects(made: Plan) -> dict[bytes, Project]:
    """Return the projects to which the plan grants an approval, as they were before, by path."""
    granted: dict[bytes, Project] = {}
    for change in made.changes:
        if isinstance(change, ProjectChange) and change.verb is ChangeVerb.GRANTED:
            assert change.before is not None, "only a known project is granted anything"
            granted.setdefault(change.path, change.before)
    return granted


def only_grants(catalog: Catalog, made: Plan) -> bool:
    """Return whether nothing of the plan has to take effect before its grants are saved.

    It then changes only the projects that it grants an approval, and none of them was published.
    """
    granted = granted_projects(made)
    return made.immediate.catalog.roots == catalog.roots and all(
        change.verb in (ChangeVerb.OBSERVED, ChangeVerb.GRANTED)
        and isinstance(change, ProjectChange)
        and change.path in granted
        for change in made.changes
    )


def policy_grants_that_ended(catalog: Catalog) -> list[PolicyRuleEnded]:
    """Return an event for each grant of the policy that no rule of it gives any more.

    Without the grant, a later rule is a new approval. While the policy cannot be used, every grant
    stays: nobody knows which rules ended.
    """
    policy = catalog.policy
    if policy.problem:
        return []
    return [
        PolicyRuleEnded(project.path, grant.actor)
        for project in catalog.projects.values()
        for grant in project.ruling.grants
        if grant.actor.kind is ActorKind.POLICY and policy.approve_rule(project.path) is None
    ]


def grantable_projects(catalog: Catalog) -> list[bytes]:
    """Return the pending projects that a rule or a main checkout may approve."""
    context = catalog.decision_context
    return [
        project.path
        for project in catalog.projects.values()
        if catalog.is_pending(project)
        and (
            project.observed.main_checkout is not None
            or approving_rule(project, context) is not None
            or context.policy.approve_rule(project.path) is not None
        )
    ]


def plan_deferred_grants(catalog: Catalog, deferred: Iterable[bytes], now: datetime) -> Plan:
    """Plan the grants of rules and main checkouts to the projects at the `deferred` paths.

    A grant follows from an observation. So this observes each project again, unchanged.
    """
    unseen: dict[bytes, Project] = {}
    observations: list[ProjectObserved] = []
    for path in sorted(deferred):
        project = catalog.projects.get(path)
        if project is None or not catalog.is_pending(project):
            continue  # it is gone, decided or unsafe; the next observation plans its grant
        seen = project.observed
        unseen[path] = replace(project, observed=replace(seen, presence=Presence.SUSPENDED))
        observations.append(
            ProjectObserved(path, seen.kind, seen.identity, None, seen.main_checkout, seen.named)
        )
    return plan(
        dataclasses.replace(catalog, projects={**catalog.projects, **unseen}), observations, now
    )
