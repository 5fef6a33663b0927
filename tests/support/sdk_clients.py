"""MCP clients of the SDK on `rootsd bridge`, in both protocol eras, with the notifications that
they get.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.stdio import StdioServerParameters

from support.list_roots_output import listed
from support.person import HANG_GUARD, Person

URI = "roots://approved"


def bridge(person: Person, *words: str) -> StdioServerParameters:
    """Return a client's configuration of the bridge. Clients pass almost no environment on."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "rootsd", "bridge", *words],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"], "HOME": str(person.home)},
    )


class NotificationCounter:
    """Counts the notifications of a client and lets a test wait for the next one."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self._arrived = anyio.Event()

    async def take(self, notice: object) -> None:
        self.notices.append(type(notice).__name__)
        self._arrived.set()

    async def next(self) -> None:
        with anyio.fail_after(HANG_GUARD):
            await self._arrived.wait()
        self._arrived = anyio.Event()


@asynccontextmanager
async def legacy_client(person: Person) -> AsyncIterator[tuple[Client, NotificationCounter]]:
    told = NotificationCounter()
    async with legacy_subscriber(bridge(person), told.take) as client:
        yield client, told


@asynccontextmanager
async def modern_client(person: Person) -> AsyncIterator[tuple[Client, NotificationCounter]]:
    told = NotificationCounter()
    async with modern_subscriber(bridge(person), told.take) as client:
        yield client, told


@asynccontextmanager
async def legacy_subscriber(
    server: StdioServerParameters, hear: Callable[[object], Awaitable[None]]
) -> AsyncIterator[Client]:
    """Connect a client that subscribes to the list by a request, and hears each notification."""

    async def take(message: IncomingMessage) -> None:
        await hear(message)

    async with Client(server, mode="legacy", message_handler=take) as client:
        await client.session.subscribe_resource(URI)
        yield client


@asynccontextmanager
async def modern_subscriber(
    server: StdioServerParameters, hear: Callable[[object], Awaitable[None]]
) -> AsyncIterator[Client]:
    """Connect a client that hears the events of a stream, which must not end."""
    listening = anyio.Event()

    async def follow(client: Client) -> None:
        async with client.listen(resource_subscriptions=[URI]) as events:
            listening.set()
            async for event in events:
                await hear(event)
        raise AssertionError("the stream has ended")

    async with Client(server, mode="2026-07-28") as client, anyio.create_task_group() as group:
        group.start_soon(follow, client)
        await listening.wait()
        yield client
        group.cancel_scope.cancel()


async def published(client: Client) -> list[str]:
    """Return the names of the roots from the resource, after checking that the tool agrees."""
    contents: Any = (await client.read_resource(URI)).contents[0]
    by_resource = [root["name"] for root in json.loads(contents.text)["roots"]]
    assert list(listed(await client.call_tool("list_roots", {}))) == by_resource
    return by_resource
