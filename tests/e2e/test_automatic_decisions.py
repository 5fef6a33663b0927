"""Decisions for later take effect without a command: rules, and the ends of approvals."""

from __future__ import annotations

import pytest
from anyio import to_thread

from support.person import Person
from support.sdk_clients import legacy_client, modern_client, published

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
