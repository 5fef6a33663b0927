"""The pages of a list that changes while a client reads it."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError

from rootsd.core.model import PublishedRoot
from rootsd.mcp.paging import PAGE_SIZE, page_at, reject_cursor
from support.bridges import Message
from support.mcp_harness import FakeSource, connected, root

NAMES = st.text(st.characters(), min_size=1, max_size=4)  # halves of surrogate pairs among them
SETS = st.frozensets(NAMES, max_size=8)


def roots(names: frozenset[str]) -> list[PublishedRoot]:
    return [root("/src/x", name=name) for name in sorted(names)]


@given(SETS, st.lists(SETS, min_size=1, max_size=6), st.integers(1, 3))
def test_a_root_that_stays_is_on_exactly_one_page(
    lasting: frozenset[str], passing: list[frozenset[str]], size: int
) -> None:
    seen: list[str] = []
    cursor, turns = None, 0
    while True:
        now = lasting | passing[min(turns, len(passing) - 1)]
        page = page_at(roots(now), cursor, size)
        seen += [each.name for each in page.roots]
        assert len(page.roots) <= size
        cursor, turns = page.next_cursor, turns + 1
        if cursor is None:
            break
    assert seen == sorted(set(seen))
    assert lasting <= set(seen)


def test_a_list_that_fits_is_one_page() -> None:
    some = roots(frozenset({"a", "b"}))
    assert page_at(some, None, 2).next_cursor is None
    assert page_at([], None).roots == []


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "\N{SNOWMAN}",
        "====",
        urlsafe_b64encode(b"name").decode(),
        "a" * 1001,
        urlsafe_b64encode(b"after:\xff").decode(),
    ],
)
def test_a_foreign_cursor_is_an_error(cursor: str) -> None:
    with pytest.raises(MCPError) as caught:
        page_at(roots(frozenset({"a"})), cursor)
    assert caught.value.code == -32602
    with pytest.raises(MCPError):
        reject_cursor(cursor)


async def test_a_client_reads_all_pages_of_the_resources() -> None:
    source = FakeSource(*(root(f"/src/project-{number:04}") for number in range(PAGE_SIZE + 2)))
    uris: list[str] = []
    sizes = []
    params: Message = {}
    async with connected(source) as peer:
        while True:
            page = (await peer.ask_2026("resources/list", params))["result"]
            sizes.append(len(page["resources"]))
            uris += [each["uri"] for each in page["resources"]]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
    assert sizes == [PAGE_SIZE + 1, 2]
    assert len(set(uris)) == PAGE_SIZE + 3


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list"])
async def test_every_list_refuses_a_wrong_cursor_in_every_revision(method: str) -> None:
    async with connected(FakeSource()) as peer:
        await peer.shake_hands()
        for ask in (peer.ask, peer.ask_2026):
            error = (await ask(method, {"cursor": "mine"}))["error"]
            assert error["code"] == -32602
            assert "cursor" in error["data"]["reason"]
