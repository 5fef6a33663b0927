"""MCP clients behind real bridges that follow the list of roots, each in its own way.

Each reads the list when a test asks, and when a notification says that the list changed. A
follower that nobody asks therefore shows which notifications have reached it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from rootsd.wire.jsonrpc import LineReader
from support.bridges import INITIALIZE, META_2026, Message, notice, request
from support.list_roots_output import listed
from support.sdk_clients import URI, legacy_subscriber, modern_subscriber

BRIDGE = ("-m", "rootsd", "bridge")
STOPPED = "rootsd down"
"""What an error names that a client deserves: the user has stopped the daemon, and for long."""

Names = frozenset[str]
Ask = Callable[[], Awaitable[Names]]


class WrongAnswer(Exception):
    """An answer that no client should ever see."""


class Follower:
    """A client's knowledge of the list. `ask` is set once the client is connected."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.ask: Ask
        self.known: Names = frozenset()
        self._told = anyio.Event()
        self._learnt = anyio.Event()

    def hear(self) -> None:
        """Note that the list may have changed."""
        self._told.set()

    async def hear_message(self, message: object) -> None:
        """Do the same, as the SDK's message handler."""
        self.hear()

    async def follow(self) -> None:
        """Read the list after each notification, until cancelled."""
        while True:
            await self._told.wait()
            self._told = anyio.Event()
            try:
                self.known = await self.ask()
            except (MCPError, WrongAnswer) as error:
                if STOPPED not in str(error):
                    raise
                continue  # stopped for longer; notifications come when it is back
            self._learnt.set()
            self._learnt = anyio.Event()

    async def knows(self, expected: Names, patience: float) -> None:
        """Wait until notifications have led the client to the list `expected`."""
        with anyio.move_on_after(patience):
            while self.known != expected:
                await self._learnt.wait()
            return
        raise WrongAnswer(f"{self.label} was not told: knows {self.known}, not {expected}")


@asynccontextmanager
async def followers(
    number: int, home: Path, *, bridge: tuple[str, ...] = BRIDGE
) -> AsyncIterator[list[Follower]]:
    """Connect and subscribe `number` clients of all four kinds."""
    sorts = (_raw_legacy, _raw_modern, _sdk_legacy, _sdk_modern)
    every = [Follower(f"{n} ({sorts[n % 4].__name__[1:]})") for n in range(number)]
    environment = {"ROOTSD_DIR": os.environ["ROOTSD_DIR"], "HOME": str(home)}
    async with anyio.create_task_group() as group:
        for n, follower in enumerate(every):
            await group.start(_run, sorts[n % 4], follower, environment, bridge)
        yield every
        group.cancel_scope.cancel()


async def _run(
    connect: Callable[..., Any],
    follower: Follower,
    environment: dict[str, str],
    bridge: tuple[str, ...],
    *,
    task_status: anyio.abc.TaskStatus[None],
) -> None:
    async with connect(follower, environment, bridge), anyio.create_task_group() as group:
        group.start_soon(follower.follow)
        task_status.started()
        await anyio.Event().wait()


class RawClient:
    """Sends JSON-RPC lines and checks that each id is answered exactly once."""

    def __init__(self, process: Process, follower: Follower) -> None:
        self._process = process
        self._follower = follower
        self._ids = count()
        self._waiting: dict[int, anyio.Event] = {}
        self._answers: dict[int, Message] = {}

    async def say(self, line: bytes) -> None:
        assert self._process.stdin
        await self._process.stdin.send(line)

    async def ask(self, method: str, params: object = None, *, streams: bool = False) -> Any:  # noqa: ANN401
        """Send a request and return its result; for a stream, only send it. Raises WrongAnswer for
        an error.
        """
        id_ = next(self._ids)
        arrived = self._waiting[id_] = anyio.Event()
        await self.say(request(id_, method, params))
        if streams:
            return None
        await arrived.wait()
        answer = self._answers[id_]
        if "result" not in answer:
            raise WrongAnswer(f"{self._follower.label}: {method}: {answer['error']}")
        return answer["result"]

    async def listen(self) -> None:
        """Process incoming messages until the stream ends."""
        lines = LineReader(1 << 30)
        assert self._process.stdout
        async for data in self._process.stdout:
            lines.feed(data)
            while (line := lines.pop()) is not None:
                self._take(json.loads(line))
        raise WrongAnswer(f"{self._follower.label}: the bridge has ended")

    def _take(self, message: Message) -> None:
        if "id" not in message:
            self._follower.hear()
            return
        id_ = message["id"]
        if id_ not in self._waiting or id_ in self._answers:
            raise WrongAnswer(f"{self._follower.label}: an answer to nothing: {message}")
        self._answers[id_] = message
        self._waiting[id_].set()


@asynccontextmanager
async def _raw(
    follower: Follower, environment: dict[str, str], bridge: tuple[str, ...]
) -> AsyncIterator[RawClient]:
    more = {"PATH": os.environ["PATH"]}
    process = await anyio.open_process(
        [sys.executable, *bridge], env=environment | more, cwd="/", stderr=None
    )
    async with process, anyio.create_task_group() as group:
        client = RawClient(process, follower)
        group.start_soon(client.listen)
        try:
            yield client
        finally:
            group.cancel_scope.cancel()
            process.kill()


@asynccontextmanager
async def _raw_legacy(
    follower: Follower, environment: dict[str, str], bridge: tuple[str, ...]
) -> AsyncIterator[None]:
    async with _raw(follower, environment, bridge) as client:

        async def ask() -> Names:
            listed = await client.ask("roots/list")
            return frozenset(root["name"] for root in listed["roots"])

        follower.ask = ask
        await client.ask("initialize", INITIALIZE)
        await client.say(notice("notifications/initialized"))
        await client.ask("resources/subscribe", {"uri": URI})
        yield


@asynccontextmanager
async def _raw_modern(
    follower: Follower, environment: dict[str, str], bridge: tuple[str, ...]
) -> AsyncIterator[None]:
    wanted = {"resourcesListChanged": True, "resourceSubscriptions": [URI]}
    async with _raw(follower, environment, bridge) as client:

        async def ask() -> Names:
            params = {"name": "list_roots", "arguments": {}, "_meta": META_2026}
            return frozenset(listed(await client.ask("tools/call", params)))

        follower.ask = ask
        stream = {"notifications": wanted, "_meta": META_2026}
        await client.ask("subscriptions/listen", stream, streams=True)
        yield


def _parameters(environment: dict[str, str], bridge: tuple[str, ...]) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=list(bridge), env=environment, cwd="/"
    )


async def _read(client: Client) -> Names:
    contents: Any = (await client.read_resource(URI)).contents[0]
    return frozenset(root["name"] for root in json.loads(contents.text)["roots"])


@asynccontextmanager
async def _sdk_legacy(
    follower: Follower, environment: dict[str, str], bridge: tuple[str, ...]
) -> AsyncIterator[None]:
    parameters = _parameters(environment, bridge)
    async with legacy_subscriber(parameters, follower.hear_message) as client:
        follower.ask = lambda: _read(client)
        yield


@asynccontextmanager
async def _sdk_modern(
    follower: Follower, environment: dict[str, str], bridge: tuple[str, ...]
) -> AsyncIterator[None]:
    parameters = _parameters(environment, bridge)
    async with modern_subscriber(parameters, follower.hear_message) as client:
        follower.ask = lambda: _read(client)
        yield
