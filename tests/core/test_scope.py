"""A scope takes roots away and never adds one."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.model import Access, ProjectKind, Published, Root
from rootsd.core.paths import contains
from rootsd.core.scope import EVERYTHING, Scope, Uris, focused, holding, mcp_roots, narrow


def root(path: bytes, *tags: str) -> Root:
    name = path.decode().strip("/")
    return Root(path, name, ProjectKind.GIT, Access.READ_WRITE, tags)


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
ROOTS = st.builds(root, PATHS) | st.builds(root, PATHS, TAGS)
SETS = st.lists(ROOTS, max_size=6, unique_by=lambda each: each.path).map(
    lambda roots: Published(3, tuple(roots))
)
NAMES = PATHS.map(lambda path: path.decode().strip("/"))
SCOPES = st.builds(
    Scope, st.frozensets(NAMES, max_size=2), st.frozensets(TAGS, max_size=2), st.none() | PATHS
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


def test_a_folder_asks_for_the_innermost_root_that_holds_it() -> None:
    assert kept(Scope(folder=b"/src/api/inner/x")) == (INNER,)
    assert kept(Scope(folder=b"/src/api")) == (API,)
    assert kept(Scope(folder=b"/src/api-old")) == ()
    assert kept(Scope(folder=b"/src")) == ()


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
            or (scope.folder is not None and contains(each.path, scope.folder))
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
