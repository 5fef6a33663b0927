from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.changes import ChangeVerb, ProjectChange
from rootsd.core.errors import IdentityChanged
from rootsd.core.grants import derive_grants
from rootsd.core.inputs import (
    AddRule,
    Approve,
    ConfirmedWorktree,
    Deny,
    Forget,
    Input,
    ProjectGone,
    ProjectObserved,
    ProjectUnreachable,
    ProjectUnsafe,
    RemoveRule,
    Rename,
    Restore,
    Retag,
)
from rootsd.core.model import (
    ActorKind,
    IncompleteReason,
    Lapse,
    LapseReason,
    ObservedState,
    Presence,
    Project,
    ProjectKind,
    Rule,
    Ruling,
    Verdict,
)
from rootsd.core.plan import plan
from support.core_samples import (
    AFTER_NS,
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
    tree,
)

MAIN = b"/w/api"
TREE = b"/v/api-fix"
SEEN = ObservedState(ProjectKind.GIT, identity(1), NOW)
ALLOW_ALL = AddRule(b"/", Verdict.APPROVED, ANN)
ALLOW_W = AddRule(b"/w", Verdict.APPROVED, ANN)
WAITING = Project(MAIN, "r7k2", SEEN)


def granted(project: Project) -> list[Project]:
    """Return the grants of rule 1, which covers everything, for a catalog of `project` alone."""
    rules = [Rule(1, b"/", Verdict.APPROVED, ANN, NOW)]
    return list(
        derive_grants(Catalog.of([project], rules, PLACES, 2), [project.path, b"/else"], LATER)
    )


def test_a_rule_grants_to_the_observed_directory() -> None:
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
        replace(WAITING, observed=replace(SEEN, presence=Presence.MISSING)),
        replace(WAITING, observed=replace(SEEN, incomplete=IncompleteReason.NO_HEAD)),
        replace(WAITING, observed=replace(SEEN, hazard=LapseReason.EXPOSED)),
        replace(WAITING, observed=replace(SEEN, identity=None)),
        replace(WAITING, observed=replace(SEEN, identity=UNIDENTIFIABLE)),
        replace(WAITING, path=HOME),
        replace(WAITING, path=b"/w/\xff"),
        replace(WAITING, ruling=Ruling(lapse=Lapse(LapseReason.STORE_RESTORED, NOW))),
        after(NOTHING_KNOWN, seen(MAIN), Approve(MAIN, identity(1), ANN)).projects[MAIN],
        after(NOTHING_KNOWN, seen(MAIN), Deny(MAIN, ANN)).projects[MAIN],
    ],
)
def test_no_rule_grants_an_unsuitable_or_decided_project(project: Project) -> None:
    assert granted(project) == []


def test_a_worktree_is_granted_with_its_main_checkout_and_lost_with_it() -> None:
    catalog = after(NOTHING_KNOWN, seen(MAIN), Approve(MAIN, identity(1), ANN))
    catalog = after(catalog, seen(TREE, 2, MAIN))
    assert catalog.roots.keys() == {MAIN, TREE}
    (grant,) = catalog.projects[TREE].ruling.grants
    assert (grant.actor.kind, grant.actor.detail) == (ActorKind.MAIN_CHECKOUT, "/w/api")
    assert after(catalog, Deny(MAIN, ANN)).roots == {}
    assert after(catalog, seen(MAIN, 9)).roots == {}
    assert after(catalog, ProjectUnsafe(MAIN, LapseReason.EXPOSED)).roots == {}
    assert after(catalog, Deny(TREE, ANN)).roots.keys() == {MAIN}


@pytest.mark.parametrize("by", [MAIN, TREE])
def test_a_worktree_with_an_unknown_main_checkout_gets_no_grant(by: bytes) -> None:
    approval = Approve(by, identity(1) if by == MAIN else tree(2), ANN)
    catalog = after(NOTHING_KNOWN, seen(MAIN), *([approval] if by == MAIN else []))
    catalog = after(catalog, seen(TREE, 2, MAIN), *([approval] if by == TREE else []))
    no_target = replace(tree(2), git_target=None)
    lost = ProjectObserved(TREE, ProjectKind.GIT, no_target, IncompleteReason.NO_GIT_DIR)
    cut_off = after(catalog, lost)
    assert cut_off.roots.keys() == {by}, "a person approved the folder of the worktree itself"
    replaced = after(cut_off, seen(MAIN, 9), Approve(MAIN, identity(9), ANN))
    assert replaced.roots.keys() == {MAIN, by}
    assert after(cut_off, seen(TREE, 2, MAIN)).roots == catalog.roots, (
        "it returns without a decision"
    )


