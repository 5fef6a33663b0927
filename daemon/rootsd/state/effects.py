"""Split a plan into effects that apply at once and grants that wait for the disk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from rootsd.core.catalog import Catalog
from rootsd.core.changes import Change, ChangeVerb, ProjectChange, RuleChange
from rootsd.core.decide import is_denied_by_person
from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import Presence, Project, Verdict
from rootsd.core.plan import Plan, plan


def only_narrows(catalog: Catalog, made: Plan) -> bool:
    """Whether nothing is approved, now or later, that was not before; grants are left aside."""
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
                ChangeVerb.WITHDRAWN,
            )


def _approves(project: Project | None) -> bool:
    return project is not None and project.ruling.approves


def _is_denied(project: Project | None) -> bool:
    return project is not None and is_denied_by_person(project)


def granted_projects(made: Plan) -> dict[bytes, Project]:
    """The projects that were granted approval, as they were before."""
    granted: dict[bytes, Project] = {}
    for change in made.changes:
        if isinstance(change, ProjectChange) and change.verb is ChangeVerb.GRANTED:
            assert change.before is not None, "only a known project is granted anything"
            granted.setdefault(change.path, change.before)
    return granted


def plan_owed_grants(catalog: Catalog, owed: Iterable[bytes], now: datetime) -> Plan:
    """What rules and main checkouts say to the `owed` projects, as these are known today.

    Grants go to what was just sighted: here each is sighted again, the same as it is known.
    """
    unseen: dict[bytes, Project] = {}
    sightings: list[ProjectObserved] = []
    for path in sorted(owed):
        project = catalog.projects.get(path)
        if project is None or not catalog.is_pending(project):
            continue  # gone, decided or unsafe by now; when that ends, a sighting tells
        seen = project.observed
        unseen[path] = replace(project, observed=replace(seen, presence=Presence.SUSPENDED))
        sightings.append(
            ProjectObserved(path, seen.kind, seen.identity, None, seen.main_checkout, seen.named)
        )
    return plan(replace(catalog, projects={**catalog.projects, **unseen}), sightings, now)
