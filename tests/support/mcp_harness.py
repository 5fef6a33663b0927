"""A source of roots that tests set, and an MCP connection to it without a socket."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import copy
from posixpath import normpath
from typing import Any

import anyio
from anyio.abc import ByteStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from rootsd.core.access import Access
from rootsd.core.errors import Busy
from rootsd.core.model import (
    Focus,
    ProjectKind,
    PublishedRoot,
    PublishedSet,
    SessionKey,
)
from rootsd.core.paths import contains
from rootsd.core.scope import NO_SESSION_START, SessionStart, root_containing
from rootsd.mcp.connection import (
    DEFAULT_PEER_LIMITS,
    DisconnectReason,
    PeerLimits,
    serve_session,
)
from rootsd.mcp.responses import AwaitTurn
from rootsd.mcp.server import build_server
from rootsd.mcp.source import RootsSource
from rootsd.mcp.views import ConnectionView
from rootsd.wire.jsonrpc import LineReader
from support.bridges import META_2026, Message
from support.recorded_session import RecordedObserver

HANG_GUARD_S = 60
TAKEN_AT_ONCE = 16 * 1024


def root(
    path: str,
    *,
    name: str = "",
    kind: ProjectKind = ProjectKind.GIT,
    tags: tuple[str, ...] = (),
    of: str | None = None,
) -> PublishedRoot:
    """Return a root at `path`. Its default name is that of its folder.

    It is a worktree `of` another root, or none.
    """
    if kind is ProjectKind.URI:
        return PublishedRoot(path.encode(), name, kind, Access.READ_WRITE, tags)
    label = name or path.rpartition("/")[2]
    main = None if of is None else of.encode()
    return PublishedRoot(path.encode(), label, kind, Access.READ_WRITE, tags, main_checkout=main)


class FakeRequestHandle:
    """A root request that the test denies."""

    def __init__(self) -> None:
        self._denied = anyio.Event()

    def deny(self) -> None:
        """Deny the request."""
        self._denied.set()

    @property
    def is_denied(self) -> bool:
        return self._denied.is_set()

    async def wait_denied(self) -> None:
        await self._denied.wait()


class FakeSource:
    """A RootsSource with the set that was published last."""

    def __init__(self, *roots: PublishedRoot) -> None:
        self._published = PublishedSet(1, roots)
        self._changed = anyio.Event()
        self.error: Exception | None = None
        self.links: dict[bytes, bytes] = {}
        self.projects: set[bytes] = set()
        self.requests: list[tuple[bytes, str, str]] = []
        self.handle = FakeRequestHandle()
        self.busy: Busy | None = None

    @property
    def revision(self) -> int:
        return self._published.revision

    def publish(self, *roots: PublishedRoot) -> None:
        """Replace the set, and wake all waiters."""
        self._published = PublishedSet(self._published.revision + 1, roots, self._published.focus)
        self._changed.set()
        self._changed = anyio.Event()

    def refocus(self, focus: Focus) -> None:
        """Keep the set, and change the focus."""
        self._published = PublishedSet(self._published.revision + 1, self._published.roots, focus)
        self._changed.set()
        self._changed = anyio.Event()

    async def current(self) -> PublishedSet:
        if self.error:
            raise self.error
        return self._published

    async def wait_past(self, revision: int) -> PublishedSet:
        while self._published.revision <= revision:
            await self._changed.wait()
        return self._published

    def request(
        self, path: bytes, client: str, reason: str, session: SessionKey | None, process: str
    ) -> FakeRequestHandle:
        del session, process
        if self.busy:
            raise self.busy
        self.requests.append((path, client, reason))
        self.handle = FakeRequestHandle()
        return self.handle

    async def visible(self, path: bytes) -> bytes:
        return await self.canonical(path)

    async def canonical(self, path: bytes) -> bytes:
        """Resolve a path on a disk whose only links are `links`."""
        whole = normpath(path)
        for link, target in self.links.items():
            if contains(link, whole):
                return target + whole.removeprefix(link)
        return whole

    async def session_start(self, folder: bytes) -> SessionStart:
        """Return the innermost root as the anchor, or else one of the `projects`."""
        root = root_containing(self._published, folder)
        known = [path for path in self.projects if contains(path, folder)]
        newest = max((each.approval for each in self._published.roots), default=0)
        return SessionStart(root.path if root else max(known, default=None), newest)


def byte_pipe(capacity: float = math.inf) -> tuple[ByteStream, ByteStream]:
    """Return two connected byte streams. `capacity` is the number of unread writes that each
    holds.
    """
    out_a, in_b = anyio.create_memory_object_stream[bytes](capacity)
    out_b, in_a = anyio.create_memory_object_stream[bytes](capacity)
    return _Bytes(out_a, in_a), _Bytes(out_b, in_b)


class _Bytes(ByteStream):
    def __init__(
        self, out: MemoryObjectSendStream[bytes], into: MemoryObjectReceiveStream[bytes]
    ) -> None:
        self._out = out
        self._in = into

    def send_nowait(self, data: bytes) -> int:
        """Send as a socket does: only a part at most, and nothing without room."""
        part = data[:TAKEN_AT_ONCE]
        try:
            self._out.send_nowait(part)
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return 0
        return len(part)

    async def send(self, item: bytes) -> None:
        await self._out.send(item)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = await self._in.receive()
        assert len(data) <= max_bytes, "a test writes at most what a session reads at once"
        return data

    async def send_eof(self) -> None:
        self._out.close()

    async def aclose(self) -> None:
        self._out.close()
        self._in.close()


class Peer:
    """The client's end of a connection, line by line. `seen` holds the server's calls to its
    observer.
    """

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._lines = LineReader(1 << 30)
        self.end: DisconnectReason | None = None
        self.seen = RecordedObserver()
        self.is_active = False

    def mark_active(self) -> None:
        """Note that the session has read a line."""
        self.is_active = True

    async def write(self, *lines: bytes) -> None:
        await self.stream.send(b"".join(line + b"\n" for line in lines))

    async def say(self, method: str, params: object = None, *, id_: object = None) -> None:
        """Send a request, or a notification if there is no id."""
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if id_ is not None:
            message["id"] = id_
        await self.write(json.dumps(message).encode())

    async def hear(self) -> Message:
        """Return the next message. Raises EndOfStream."""
        with anyio.fail_after(HANG_GUARD_S):
            while (line := self._lines.pop()) is None:
                self._lines.feed(await self.stream.receive())
        message: Message = json.loads(line)
        return message

    async def ask(self, method: str, params: object = None, *, id_: object = 1) -> Message:
        """Send a request, and return the next message."""
        await self.say(method, params, id_=id_)
        return await self.hear()

    async def ask_2026(
        self, method: str, params: Mapping[str, Any] | None = None, *, id_: object = 1
    ) -> Message:
        """Do the same with the envelope of 2026-07-28."""
        return await self.ask(method, {**(params or {}), "_meta": META_2026}, id_=id_)

    async def shake_hands(self, version: str = "2025-11-25") -> Message:
        """Send `initialize` and `initialized`, and return the answer."""
        info = {"name": "a test", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        answer = await self.ask("initialize", params, id_=0)
        await self.say("notifications/initialized")
        return answer

    async def hears_end(self) -> DisconnectReason:
        """Wait until the session is over, and return how it ended."""
        with anyio.fail_after(HANG_GUARD_S):
            try:
                while True:
                    await self.stream.receive()
            except anyio.EndOfStream:
                pass
            while self.end is None:
                await anyio.lowlevel.checkpoint()
        return self.end


async def no_wait() -> None:
    """Return at once: there are no other connections to wait for."""


@asynccontextmanager
async def connected(
    source: FakeSource,
    *,
    turn: AwaitTurn = no_wait,
    limits: PeerLimits = DEFAULT_PEER_LIMITS,
    capacity: float = math.inf,
    start: SessionStart = NO_SESSION_START,
) -> AsyncIterator[Peer]:
    """Connect a client to a session over `source`."""
    mine, theirs = byte_pipe(capacity)
    peer = Peer(mine)

    async def serve() -> None:
        peer.end = await serve_session(
            theirs,
            source,
            observer=peer.seen,
            mark_active=peer.mark_active,
            await_turn=turn,
            limits=limits,
            start=start,
        )

    async with anyio.create_task_group() as group:
        group.start_soon(serve)
        try:
            yield peer
        finally:
            await mine.aclose()
        with anyio.fail_after(HANG_GUARD_S):
            while peer.end is None:
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def transport(
    stream: ByteStream,
) -> AsyncIterator[
    tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception],
        MemoryObjectSendStream[SessionMessage],
    ]
]:
    """Return the SDK client's transport over a byte stream."""
    to_client, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_client, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        lines = LineReader(1 << 30)
        with to_client:
            try:
                while True:
                    lines.feed(await stream.receive())
                    while (line := lines.pop()) is not None:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                        await to_client.send(SessionMessage(message))
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                pass

    async def write() -> None:
        with outgoing:
            async for item in outgoing:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stream.send(text.encode() + b"\n")

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        with messages, from_client:
            yield messages, from_client
        group.cancel_scope.cancel()


def sdk_server(source: RootsSource) -> Server[ConnectionView]:
    """Return a server that a transport of the SDK can serve."""

    @asynccontextmanager
    async def lifespan(_: Server[ConnectionView]) -> AsyncIterator[ConnectionView]:
        yield ConnectionView(source, RecordedObserver())

    server = copy(build_server())
    server.lifespan = lifespan
    return server