@pytest.mark.parametrize("pattern", [ALLOW_W, ALLOW_ALL])
def test_worktrees_made_later_inherit_from_a_main_checkout_approved_by_a_rule(
    pattern: AddRule,
) -> None:
    catalog = after(NOTHING_KNOWN, pattern)
    made = plan(catalog, [seen(TREE, 2, MAIN), seen(MAIN)], NOW)
    covered = {MAIN} if pattern is ALLOW_W else {MAIN, TREE}
    assert made.catalog.roots.keys() == covered, "it existed when the rule approved the checkout"
    young = plan(after(catalog, seen(MAIN)), [seen(TREE, 2, MAIN)], NOW)
    assert young.catalog.roots.keys() == {MAIN, TREE}
    found: list[Input] = [seen(MAIN), seen(TREE, 2, MAIN), Approve(MAIN, identity(1), ANN)]
    assert plan(NOTHING_KNOWN, found, NOW).catalog.roots.keys() == {MAIN}


def test_worktrees_do_not_chain() -> None:
    second = b"/v/second"
    catalog = after(NOTHING_KNOWN, seen(MAIN), Approve(MAIN, identity(1), ANN))
    catalog = after(catalog, seen(TREE, 2, MAIN), seen(second, 3, TREE))
    assert catalog.roots.keys() == {MAIN, TREE}


def test_a_grant_ends_with_the_rule_and_leaves_other_approvals_alone() -> None:
    catalog = after(NOTHING_KNOWN, ALLOW_W, seen(MAIN), seen(TREE, 2, MAIN))
    assert catalog.roots.keys() == {MAIN, TREE}
    both = after(catalog, AddRule(TREE, Verdict.APPROVED, ANN), RemoveRule(1, ANN))
    assert both.roots.keys() == {TREE}
    by_hand = after(catalog, Approve(MAIN, identity(1), ANN), RemoveRule(1, ANN))
    assert by_hand.roots.keys() == {MAIN, TREE}


def test_new_grants_replace_old_ones_of_their_kind_only() -> None:
    catalog = after(NOTHING_KNOWN, seen(MAIN), Approve(MAIN, identity(1), ANN))
    catalog = after(catalog, seen(TREE, 2, MAIN), Deny(MAIN, ANN), ALLOW_ALL)
    kinds = [grant.actor.kind for grant in catalog.projects[TREE].ruling.grants]
    assert kinds == [ActorKind.MAIN_CHECKOUT, ActorKind.RULE]
    assert after(catalog, ProjectGone(TREE), seen(TREE, 5, MAIN)).roots.keys() == {TREE}


def test_a_rule_grants_no_more_access_than_the_lapsed_approval() -> None:
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


def test_a_confirmation_covers_only_the_shown_worktree() -> None:
    catalog = after(NOTHING_KNOWN, seen(MAIN), seen(TREE, 2, MAIN))
    for shown in (tree(3), replace(tree(2), git_born_ns=1)):
        order = Approve(MAIN, identity(1), ANN, worktrees=(ConfirmedWorktree(TREE, shown),))
        with pytest.raises(IdentityChanged):
            plan(catalog, [order], NOW)
    order = Approve(MAIN, identity(1), ANN, worktrees=(ConfirmedWorktree(TREE, tree(2)),))
    assert after(catalog, order).roots.keys() == {MAIN, TREE}


def test_a_repeated_approval_keeps_its_worktrees_and_a_new_one_does_not() -> None:
    catalog = after(
        NOTHING_KNOWN, seen(MAIN), Approve(MAIN, identity(1), ANN), seen(TREE, 2, MAIN)
    )
    repeated = Approve(MAIN, identity(1), ANN, tags=("work",))
    later = plan(catalog, [repeated], LATER).catalog
    assert later.roots.keys() == {MAIN, TREE}
    denied = plan(later, [Deny(MAIN, ANN)], LATER).catalog
    assert plan(denied, [repeated], LATER).catalog.roots.keys() == {MAIN}


def test_undo_reverts_only_the_worktrees_confirmed_with_the_approval() -> None:
    earlier = b"/v/earlier"
    born_later = replace(seen(earlier, 3, MAIN), identity=tree(3, AFTER_NS + 1))
    catalog = after(NOTHING_KNOWN, seen(MAIN), seen(TREE, 2, MAIN))
    catalog = after(catalog, Approve(MAIN, identity(1), ANN), born_later)
    before = catalog.projects[MAIN].ruling
    confirmed = ConfirmedWorktree(TREE, tree(2))
    again = Approve(MAIN, identity(1), ANN, worktrees=(confirmed,))
    both = plan(catalog, [again], LATER).catalog
    assert both.roots.keys() == {MAIN, TREE, earlier}
    undone = Restore(MAIN, both.projects[MAIN].ruling, before, ANN)
    made = plan(both, [undone], LATER)
    assert made.catalog.roots.keys() == {MAIN, earlier}
    assert [change.verb for change in made.changes] == [ChangeVerb.UNDONE, ChangeVerb.WITHDRAWN]


