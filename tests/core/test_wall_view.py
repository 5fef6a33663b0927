"""A program behind the wall reaches the published roots, and withheld ones with a mask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.errors import OrderRefused
from rootsd.core.inputs import (
    AddRule,
    Approve,
    Deny,
    Forget,
    Input,
    ProjectGone,
    ProjectObserved,
    SessionEnded,
)
from rootsd.core.model import GitEntry, Presence, ProjectKind, SessionKey, Verdict
from rootsd.core.mount_plan import RemovalReason
from rootsd.core.paths import contains
from rootsd.core.plan import plan
from rootsd.core.scope import FULL_SCOPE, Scope, ScopeExtent, session_start_in
from rootsd.core.wall_view import WallRoot, WallRoots, WallView, view_change, wall_view
from support.core_samples import ANN, NOTHING_KNOWN, NOW, after, identity, seen, tree, uri_seen
from support.ledger_harness import PLACES, at
from support.sample_decisions import NOON, PERSON, approved, worktree

SRC = b"/w/src"
API = SRC + b"/api"
LIB = API + b"/vendor/lib"
DEEP = LIB + b"/deep"
WEB = b"/w/web"
ALL = (SRC, API, LIB, DEEP, WEB)
KNOWN = plan(NOTHING_KNOWN, [seen(path, n) for n, path in enumerate(ALL)], NOW).catalog


def approve(path: bytes, **more: object) -> Approve:
    return replace(Approve(path, identity(ALL.index(path)), ANN), **more)  # type: ignore[arg-type]


def masks(catalog: Catalog) -> dict[bytes, tuple[bytes, ...]]:
    return {path: root.denied for path, root in WallRoots.of(catalog).roots.items()}


def test_a_root_that_holds_a_denied_project_is_shown_with_a_mask_and_stays_withheld() -> None:
    catalog = after(KNOWN, approve(API), approve(WEB), Deny(LIB, ANN))
    assert catalog.roots.keys() == {WEB}
    assert masks(catalog) == {API: (LIB,), WEB: ()}
    assert [root.is_withheld for root in WallRoots.of(catalog).roots.values()] == [True, False]


def test_a_denied_worktree_in_its_main_checkout_takes_no_other_worktree_away() -> None:
    main, tree, other = approved(2), worktree(1, 2), worktree(3, 2)
    inside = at(main.path + b"/tree", other)
    before = Catalog.of([main, tree, inside], (), PLACES, 1)
    assert before.roots.keys() == {main.path, tree.path, inside.path}
    catalog = plan(before, [Deny(inside.path, PERSON)], NOON).catalog
    assert catalog.roots.keys() == {tree.path}
    assert masks(catalog) == {main.path: (inside.path,), tree.path: ()}
    control = plan(before, [Deny(main.path, PERSON)], NOON).catalog
    assert not control.roots


def test_a_denied_folder_that_is_gone_is_masked_again_when_it_is_back() -> None:
    catalog = after(KNOWN, approve(API), Deny(LIB, ANN), Deny(DEEP, ANN), ProjectGone(LIB))
    assert masks(catalog) == {API: (DEEP,)}
    assert masks(after(catalog, ProjectGone(DEEP))) == {API: ()}
    assert masks(after(catalog, seen(LIB, 2))) == {API: (LIB,)}


def test_a_withheld_root_that_is_gone_replaced_denied_or_pending_is_not_shown() -> None:
    catalog = after(KNOWN, approve(API), Deny(LIB, ANN))
    for change in (ProjectGone(API), seen(API, 9), Deny(API, ANN), Forget(API, ANN)):
        assert masks(after(catalog, change)) == {}
    assert masks(after(KNOWN, Deny(LIB, ANN))) == {}


def test_a_uri_is_not_mounted_and_a_read_only_approval_is_a_read_only_root() -> None:
    uri = b"https://example.com/v1"
    catalog = after(KNOWN, uri_seen(uri), Approve(uri, None, ANN))
    assert catalog.roots.keys() == {uri}
    assert WallRoots.of(catalog).roots == {}
    catalog = after(catalog, approve(API, access=Access.READ), Deny(LIB, ANN))
    assert WallRoots.of(catalog).roots[API].root.access is Access.READ


def test_a_scope_removes_withheld_roots_like_published_ones() -> None:
    catalog = after(KNOWN, approve(API), approve(WEB), Deny(LIB, ANN))
    roots = WallRoots.of(catalog)
    start = session_start_in(catalog, API + b"/x")
    for extent in ScopeExtent:
        scope = Scope(folder=API + b"/x", extent=extent, start=start)
        assert [each.root.path for each in wall_view(3, roots, scope).roots] == [API]
    assert {each.root.path for each in wall_view(3, roots, FULL_SCOPE).roots} == {API, WEB}


def test_a_root_for_one_session_is_shown_only_there() -> None:
    catalog = after(KNOWN, approve(API, session=SessionKey("s1", "an agent")), Deny(LIB, ANN))
    roots = WallRoots.of(catalog)
    assert wall_view(3, roots, FULL_SCOPE).roots == ()
    mine = replace(FULL_SCOPE, sessions=frozenset(["s1"]))
    assert [each.root.path for each in wall_view(3, roots, mine).roots] == [API]


def test_a_view_names_the_outermost_denied_folders_also_those_outside_its_roots_and_scope() -> (
    None
):
    catalog = after(KNOWN, approve(API), Deny(DEEP, ANN), Deny(LIB, ANN), Deny(WEB, ANN))
    catalog = after(catalog, uri_seen(b"https://e.com/v1"), Deny(b"https://e.com/v1", ANN))
    roots = WallRoots.of(catalog)
    nowhere = Scope(names=frozenset({"none"}))
    for scope in (FULL_SCOPE, nowhere):
        assert wall_view(3, roots, scope).denied == (LIB, WEB)
    assert WallRoots.of(after(catalog, ProjectGone(WEB))).denied == (LIB, WEB), "it may return"


# The Git directory of a worktree or a submodule

MAIN, TREE = b"/w/main", b"/w/tree"
WITH_TREE = after(
    NOTHING_KNOWN,
    ProjectObserved(MAIN, ProjectKind.GIT, replace(identity(1), git=GitEntry.FOLDER)),
    seen(TREE, 2, MAIN),
)


def shared_git(catalog: Catalog, path: bytes) -> bytes | None:
    git = WallRoots.of(catalog).roots[path].shared_git
    return git.checkout if git is not None and git.access.is_granted else None


def test_a_worktree_may_use_the_git_directory_of_an_approved_main_checkout_only() -> None:
    main = WITH_TREE.projects[MAIN].observed.identity
    both = after(WITH_TREE, Approve(TREE, tree(2), ANN), Approve(MAIN, main, ANN))
    assert shared_git(both, TREE) == MAIN
    assert shared_git(both, MAIN) is None
    assert shared_git(after(both, Deny(MAIN, ANN)), TREE) is None
    assert shared_git(after(both, Forget(MAIN, ANN)), TREE) is None
    assert shared_git(after(both, ProjectGone(MAIN)), TREE) is None


def test_a_submodule_may_use_the_git_directory_of_the_outermost_approved_checkout_only() -> None:
    sub, deep = MAIN + b"/sub", MAIN + b"/sub/deep"
    catalog = after(
        NOTHING_KNOWN,
        ProjectObserved(MAIN, ProjectKind.GIT, replace(identity(1), git=GitEntry.FOLDER)),
        ProjectObserved(sub, ProjectKind.GIT, tree(2)),
        ProjectObserved(deep, ProjectKind.GIT, tree(3)),
        Approve(sub, tree(2), ANN),
        Approve(deep, tree(3), ANN),
    )
    assert shared_git(catalog, sub) is None
    approved = after(catalog, Approve(MAIN, catalog.projects[MAIN].observed.identity, ANN))
    assert shared_git(approved, sub) == MAIN
    assert shared_git(approved, deep) == MAIN


# Random steps

STEPS: st.SearchStrategy[Input] = st.one_of(
    st.sampled_from(ALL).map(approve),
    st.sampled_from(ALL).map(lambda path: Deny(path, ANN)),
    st.sampled_from(ALL).map(lambda path: Forget(path, ANN)),
    st.sampled_from(ALL).map(ProjectGone),
    st.builds(seen, st.sampled_from(ALL), st.integers(0, 5)),
    st.sampled_from([b"/**/lib", b"/w/src", b"/w/*/api"]).map(
        lambda pattern: AddRule(pattern, Verdict.DENIED, ANN)
    ),
)


@given(st.lists(STEPS, max_size=12))
def test_a_view_never_shows_a_denied_folder_unmasked(steps: list[Input]) -> None:
    catalog = KNOWN
    followed = WallRoots.of(catalog)
    for step in steps:
        try:
            catalog = after(catalog, step)
        except OrderRefused:
            continue
        followed = followed.after(catalog)
        roots = WallRoots.of(catalog).roots
        assert [*followed.roots.items()] == [*roots.items()]
        assert catalog == Catalog.of(
            catalog.projects.values(), catalog.rules, catalog.places, catalog.next_rule
        )
        assert roots.keys() == catalog.roots.keys() | catalog.withheld.keys()
        assert catalog.roots.keys().isdisjoint(catalog.withheld)
        for path, root in roots.items():
            denied = [each for each in catalog.denied if contains(path, each)]
            assert path not in catalog.denied
            assert root.is_withheld is bool(denied)
            there = [
                each
                for each in denied
                if catalog.projects[each].observed.presence is not Presence.MISSING
            ]
            assert catalog.identities[path] == root.identity
            for each in there:
                assert sum(contains(mask, each) for mask in root.denied) == 1
            assert all(mask in there for mask in root.denied)


SUB = MAIN + b"/sub"
WITH_SUB = after(WITH_TREE, ProjectObserved(SUB, ProjectKind.GIT, tree(3)))
LINKED = (MAIN, TREE, SUB)


def approve_linked(path: bytes) -> Approve:
    return Approve(path, WITH_SUB.projects[path].observed.identity, ANN)


SESSION = SessionKey("s1", "an agent")


@pytest.mark.parametrize(
    ("change", "scope", "why"),
    [
        (Deny(API, ANN), FULL_SCOPE, RemovalReason.DENIED),
        (Deny(SRC, ANN), FULL_SCOPE, RemovalReason.DENIED),
        (Forget(API, ANN), FULL_SCOPE, RemovalReason.UNDECIDED),
        (ProjectGone(API), FULL_SCOPE, RemovalReason.MISSING),
        (seen(API, 9), FULL_SCOPE, RemovalReason.LAPSED),
        (SessionEnded(API, SESSION), FULL_SCOPE, RemovalReason.ENDED),
        (Deny(WEB, ANN), Scope(names=frozenset({"web"})), RemovalReason.OUT_OF_SCOPE),
    ],
)
def test_a_change_of_a_view_says_why_a_root_is_gone(
    change: Input, scope: Scope, why: RemovalReason
) -> None:
    is_bound = isinstance(change, SessionEnded)
    catalog = after(KNOWN, approve(API, session=SESSION if is_bound else None))
    mine = replace(FULL_SCOPE, sessions=frozenset([SESSION.id]))
    before = wall_view(1, WallRoots.of(catalog), mine)
    catalog = after(catalog, change)
    view = wall_view(2, WallRoots.of(catalog), scope)
    [gone] = view_change(before, view, catalog)[1]
    assert (gone.path, gone.name, gone.why) == (API, "api", why)


LINKED_STEPS: st.SearchStrategy[Input] = st.one_of(
    st.sampled_from(LINKED).map(approve_linked),
    st.sampled_from(LINKED).map(lambda path: Deny(path, ANN)),
    st.sampled_from(LINKED).map(lambda path: Forget(path, ANN)),
    st.sampled_from((MAIN, SUB)).map(ProjectGone),
    st.just(seen(MAIN + b"/sub/deep", 4)),
)


@given(st.lists(LINKED_STEPS, max_size=12))
def test_a_view_that_follows_each_change_is_the_whole_view_and_names_only_what_differs(
    steps: list[Input],
) -> None:
    catalog, before = WITH_SUB, WallView(0, ())
    followed = WallRoots.of(catalog)
    known: dict[bytes, WallRoot] = {}
    for step in steps:
        try:
            catalog = after(catalog, step)
        except OrderRefused:
            continue
        followed = followed.after(catalog)
        assert followed == WallRoots.of(catalog)
        view = wall_view(1, followed, FULL_SCOPE)
        changed, removed = view_change(before, view, catalog)
        assert all(known.get(each.root.path) != each for each in changed)
        for each in removed:
            del known[each.path]
        known |= {each.root.path: each for each in changed}
        assert known == {each.root.path: each for each in view.roots}
        before = view


def test_an_unrelated_change_keeps_the_roots_even_if_one_is_withheld() -> None:
    catalog = after(KNOWN, approve(API), Deny(LIB, ANN))
    followed = WallRoots.of(catalog)
    assert followed.after(after(catalog, Deny(WEB, ANN))).roots is followed.roots
    assert followed.after(after(catalog, Forget(LIB, ANN))).roots != followed.roots
