"""What changed between two published sets."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.model import Access, ProjectKind, PublishedRoot, PublishedSet
from rootsd.core.scope import UriFilter
from rootsd.mcp.diff import PublishedDiff, diff_published
from support.publishing import root

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


def test_a_removal_is_a_revoke() -> None:
    news = between((API, WEB), (API,))
    assert news.revokes
    assert "roots://root/acme/web" in news.resources


def test_less_access_is_a_revoke() -> None:
    news = between((API,), (replace(API, access=Access.READ),))
    assert news.revokes
    assert news.resources == {"roots://approved", "roots://root/api"}


def test_a_name_that_moves_to_another_folder_is_a_revoke() -> None:
    assert between((API,), (root("/elsewhere/api"),)).revokes


def test_a_root_that_is_no_folder_does_not_change_the_mcp_roots() -> None:
    news = between((API,), (API, DOCS))
    assert news.lists_resources
    assert not news.lists_roots
    assert diff_published(
        PublishedSet(1, (API,)), PublishedSet(2, (API, DOCS)), UriFilter.ANY
    ).lists_roots


def test_an_equal_set_is_no_news() -> None:
    news = between((API,), (replace(API),))
    assert news == PublishedDiff(
        frozenset(), lists_resources=False, lists_roots=False, revokes=False
    )


def test_a_set_that_was_missed_counts_as_a_revoke() -> None:
    news = diff_published(PublishedSet(1, (API,)), PublishedSet(3, (API,)), UriFilter.FILE)
    assert news.revokes
    assert news.lists_roots
    assert "roots://approved" in news.resources


ROOTS = tuple(root(f"/src/{name}") for name in "abcdef")
SETS = st.lists(st.sampled_from(ROOTS), unique=True)


@given(SETS, SETS, st.sets(st.sampled_from(ROOTS)))
def test_what_is_on_both_sides_in_whatever_order_is_no_news_and_all_else_is(
    old: list[PublishedRoot], new: list[PublishedRoot], less: set[PublishedRoot]
) -> None:
    changed = [replace(each, access=Access.READ) if each in less else each for each in new]
    news = between(tuple(old), tuple(changed))
    differ = {each.name for each in set(old) ^ set(changed)}
    assert news.resources - {"roots://approved"} == {f"roots://root/{name}" for name in differ}
    assert news.revokes == any(each.name in differ for each in old)


def test_news_of_two_steps_is_the_news_of_both() -> None:
    news = between((API,), (API, WEB)) | between((API, WEB), (API,))
    assert news.revokes
    assert news.resources == {"roots://approved", "roots://root/acme/web"}