def test_a_worktree_is_withdrawn_when_another_project_is_found_inside() -> None:
    catalog = after(
        NOTHING_KNOWN, seen(MAIN), Approve(MAIN, identity(1), ANN), seen(TREE, 2, MAIN)
    )
    assert catalog.roots.keys() == {MAIN, TREE}
    inner = after(catalog, seen(TREE + b"/inner", 5))
    assert inner.roots.keys() == {MAIN}
    assert after(inner, ProjectGone(TREE + b"/inner")).roots.keys() == {MAIN, TREE}
    sibling = after(catalog, seen(TREE + b"/.claude/x", 5, MAIN))
    assert sibling.roots.keys() == {MAIN, TREE, TREE + b"/.claude/x"}


_INHERITED = (seen(MAIN), Approve(MAIN, identity(1), ANN), seen(TREE, 2, MAIN))
_OTHER_GIT_FILE = seen(TREE, 3, MAIN)


@pytest.mark.parametrize("gone", [ProjectGone(TREE), ProjectGone(TREE, LapseReason.REPLACED)])
def test_a_worktree_goes_with_its_folder_unless_a_person_decided_about_it(
    gone: ProjectGone,
) -> None:
    confirmed = Approve(MAIN, identity(1), ANN, worktrees=(ConfirmedWorktree(TREE, tree(2)),))
    goes: list[tuple[Input, ...]] = [
        _INHERITED,
        (*_INHERITED, Deny(MAIN, ANN)),
        (*_INHERITED, _OTHER_GIT_FILE),
        (*_INHERITED, ProjectUnsafe(TREE, LapseReason.EXPOSED)),
        (*_INHERITED, ProjectUnreachable(TREE)),
        (*_INHERITED, Deny(TREE, ANN), Forget(TREE, ANN)),
        (AddRule(b"/v", Verdict.APPROVED, ANN), seen(TREE, 2, MAIN)),
        (seen(TREE, 2, MAIN),),
    ]
    stays: list[tuple[Input, ...]] = [
        (*_INHERITED, Rename(TREE, "fix", ANN)),
        (*_INHERITED, Retag(TREE, ("work",), (), ANN)),
        (*_INHERITED, Deny(TREE, ANN)),
        (*_INHERITED, Approve(TREE, tree(2), ANN)),
        (*_INHERITED, Approve(TREE, tree(2), ANN), _OTHER_GIT_FILE),
        (seen(MAIN), seen(TREE, 2, MAIN), confirmed),
        (*_INHERITED, replace(seen(TREE, 2, MAIN), named=True)),
    ]
    for events in (*goes, *stays):
        catalog = after(NOTHING_KNOWN, *events)
        assert TREE in catalog.projects
        assert (TREE in after(catalog, gone).projects) is (events in stays), events
    catalog = after(NOTHING_KNOWN, *_INHERITED)
    assert TREE in after(catalog, ProjectUnreachable(TREE)).projects
    assert MAIN in after(catalog, ProjectGone(MAIN)).projects


def test_a_worktree_that_the_restored_store_may_have_denied_stays() -> None:
    catalog = after(NOTHING_KNOWN, *_INHERITED)
    project = catalog.projects[TREE]
    lapse = Lapse(LapseReason.STORE_RESTORED, NOW, ActorKind.MAIN_CHECKOUT)
    doubtful = replace(project, ruling=replace(project.ruling, grants=(), lapse=lapse))
    catalog = Catalog({**catalog.projects, TREE: doubtful}, catalog.rules, PLACES)
    assert TREE in after(catalog, ProjectGone(TREE)).projects


def test_a_worktree_that_comes_back_inherits_again() -> None:
    catalog = after(NOTHING_KNOWN, *_INHERITED)
    [end] = plan(catalog, [ProjectGone(TREE)], LATER).changes
    assert isinstance(end, ProjectChange)
    assert (end.verb, end.actor) == (
        ChangeVerb.WITHDRAWN,
        catalog.projects[TREE].ruling.grants[0].actor,
    )
    again = after(catalog, ProjectGone(TREE), seen(TREE, 2, MAIN))
    assert TREE in again.roots
