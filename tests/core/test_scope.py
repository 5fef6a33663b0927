"""A scope removes roots and never adds one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.model import NO_FOCUS, Focus, ProjectKind, PublishedRoot, PublishedSet
from rootsd.core.paths import contains
from rootsd.core.scope import (
    FULL_SCOPE,
    FocusUse,
    Scope,
    ScopeExtent,
    SessionStart,
    UriFilter,
    apply_focus,
    apply_scope,
    describe_scope,
    listed_roots,
    root_containing,
    session_start_in,
    workspace_at_start,
)
from support.ledger_harness import PLACES, path
from support.sample_decisions import approved
from support.sample_decisions import project as pending


def root(path: bytes, *tags: str, main: bytes | None = None, approval: int = 0) -> PublishedRoot:
    name = path.decode().strip("/")
    return PublishedRoot(path, name, ProjectKind.GIT, Access.READ_WRITE, tags, main, approval)


API = root(b"/src/api", "work", "python")
INNER = root(b"/src/api/inner")
WEB = root(b"/src/web", "work")
NOTES = root(b"/notes")
DOCS = PublishedRoot(
    b"https://docs.example/v1", "docs", ProjectKind.URI,
    Access.READ, ("work",),
)  # fmt: skip
ALL = PublishedSet(7, (DOCS, NOTES, API, INNER, WEB))

PARTS = st.lists(st.sampled_from([b"a", b"b", b"ab"]), min_size=1, max_size=3)
PATHS = PARTS.map(lambda parts: b"/" + b"/".join(parts))
TAGS = st.sampled_from(["work", "python", "old"])
MADE = {"main": st.none() | PATHS, "approval": st.integers(0, 4)}
ROOTS = st.builds(root, PATHS, **MADE) | st.builds(root, PATHS, TAGS, **MADE)
SETS = st.lists(ROOTS, max_size=6, unique_by=lambda each: each.path).map(
    lambda roots: PublishedSet(3, tuple(roots))
)
NAMES = PATHS.map(lambda path: path.decode().strip("/"))
STARTS = st.builds(SessionStart, st.none() | PATHS, st.integers(0, 3))
SCOPES = st.builds(
    Scope,
    st.frozensets(NAMES, max_size=2),
    st.frozensets(TAGS, max_size=2),
    st.none() | PATHS,
    extent=st.sampled_from(ScopeExtent),
    start=STARTS,
    focus=st.sampled_from(FocusUse),
)


def kept(scope: Scope) -> tuple[PublishedRoot, ...]:
    return apply_scope(ALL, scope).roots


def test_names_and_tags_select_the_roots_that_have_one_of_them() -> None:
    assert apply_scope(ALL, FULL_SCOPE) is ALL
    assert apply_scope(ALL, replace(FULL_SCOPE, uris=UriFilter.ANY)) is ALL
    assert kept(Scope(names=frozenset({"src/web", "unknown"}))) == (WEB,)
    assert kept(Scope(tags=frozenset({"work"}))) == (DOCS, API, WEB)
    assert kept(Scope(frozenset({"notes"}), frozenset({"python"}))) == (NOTES, API)
    assert kept(Scope(names=frozenset({"unknown"}))) == ()
    assert apply_scope(ALL, Scope(folder=b"/")).revision == 7


def cwd(folder: bytes, anchor: bytes | None) -> Scope:
    return Scope(folder=folder, start=SessionStart(anchor))


def working_in(folder: bytes, anchor: bytes | None, approvals: int = 0) -> Scope:
    return Scope(
        folder=folder, extent=ScopeExtent.WORKSPACE, start=SessionStart(anchor, approvals)
    )


def test_a_folder_selects_the_root_that_contained_it_at_the_start_or_the_outermost_later_one() -> (
    None
):
    assert kept(cwd(b"/src/api/inner/x", b"/src/api/inner")) == (INNER,)
    assert kept(cwd(b"/src/api/inner/x", b"/src/api")) == (API,)
    assert kept(cwd(b"/src/api", b"/src/gone")) == ()
    assert kept(cwd(b"/src/api/inner/x", None)) == (API,)
    assert kept(cwd(b"/src/api-old", None)) == ()


def test_a_workspace_is_the_root_its_worktrees_and_the_roots_that_share_a_tag() -> None:
    tree = root(b"/trees/api", main=b"/src/api")
    other = root(b"/trees/web", main=b"/src/web")
    published = PublishedSet(1, (*ALL.roots, tree, other))
    seen = apply_scope(published, working_in(b"/src/api/x", b"/src/api")).roots
    assert seen == (DOCS, API, WEB, tree)
    assert apply_scope(published, working_in(b"/notes", b"/notes")).roots == (NOTES,)


def test_a_workspace_gains_roots_approved_while_the_session_runs() -> None:
    earlier, later = root(b"/a", approval=3), root(b"/b", approval=4)
    by_rule = root(b"/c")
    published = PublishedSet(1, (earlier, later, by_rule))
    assert apply_scope(published, working_in(b"/x", b"/x", approvals=3)).roots == (later,)


def test_a_session_in_no_project_has_the_whole_set_and_follows_the_focus() -> None:
    home = working_in(b"/home/user", None, approvals=3)
    assert apply_scope(ALL, home) is ALL
    python, old = Focus("python"), Focus("old")
    assert apply_scope(ALL, apply_focus(home, python, python)).roots == (API,)
    own = working_in(b"/src/api", b"/src/api")
    assert apply_focus(own, old, old) is own


def test_a_session_in_a_root_has_that_root_as_its_workspace() -> None:
    assert workspace_at_start(ALL, SessionStart(b"/notes", 0)) == {b"/notes"}
    assert workspace_at_start(ALL, SessionStart(None, 0)) == frozenset()


@given(SETS, SCOPES, st.data())
def test_a_removal_never_opens_another_folder(
    published: PublishedSet, scope: Scope, data: st.DataObject
) -> None:
    left = data.draw(st.lists(st.sampled_from(published.roots or (API,)), unique=True))
    fewer = PublishedSet(4, tuple(each for each in published.roots if each in left))
    open_before = apply_scope(published, scope).roots
    for each in apply_scope(fewer, scope).roots:
        assert any(contains(before.path, each.path) for before in open_before)


@given(SETS, SETS, PATHS, st.integers(0, 4))
def test_a_workspace_depends_only_on_its_root_and_later_approvals(
    published: PublishedSet, others: PublishedSet, anchor: bytes, approvals: int
) -> None:
    scope = working_in(anchor, anchor, approvals)
    for each in apply_scope(published, scope).roots:
        here = next((other for other in published.roots if other.path == anchor), None)
        belongs = here is not None and (
            each is here or each.main_checkout == anchor or set(each.tags) & set(here.tags)
        )
        assert belongs or each.approval > approvals


@given(SETS, SCOPES, st.frozensets(st.sampled_from(["one", "other"])), st.data())
def test_a_root_for_one_session_is_visible_only_there(
    published: PublishedSet, scope: Scope, sessions: frozenset[str], data: st.DataObject
) -> None:
    keys = st.sampled_from([None, "one", "other"])
    bound = tuple(replace(each, session=data.draw(keys)) for each in published.roots)
    seen = apply_scope(PublishedSet(3, bound), replace(scope, sessions=sessions)).roots
    assert all(each.session in {None, *sessions} for each in seen)
    if scope.is_full:
        assert seen == tuple(each for each in bound if each.session in {None, *sessions})


def test_a_root_approved_for_a_session_is_in_its_workspace() -> None:
    mine, theirs = replace(NOTES, session="one"), replace(WEB, session="other")
    published = PublishedSet(1, (mine, API, theirs))
    own = replace(working_in(b"/x", b"/x", approvals=9), sessions=frozenset({"one"}))
    assert apply_scope(published, own).roots == (mine,)
    assert apply_scope(published, FULL_SCOPE).roots == (API,)


def test_the_anchor_is_the_innermost_root_or_else_a_known_project() -> None:
    known = [approved(1), pending(2)]
    catalog = Catalog.of(known, (), PLACES, 1, approvals=9)
    assert session_start_in(catalog, path(1) + b"/deep") == SessionStart(path(1), 9)
    assert session_start_in(catalog, path(2)) == SessionStart(path(2), 9)
    assert session_start_in(catalog, b"/elsewhere") == SessionStart(None, 9)
    assert session_start_in(catalog, b"/") == SessionStart(None, 9)


def test_only_folders_are_mcp_roots_except_with_any_uri() -> None:
    assert listed_roots(ALL, UriFilter.FILE) == (NOTES, API, INNER, WEB)
    assert listed_roots(ALL, UriFilter.ANY) == ALL.roots


@given(SETS, SCOPES)
def test_a_scope_keeps_the_matching_roots_in_their_order_and_narrows_once(
    published: PublishedSet, scope: Scope
) -> None:
    left = apply_scope(published, scope).roots
    assert left == tuple(each for each in published.roots if each in left)
    for each in left:
        named = each.name in scope.names or set(each.tags) & scope.tags
        assert scope.is_full or named or scope.narrows_by_folder
    words = replace(scope, folder=None)
    once = apply_scope(published, words)
    assert apply_scope(once, words) == once


@given(SETS, PATHS)
def test_root_containing_is_the_innermost_root(published: PublishedSet, path: bytes) -> None:
    found = root_containing(published, path)
    around = [each for each in published.roots if contains(each.path, path)]
    assert (found is None) is (not around)
    assert found is None or all(contains(each.path, found.path) for each in around)


def test_the_focus_narrows_only_full_scopes() -> None:
    work = Focus("work")
    assert apply_focus(FULL_SCOPE, NO_FOCUS, NO_FOCUS) is FULL_SCOPE
    assert apply_focus(Scope(uris=UriFilter.ANY), work, work) == Scope(
        tags=frozenset({"work"}), uris=UriFilter.ANY
    )
    own = Scope(names=frozenset({"api"}))
    assert apply_focus(own, work, work) is own


def test_a_scope_that_follows_the_focus_has_its_tag_at_any_time_and_nothing_without() -> None:
    following = Scope(focus=FocusUse.FOLLOW)
    assert not following.is_full
    assert kept(following) == ()
    python = NO_FOCUS.for_new_sessions("python")
    for focus, roots in ((NO_FOCUS, ()), (python, (API,)), (python.for_new_sessions(None), ())):
        for start in (NO_FOCUS, python):
            assert apply_scope(ALL, apply_focus(following, focus, start)).roots == roots
    more = Scope(names=frozenset({"src/web"}), focus=FocusUse.FOLLOW)
    assert apply_scope(ALL, apply_focus(more, python, NO_FOCUS)).roots == (API, WEB)
    assert apply_scope(ALL, apply_focus(more, NO_FOCUS, python)).roots == (WEB,)
    assert describe_scope(more) == ["src/web", "focus"]
