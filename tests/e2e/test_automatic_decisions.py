"""Decisions for later take effect without a command: rules, and the ends of approvals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anyio import to_thread
from mcp import Client

from support.list_roots_output import listed
from support.person import Person
from support.sdk_clients import URI, bridge, legacy_client, modern_client, published

# The SDK deprecates parts that its own legacy mode still uses.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


async def test_a_clone_below_an_approve_rule_is_published_without_a_command(
    person: Person,
) -> None:
    person.rootsd("up", str(person.parent))
    covered = person.items("rule", "add", "approve", f"{person.parent}/acme/**")
    assert covered == []
    (person.parent / "acme").mkdir()
    async with legacy_client(person) as (legacy, told), modern_client(person) as (modern, heard):
        assert await published(legacy) == []
        await to_thread.run_sync(person.clone, "acme/fresh")
        await told.next()
        await heard.next()
        assert await published(legacy) == await published(modern) == ["fresh"]
        await to_thread.run_sync(person.clone, "other")
        await to_thread.run_sync(person.wait_until_listed, "other", "pending")
        assert await published(legacy) == ["fresh"]
        await to_thread.run_sync(person.rootsd, "rule", "rm", "1")
        await told.next()
        await heard.next()
        assert await published(legacy) == await published(modern) == []


def test_a_clone_below_a_deny_rule_is_never_pending(person: Person) -> None:
    person.rootsd("up", str(person.parent))
    (person.parent / "scratch").mkdir()
    person.rootsd("rule", "add", "deny", f"{person.parent}/scratch/**")
    person.clone("scratch/one")
    person.wait_until_listed("one", "ls", "--verdict", "denied")
    person.clone("two")
    person.wait_until_listed("two", "pending")
    assert person.names("pending") == ["two"]
    assert person.run("approve", "one").returncode == 4
    assert person.run("check", str(person.parent / "scratch" / "one")).returncode == 4
    person.rootsd("rule", "rm", "1")
    assert sorted(person.names("pending")) == ["one", "two"]


async def test_an_approval_with_an_end_is_withdrawn_and_clients_are_notified(
    person: Person,
) -> None:
    person.clone("one")
    person.rootsd("up", str(person.parent))
    async with legacy_client(person) as (legacy, told), modern_client(person) as (modern, heard):
        await to_thread.run_sync(person.rootsd, "approve", "one", "--for", "3s")
        await told.next()
        await heard.next()
        for client, notices in ((legacy, told), (modern, heard)):
            while await published(client):
                await notices.next()
    (item,) = person.items("pending")
    assert "its approval ended" in item["note"]


async def test_an_added_uri_is_in_tools_and_is_a_root_only_with_any_uri(
    person: Person,
) -> None:
    person.rootsd("up", str(person.parent))
    person.rootsd("add", "https://API.example.com/v1", "--name", "api")
    assert person.names("pending") == ["api"]
    person.rootsd("approve", "api")
    for words, shown in (((), []), (("--any-uri",), ["https://api.example.com/v1"])):
        async with Client(bridge(person, *words), mode="legacy") as client:
            tool = await client.call_tool("list_roots", {})
            assert listed(tool) == {"api": "https://api.example.com/v1"}
            contents: Any = (await client.read_resource(URI)).contents[0]
            assert [root["uri"] for root in json.loads(contents.text)["roots"]] == shown
    person.rootsd("forget", "api")
    assert person.names("ls") == []
