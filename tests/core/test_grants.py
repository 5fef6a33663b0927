from __future__ import annotations

from dataclasses import replace

import pytest

from rootsd.core.catalog import Catalog
from rootsd.core.grants import given
from rootsd.core.inputs import AddRule, Approve, Deny, RemoveRule, Sighted, Unsafe, Vanished
from rootsd.core.model import (
    Access,
    ActorKind,
    Incomplete,
    Lapse,
    LapseReason,
    Presence,
    Project,
    ProjectKind,
    Rule,
    Ruling,
    Sighting,
    Verdict,
)
from rootsd.core.plan import plan
from support.world import (
    ANN,
    HOME,
    LATER,
    NOTHING_KNOWN,
    NOW,
    PLACES,
    UNIDENTIFIABLE,
    after,
    identity,
    seen,
)

MAIN = b"/w/api"
TREE = b"/v/api-fix"
SEEN = Sighting(ProjectKind.GIT, identity(1), NOW)
ALLOW_ALL = AddRule(b"/", Verdict.APPROVED, ANN)
ALLOW_W = AddRule(b"/w", Verdict.APPROVED, ANN)
WAITING = Project(MAIN, "r7k2", SEEN)


def granted(project: Project) -> list[Project]:
    """What rule 1, which is for everything, gives to a catalogue of `project` alone."""
    rules = [Rule(1, b"/", Verdict.APPROVED, ANN, NOW)]
    return list(given(Catalog.of([project], rules, PLACES, 2), [project.path, b"/else"], LATER))


def test_a_rule_grants_what_it_covers_to_the_directory_that_is_seen() -> None:
    (project,) = granted(WAITING)
    (grant,) = project.ruling.grants
    assert (grant.actor.kind, grant.actor.detail) == (ActorKind.RULE, "1")
    assert (grant.identity, grant.at) == (identity(1), LATER)
    assert (project.ruling.name, project.ruling.decision) == ("api", None)


@pytest.mark.parametrize("reason", [LapseReason.REPLACED, LapseReason.RETARGETED])
def test_a_replacement_is_granted_again(reason: LapseReason) -> None:
    lapsed = Ruling(lapse=Lapse(reason, NOW), name="old name", tags=("work",))
    (project,) = granted(replace(WAITING, ruling=lapsed))
    assert project.ruling.lapse is None
    assert (project.ruling.name, project.ruling.tags) == ("old name", ("work",))


@pytest.mark.parametrize(
    "project",
    [
        replace(WAITING, sighting=replace(SEEN, presence=Presence.MISSING)),
        replace(WAITING, sighting=replace(SEEN, incomplete=Incomplete.NO_HEAD)),
        replace(WAITING, sighting=replace(SEEN, hazard=LapseReason.EXPOSED)),
        replace(WAITING, sighting=replace(SEEN, identity=None)),
        replace(WAITING, sighting=replace(SEEN, identity=UNIDENTIFIABLE)),
        replace(WAITING, path=HOME),
        replace(WAITING, path=b"/w/\xff"),
        replace(WAITING, ruling=Ruling(lapse=Lapse(LapseReason.STORE_RESTORED, NOW))),
    ],
)
def test_what_no_rule_grants(project: Project) -> None:
    assert granted(project) == []


def test_what_is_decided_is_left_alone() -> None:
    for order in (Approve(MAIN, identity(1), ANN), Deny(MAIN, ANN)):
        project = after(NOTHING_KNOWN, seen(MAIN), order).projects[MAIN]
        assert granted(project) == []


def test_a_worktree_is_granted_with_its_main_checkout_and_lost_with_it() -> None:
    catalog = after(NOTHING_KNOWN, seen(TREE, 2, MAIN), seen(MAIN))
    assert catalog.roots == {}
    catalog = after(catalog, Approve(MAIN, identity(1), ANN))
    assert catalog.roots.keys() == {MAIN, TREE}
    (grant,) = catalog.projects[TREE].ruling.grants
    assert (grant.actor.kind, grant.actor.detail) == (ActorKind.MAIN_CHECKOUT, "/w/api")
    assert after(catalog, Deny(MAIN, ANN)).roots == {}
    assert after(catalog, seen(MAIN, 9)).roots == {}
    assert after(catalog, Unsafe(MAIN, LapseReason.EXPOSED)).roots == {}
    assert after(catalog, Deny(TREE, ANN)).roots.keys() == {MAIN}


