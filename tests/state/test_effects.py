"""The part of a plan that may take effect before it is saved."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from rootsd.core.catalog import Catalog
from rootsd.core.changes import ChangeVerb
from rootsd.core.inputs import (
    ApproveRule,
    Input,
    ProjectUnreachable,
    ProjectUnsafe,
    RemoveRule,
    RestoreRule,
)
from rootsd.core.model import (
    UNDECIDED,
    IncompleteReason,
    LapseReason,
    Presence,
    Project,
    Rule,
    Verdict,
)
from rootsd.core.plan import Plan, plan
from rootsd.state.effects import granted_projects, only_grants, only_narrows, plan_deferred_grants
from support.ledger_harness import (
    PLACES,
    SOURCES,
    add_rule,
    approve,
    deny,
    forget,
    path,
    rule,
    sight,
)
from support.sample_decisions import (
    NOON,
    PERSON,
    approved,
    denied,
    granted,
    project,
    worktree,
)

EVERYTHING = rule(Verdict.APPROVED)


def catalog_of(*projects: Project, rules: Sequence[Rule] = ()) -> Catalog:
    return Catalog.of(projects, rules, PLACES, 9)


def judged_anew(catalog: Catalog) -> Catalog:
    return Catalog.of(catalog.projects.values(), catalog.rules, catalog.places, catalog.next_rule)


@pytest.mark.parametrize(
    ("known", "order", "narrows"),
    [
        (approved(1), deny(1), True),
        (project(1), deny(1), True),
        (approved(1), forget(1), True),
        (granted(1), RemoveRule(1, PERSON), True),
        (approved(1), add_rule(Verdict.DENIED), True),
        (project(1), approve(1), False),
        (approved(1), approve(1, name="other"), False),
        (denied(1), forget(1), False),
        (project(1), add_rule(Verdict.APPROVED), False),
        (approved(1), RemoveRule(2, PERSON), False),
    ],
)
def test_only_a_change_that_may_approve_nothing_narrows(
    known: Project, order: Input, *, narrows: bool
) -> None:
    rules = [
        rule(Verdict.APPROVED, SOURCES + b"/p1", 1), rule(Verdict.DENIED, SOURCES + b"/p9", 2)
    ]  # fmt: skip
    catalog = catalog_of(known, rules=rules)
    assert only_narrows(catalog, plan(catalog, [order], NOON)) is narrows


def test_a_plan_that_publishes_anything_does_not_narrow() -> None:
    catalog = catalog_of(approved(1), project(2))
    made = plan(catalog, [deny(1)], NOON)
    more = plan(made.catalog, [approve(2)], NOON)
    assert not only_narrows(catalog, Plan(more.catalog, made.changes))
    assert not only_narrows(catalog, plan(catalog, [deny(1), approve(2)], NOON))


def test_without_its_grants_a_plan_leaves_the_projects_known_and_pending() -> None:
    catalog = catalog_of(granted(3), granted(4), rules=[EVERYTHING])
    exposed = ProjectUnsafe(path(3), LapseReason.EXPOSED)
    made = plan(catalog, [sight(1), sight(2), exposed, ProjectUnreachable(path(4))], NOON)
    assert set(made.catalog.roots) == set(granted_projects(made)) == {path(1), path(2)}
    bare = made.immediate
    assert [change.verb for change in bare.changes[:2]] == [ChangeVerb.OBSERVED] * 2
    for number in (1, 2):
        found = replace(made.catalog.projects[path(number)], ruling=UNDECIDED)
        assert bare.catalog.projects[path(number)] == found
    assert bare.catalog.roots == {}
    assert bare.catalog == judged_anew(bare.catalog)
    assert bare.immediate is bare


def test_a_plan_that_only_grants_need_not_take_effect_before_the_grants_are_saved() -> None:
    catalog = catalog_of(granted(3), project(2), rules=[EVERYTHING])
    assert only_grants(catalog, plan(catalog, [sight(1), sight(2)], NOON))


@pytest.mark.parametrize(
    "other",
    [
        ProjectUnreachable(path(3)), ProjectUnsafe(path(3), LapseReason.EXPOSED),
        sight(3, now=30), sight(8), deny(3), deny(9),
    ],
)  # fmt: skip
def test_a_plan_that_also_changes_others_takes_effect_before_its_grants(other: Input) -> None:
    mine = rule(Verdict.APPROVED, path(1)), rule(Verdict.APPROVED, path(3), 2)
    catalog = catalog_of(granted(3), project(9), rules=mine)
    made = plan(catalog, [sight(1), other], NOON)
    assert path(1) in granted_projects(made)
    assert not only_grants(catalog, made)


def test_a_worktree_ends_with_its_checkout_and_a_replacement_does_not_restore_it() -> None:
    rules = [rule(Verdict.APPROVED, path(1))]
    catalog = catalog_of(granted(1), worktree(2, main=1), rules=rules)
    assert set(catalog.roots) == {path(1), path(2)}
    made = plan(catalog, [sight(1, now=10)], NOON)
    assert set(made.catalog.roots) == {path(1)}, "the worktree is older than this approval"
    bare = made.immediate.catalog
    assert bare.roots == {}
    assert bare == judged_anew(bare)


def test_a_deferred_grant_is_given_to_an_unchanged_project_while_its_rule_is_there() -> None:
    catalog = catalog_of(project(1), project(2), rules=[EVERYTHING])
    made = plan_deferred_grants(catalog, [path(1)], NOON)
    assert set(made.catalog.roots) == {path(1)}
    assert made.catalog.projects[path(1)].observed == project(1).observed
    assert made.catalog.projects[path(2)] == project(2)
    assert made.catalog == judged_anew(made.catalog)
    assert plan_deferred_grants(catalog_of(project(1)), [path(1)], NOON).catalog.roots == {}


@pytest.mark.parametrize(
    "known",
    [
        denied(1),
        replace(project(1), observed=replace(project(1).observed, hazard=LapseReason.EXPOSED)),
        replace(
            project(1),
            observed=replace(project(1).observed, presence=Presence.SUSPENDED, absent_since=NOON),
        ),
        replace(
            project(1),
            observed=replace(project(1).observed, incomplete=IncompleteReason.INTERRUPTED),
        ),
        project(5),
    ],
    ids=["denied", "hazardous", "absent", "incomplete", "gone"],
)
def test_a_deferred_grant_is_dropped_if_the_project_is_no_longer_pending(known: Project) -> None:
    catalog = catalog_of(known, rules=[EVERYTHING])
    made = plan_deferred_grants(catalog, [path(1)], NOON)
    assert made.changes == ()
    assert made.catalog.roots == {}


def test_reinstating_a_rule_does_not_narrow_and_removing_it_does() -> None:
    lapsed = rule(Verdict.PENDING)
    known = catalog_of(project(1), rules=[lapsed])
    again = plan(known, [ApproveRule(1, PERSON)], NOON)
    assert not only_narrows(known, again)
    back = plan(again.catalog, [RestoreRule(1, lapsed, PERSON)], NOON)
    assert only_narrows(again.catalog, back)
