"""After a loss of the history, reinstating restores approvals with their actors."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.changes import ChangeVerb
from rootsd.core.decide import VerdictReason
from rootsd.core.errors import IdentityChanged, RefusedPlace
from rootsd.core.inputs import Approve, ApproveRule, Deny, Reinstate, RemoveRule
from rootsd.core.model import ActorKind, Lapse, LapseReason, Rule, Ruling, Verdict
from rootsd.core.plan import plan
from support.core_samples import (
    ANN,
    HOME,
    LATER,
    NOTHING_KNOWN,
    NOW,
    PLACES,
    after,
    identity,
    seen,
    tree,
)

API, WORKTREE = HOME + b"/src/api", HOME + b"/trees/fix"
RULE = Rule(1, HOME + b"/src", Verdict.PENDING, ANN, NOW)


def _lost(by: ActorKind, *rules: Rule) -> Catalog:
    """A repository and its worktree, both lapsed."""
    known = after(NOTHING_KNOWN, seen(API, 1), seen(WORKTREE, 2, main=API))
    lapse = Lapse(LapseReason.STORE_RESTORED, NOW, by)
    ruling = Ruling(lapse=lapse, name=None, tags=("work",), kept_access=Access.READ)
    lapsed = [replace(project, ruling=ruling) for project in known.projects.values()]
    return Catalog.of(lapsed, rules, PLACES, 2)


def _reinstate(path: bytes, number: int) -> Reinstate:
    shown = tree(number) if path == WORKTREE else identity(number)
    approval = Approve(path, shown, ANN, access=Access.READ)
    return Reinstate(path, approval, ANN)


def test_a_reinstated_rule_restores_its_grants() -> None:
    lost = _lost(ActorKind.RULE, RULE)
    made = plan(lost, [ApproveRule(1, ANN), _reinstate(API, 1)], LATER)
    assert made.catalog.judgments[API].reason is VerdictReason.APPROVE_RULE
    assert [change.verb for change in made.changes] == [
        ChangeVerb.APPROVED,
        ChangeVerb.APPROVED,
        ChangeVerb.GRANTED,
    ]
    root = made.catalog.roots[API]
    assert (root.access, root.tags) == (Access.READ, ("work",))
    without = plan(made.catalog, [RemoveRule(1, ANN)], LATER).catalog
    assert without.roots == {}, "nobody else had approved it"


def test_a_worktree_inherits_again_from_its_main_checkout() -> None:
    lost = _lost(ActorKind.MAIN_CHECKOUT)
    approve_main = Approve(API, identity(1), ANN)
    both = plan(lost, [_reinstate(WORKTREE, 2), approve_main], LATER).catalog
    assert both.judgments[WORKTREE].reason is VerdictReason.MAIN_CHECKOUT
    assert plan(both, [Deny(API, ANN)], LATER).catalog.roots == {}


@pytest.mark.parametrize("rules", [(), (RULE,)])
def test_without_a_rule_or_main_checkout_the_person_approves(rules: tuple[Rule, ...]) -> None:
    made = plan(_lost(ActorKind.RULE, *rules), [_reinstate(API, 1)], LATER)
    assert made.catalog.judgments[API].reason is VerdictReason.APPROVED
    assert [change.verb for change in made.changes] == [ChangeVerb.APPROVED], (
        "one event, to be undone"
    )
    assert made.catalog.roots[API].access is Access.READ


def test_neither_another_directory_nor_a_refused_place_is_reinstated() -> None:
    lost = _lost(ActorKind.RULE, replace(RULE, verdict=Verdict.APPROVED))
    with pytest.raises(IdentityChanged):
        plan(lost, [_reinstate(API, 9)], LATER)
    refusing = dataclasses.replace(lost, places=PLACES._replace(refused=(API,)))
    with pytest.raises(RefusedPlace):
        plan(refusing, [_reinstate(API, 1)], LATER)
