"""A scope takes roots away and never adds one."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.catalog import Catalog
from rootsd.core.model import Access, ProjectKind, Published, Root
from rootsd.core.paths import contains
from rootsd.core.scope import (
    EVERYTHING,
    Extent,
    Scope,
    Start,
    Uris,
    focused,
    holding,
    mcp_roots,
    narrow,
    starting_in,
    workspace,
)
from support.decisions import approved
from support.decisions import project as pending
from support.fakes import PLACES, path


def root(path: bytes, *tags: str, main: bytes | None = None, approval: int = 0) -> Root:
    name = path.decode().strip("/")
    return Root(path, name, ProjectKind.GIT, Access.READ_WRITE, tags, main, approval)


API = root(b"/src/api", "work", "python")
INNER = root(b"/src/api/inner")
WEB = root(b"/src/web", "work")
NOTES = root(b"/notes")
DOCS = Root(
    b"https://docs.example/v1", "docs", ProjectKind.URI,
    Access.READ, ("work",),
)  # fmt: skip
ALL = Published(7, (DOCS, NOTES, API, INNER, WEB))

PARTS = st.lists(st.sampled_from([b"a", b"b", b"ab"]), min_size=1, max_size=3)
PATHS = PARTS.map(lambda parts: b"/" + b"/".join(parts))
TAGS = st.sampled_from(["work", "python", "old"])
MADE = {"main": st.none() | PATHS, "approval": st.integers(0, 4)}
ROOTS = st.builds(root, PATHS, **MADE) | st.builds(root, PATHS, TAGS, **MADE)
SETS = st.lists(ROOTS, max_size=6, unique_by=lambda each: each.path).map(
    lambda roots: Published(3, tuple(roots))
)
NAMES = PATHS.map(lambda path: path.decode().strip("/"))
STARTS = st.builds(Start, st.none() | PATHS, st.integers(0, 3))
SCOPES = st.builds(
    Scope,
    st.frozensets(NAMES, max_size=2),
    st.frozensets(TAGS, max_size=2),
    st.none() | PATHS,
    extent=st.sampled_from(Extent),
    start=STARTS,
)


def kept(scope: Scope) -> tuple[Root, ...]:
    return narrow(ALL, scope).roots


def test_no_wish_is_the_whole_set_itself() -> None:
    assert narrow(ALL, EVERYTHING) is ALL
    assert narrow(ALL, replace(EVERYTHING, uris=Uris.ANY)) is ALL


def test_names_and_tags_ask_for_the_roots_that_bear_one_of_them() -> None:
    assert kept(Scope(names=frozenset({"src/web", "unknown"}))) == (WEB,)
    assert kept(Scope(tags=frozenset({"work"}))) == (DOCS, API, WEB)
    assert kept(Scope(frozenset({"notes"}), frozenset({"python"}))) == (NOTES, API)


def cwd(folder: bytes, anchor: bytes | None) -> Scope:
    return Scope(folder=folder, start=Start(anchor))


def working_in(folder: bytes, anchor: bytes | None, approvals: int = 0) -> Scope:
    return Scope(folder=folder, extent=Extent.WORKSPACE, start=Start(anchor, approvals))


def test_a_folder_asks_for_the_root_that_held_it_at_the_start() -> None:
    assert kept(cwd(b"/src/api/inner/x", b"/src/api/inner")) == (INNER,)
    assert kept(cwd(b"/src/api/inner/x", b"/src/api")) == (API,)
    assert kept(cwd(b"/src/api", b"/src/gone")) == ()


def test_a_folder_that_no_project_held_asks_for_the_outermost_root_that_does_later() -> None:
    assert kept(cwd(b"/src/api/inner/x", None)) == (API,)
    assert kept(cwd(b"/src/api-old", None)) == ()


def test_a_workspace_is_the_root_its_worktrees_and_the_roots_that_share_a_tag() -> None:
    tree = root(b"/trees/api", main=b"/src/api")
    other = root(b"/trees/web", main=b"/src/web")
    published = Published(1, (*ALL.roots, tree, other))
    seen = narrow(published, working_in(b"/src/api/x", b"/src/api")).roots
    assert seen == (DOCS, API, WEB, tree)
    assert narrow(published, working_in(b"/notes", b"/notes")).roots == (NOTES,)


def test_a_workspace_gains_what_a_person_approves_while_the_session_runs() -> None:
    earlier, later = root(b"/a", approval=3), root(b"/b", approval=4)
    by_rule = root(b"/c")
    published = Published(1, (earlier, later, by_rule))
    assert narrow(published, working_in(b"/x", b"/x", approvals=3)).roots == (later,)


def test_a_session_in_no_project_has_the_whole_set_and_follows_the_focus() -> None:
    home = working_in(b"/home/user", None, approvals=3)
    assert narrow(ALL, home) is ALL
    assert narrow(ALL, focused(home, "python")).roots == (API,)
    own = working_in(b"/src/api", b"/src/api")
    assert focused(own, "old") is own


def test_the_workspace_is_marked_whatever_the_session_sees() -> None:
    assert workspace(ALL, EVERYTHING) == {each.path for each in ALL.roots}
    assert workspace(ALL, working_in(b"/notes/x", b"/notes")) == {b"/notes"}


@given(SETS, SCOPES, st.data())
def test_a_removal_never_opens_another_folder(
    published: Published, scope: Scope, data: st.DataObject
) -> None:
    left = data.draw(st.lists(st.sampled_from(published.roots or (API,)), unique=True))
    fewer = Published(4, tuple(each for each in published.roots if each in left))
    open_before = narrow(published, scope).roots
    for each in narrow(fewer, scope).roots:
        assert any(contains(before.path, each.path) for before in open_before)


@given(SETS, SETS, PATHS, st.integers(0, 4))
def test_a_workspace_depends_on_its_root_and_on_later_approvals_alone(
    published: Published, others: Published, anchor: bytes, approvals: int
) -> None:
    scope = working_in(anchor, anchor, approvals)
    for each in narrow(published, scope).roots:
        here = next((other for other in published.roots if other.path == anchor), None)
        belongs = here is not None and (
            each is here or each.main_checkout == anchor or set(each.tags) & set(here.tags)
        )
        assert belongs or each.approval > approvals


@given(SETS, SCOPES, st.frozensets(st.sampled_from(["one", "other"])), st.data())
def test_a_root_for_one_session_is_seen_by_that_session_alone(
    published: Published, scope: Scope, sessions: frozenset[str], data: st.DataObject
) -> None:
    keys = st.sampled_from([None, "one", "other"])
    bound = tuple(replace(each, session=data.draw(keys)) for each in published.roots)
    seen = narrow(Published(3, bound), replace(scope, sessions=sessions)).roots
    assert all(each.session in {None, *sessions} for each in seen)
    if scope.takes_all:
        assert seen == tuple(each for each in bound if each.session in {None, *sessions})


def test_what_is_approved_for_a_session_is_in_its_workspace() -> None:
    mine, theirs = replace(NOTES, session="one"), replace(WEB, session="other")
    published = Published(1, (mine, API, theirs))
    own = replace(working_in(b"/x", b"/x", approvals=9), sessions=frozenset({"one"}))
    assert narrow(published, own).roots == (mine,)
    assert narrow(published, EVERYTHING).roots == (API,)


def test_a_session_stands_for_the_innermost_root_or_else_for_a_known_project() -> None:
    known = [approved(1), pending(2)]
    catalog = Catalog.of(known, (), PLACES, 1, approvals=9)
    assert starting_in(catalog, path(1) + b"/deep") == Start(path(1), 9)
    assert starting_in(catalog, path(2)) == Start(path(2), 9)
    assert starting_in(catalog, b"/elsewhere") == Start(None, 9)
    assert starting_in(catalog, b"/") == Start(None, 9)


def test_a_wish_that_nothing_fits_leaves_nothing() -> None:
    assert kept(Scope(names=frozenset({"unknown"}))) == ()
    assert narrow(ALL, Scope(folder=b"/")).revision == 7


def test_only_folders_are_mcp_roots_unless_any_uri_was_asked_for() -> None:
    assert mcp_roots(ALL, Uris.FILE) == (NOTES, API, INNER, WEB)
    assert mcp_roots(ALL, Uris.ANY) == ALL.roots


@given(SETS, SCOPES)
def test_what_is_left_is_a_part_in_the_same_order(published: Published, scope: Scope) -> None:
    left = narrow(published, scope).roots
    assert left == tuple(each for each in published.roots if each in left)


@given(SETS, SCOPES)
def test_narrowing_again_by_names_and_tags_takes_nothing_more(
    published: Published, scope: Scope
) -> None:
    words = replace(scope, folder=None)
    once = narrow(published, words)
    assert narrow(once, words) == once


@given(SETS, SCOPES)
def test_each_root_that_is_left_was_asked_for(published: Published, scope: Scope) -> None:
    for each in narrow(published, scope).roots:
        assert (
            scope.takes_all
            or each.name in scope.names
            or set(each.tags) & scope.tags
            or scope.takes_by_folder
        )


@given(SETS, PATHS)
def test_no_other_root_that_holds_a_path_lies_further_in(
    published: Published, path: bytes
) -> None:
    found = holding(published, path)
    around = [each for each in published.roots if contains(each.path, path)]
    assert (found is None) is (not around)
    assert found is None or all(contains(each.path, found.path) for each in around)


def test_the_focus_narrows_those_that_asked_for_no_part_of_the_set() -> None:
    assert focused(EVERYTHING, None) is EVERYTHING
    assert focused(Scope(uris=Uris.ANY), "work") == Scope(tags=frozenset({"work"}), uris=Uris.ANY)
    own = Scope(names=frozenset({"api"}))
    assert focused(own, "work") is own
