"""The difference between two published sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.model import (
    ProjectKind,
    PublishedRoot,
    PublishedSet,
)
from rootsd.core.scope import UriFilter
from rootsd.mcp.diff import PublishedDiff, diff_published
from support.mcp_harness import root

API, WEB = root("/src/api"), root("/src/acme/web", name="acme/web")
DOCS = root("https://docs.example/v1", name="docs", kind=ProjectKind.URI)


def between(before: tuple[PublishedRoot, ...], after: tuple[PublishedRoot, ...]) -> PublishedDiff:
    return diff_published(PublishedSet(1, before), PublishedSet(2, after), UriFilter.FILE)


def test_an_addition_changes_the_lists_and_revokes_nothing() -> None:
    assert between((API,), (WEB, API)) == PublishedDiff(
        frozenset({"roots://approved", "roots://root/acme/web"}),
        lists_resources=True,
        lists_roots=True,
        revokes=False,
    )


def test_a_removal_is_a_revocation() -> None:
    news = between((API, WEB), (API,))
    assert news.revokes
    assert "roots://root/acme/web" in news.resources


def test_less_access_is_a_revocation() -> None:
    news = between((API,), (replace(API, access=Access.READ),))
    assert news.revokes
    assert news.resources == {"roots://approved", "roots://root/api"}


def test_a_name_that_moves_to_another_folder_is_a_revocation() -> None:
    assert between((API,), (root("/elsewhere/api"),)).revokes


def test_a_root_that_is_not_a_folder_does_not_change_the_mcp_roots() -> None:
    news = between((API,), (API, DOCS))
    assert news.lists_resources
    assert not news.lists_roots
    assert diff_published(
        PublishedSet(1, (API,)), PublishedSet(2, (API, DOCS)), UriFilter.ANY
    ).lists_roots


def test_an_equal_set_has_no_changes() -> None:
    news = between((API,), (replace(API),))
    assert news == PublishedDiff(
        frozenset(), lists_resources=False, lists_roots=False, revokes=False
    )


def test_a_missed_set_counts_as_a_revocation() -> None:
    news = diff_published(PublishedSet(1, (API,)), PublishedSet(3, (API,)), UriFilter.FILE)
    assert news.revokes
    assert news.lists_roots
    assert "roots://approved" in news.resources


ROOTS = tuple(root(f"/src/{name}") for name in "abcdef")
SETS = st.lists(st.sampled_from(ROOTS), unique=True)


@given(SETS, SETS, st.sets(st.sampled_from(ROOTS)))
def test_the_changes_are_the_roots_that_differ_in_any_order(
    old: list[PublishedRoot], new: list[PublishedRoot], less: set[PublishedRoot]
) -> None:
    changed = [replace(each, access=Access.READ) if each in less else each for each in new]
    news = between(tuple(old), tuple(changed))
    differ = {each.name for each in set(old) ^ set(changed)}
    assert news.resources - {"roots://approved"} == {f"roots://root/{name}" for name in differ}
    assert news.revokes == any(each.name in differ for each in old)


def test_the_diff_of_two_steps_is_their_union() -> None:
    news = between((API,), (API, WEB)) | between((API, WEB), (API,))
    assert news.revokes
    assert news.resources == {"roots://approved", "roots://root/acme/web"}
