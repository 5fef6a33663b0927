"""Completion of the names of roots."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.mcp.resources import matching_names
from support.mcp_harness import FakeSource, connected, root

TEMPLATE = {"type": "ref/resource", "uri": "roots://root/{+name}"}


def typed(value: str, name: str = "name", ref: object = None) -> dict[str, Any]:
    return {"ref": ref or TEMPLATE, "argument": {"name": name, "value": value}}


def test_names_with_the_prefix_come_before_names_with_a_part_that_has_it() -> None:
    names = ["acme/Api", "api", "api-old", "web/rapid"]
    assert matching_names(names, "API") == ["api", "api-old", "acme/Api"]
    assert matching_names(names, "") == names
    assert matching_names(names, "x") == []


async def test_completed_names_lead_to_their_resource_in_every_revision() -> None:
    odd = root("/src/odd", name="odd\u202e")
    async with connected(FakeSource(root("/src/api"), odd)) as peer:
        await peer.shake_hands()
        for ask in (peer.ask, peer.ask_2026):
            found = (await ask("completion/complete", typed("od")))["result"]["completion"]
            assert found == {"values": ["odd\\u{202e}"], "total": 1, "hasMore": False}
        read = await peer.ask_2026("resources/read", {"uri": "roots://root/odd%5Cu%7B202e%7D"})
        assert "/src/odd" in read["result"]["contents"][0]["text"]


async def test_a_completion_has_at_most_a_hundred_names_and_the_total() -> None:
    source = FakeSource(*(root(f"/src/p{number:03}") for number in range(150)))
    async with connected(source) as peer:
        found = (await peer.ask_2026("completion/complete", typed("p")))["result"]["completion"]
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 150, True)


async def test_roots_outside_of_the_scope_are_not_completed() -> None:
    async with connected(FakeSource(root("/src/api"), root("/src/apple"))) as peer:
        await peer.ask("rootsd/hello", {"version": 1, "scope": {"names": ["api"]}})
        found = (await peer.ask_2026("completion/complete", typed("ap")))["result"]["completion"]
    assert found["values"] == ["api"]


@pytest.mark.parametrize(
    "params",
    [
        typed("a", name="path"),
        typed("a", ref={"type": "ref/resource", "uri": "roots://approved"}),
        typed("a", ref={"type": "ref/prompt", "name": "p"}),
    ],
)
async def test_other_arguments_cannot_be_completed(params: dict[str, Any]) -> None:
    async with connected(FakeSource()) as peer:
        error = (await peer.ask_2026("completion/complete", params))["error"]
    assert error["code"] == -32602
    assert error["data"]["reason"]