@pytest.mark.parametrize("by", [MAIN, TREE])
def test_while_nobody_can_say_of_which_checkout_a_worktree_is_it_is_not_granted_with_it(
    by: bytes,
) -> None:
    catalog = after(NOTHING_KNOWN, seen(MAIN), seen(TREE, 2, MAIN))
    catalog = after(catalog, Approve(by, identity(1 if by == MAIN else 2), ANN))
    lost = Sighted(TREE, ProjectKind.GIT, identity(2), Incomplete.NO_GIT_DIR)
    cut_off = after(catalog, lost)
    assert cut_off.roots.keys() == {by}, "who approved the worktree itself approved its folder"
    replaced = after(cut_off, seen(MAIN, 9), Approve(MAIN, identity(9), ANN))
    assert replaced.roots.keys() == {MAIN, by}
    assert after(cut_off, seen(TREE, 2, MAIN)).roots == catalog.roots, "it returns by itself"


@pytest.mark.parametrize("pattern", [ALLOW_W, ALLOW_ALL])
def test_one_scan_grants_a_main_checkout_and_its_worktree_elsewhere(pattern: AddRule) -> None:
    catalog = after(NOTHING_KNOWN, pattern)
    made = plan(catalog, [seen(TREE, 2, MAIN), seen(MAIN)], NOW)
    assert made.catalog.roots.keys() == {MAIN, TREE}


def test_worktrees_do_not_chain() -> None:
    second = b"/v/second"
    catalog = after(NOTHING_KNOWN, seen(MAIN), seen(TREE, 2, MAIN), seen(second, 3, TREE))
    assert after(catalog, Approve(MAIN, identity(1), ANN)).roots.keys() == {MAIN, TREE}


def test_a_grant_ends_with_the_rule_and_leaves_other_approvals_alone() -> None:
    catalog = after(NOTHING_KNOWN, ALLOW_W, seen(MAIN), seen(TREE, 2, MAIN))
    assert catalog.roots.keys() == {MAIN, TREE}
    both = after(catalog, AddRule(TREE, Verdict.APPROVED, ANN), RemoveRule(1, ANN))
    assert both.roots.keys() == {TREE}
    by_hand = after(catalog, Approve(MAIN, identity(1), ANN), RemoveRule(1, ANN))
    assert by_hand.roots.keys() == {MAIN, TREE}


def test_new_grants_replace_old_ones_of_their_kind_only() -> None:
    catalog = after(NOTHING_KNOWN, seen(MAIN), seen(TREE, 2, MAIN))
    catalog = after(catalog, Approve(MAIN, identity(1), ANN), Deny(MAIN, ANN), ALLOW_ALL)
    kinds = [grant.actor.kind for grant in catalog.projects[TREE].ruling.grants]
    assert kinds == [ActorKind.MAIN_CHECKOUT, ActorKind.RULE]
    assert after(catalog, Vanished(TREE), seen(TREE, 5, MAIN)).roots.keys() == {TREE}


def test_what_was_read_only_stays_so_when_a_rule_grants_its_successor() -> None:
    catalog = after(
        NOTHING_KNOWN,
        seen(MAIN, 1),
        Approve(MAIN, identity(1), ANN, access=Access.READ),
        ALLOW_ALL,
        seen(MAIN, 2),
    )
    assert catalog.projects[MAIN].ruling.grants
    assert catalog.roots[MAIN].access is Access.READ
    again = after(catalog, seen(MAIN, 3), seen(MAIN, 4))
    assert again.roots[MAIN].access is Access.READ
    asked = after(again, Approve(MAIN, identity(4), ANN))
    assert asked.roots[MAIN].access is Access.READ_WRITE
