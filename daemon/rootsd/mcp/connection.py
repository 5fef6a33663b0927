"""Serve one MCP connection: read requests, write lines, and notify of changes.

The one place where lines leave a connection: whole, in order, and bounded.

No line waits in a buffer behind another: whoever has one waits until the one before it is out, so
the memory of a connection is bounded. Whoever is cancelled meanwhile cannot cut a line short.

One MCP connection from its first byte to its last: read, answer, tell what changed.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import anyio
from anyio.abc import ByteStream, TaskGroup, TaskStatus

from rootsd.core.scope import NO_SESSION_START, SessionStart
from rootsd.core.session_keys import NO_MEMBERSHIP, SessionMembership
from rootsd.core.throttle import TokenBucket
from rootsd.mcp.diff import PublishedDiff
from rootsd.mcp.protocol import ProtocolRouter
from rootsd.mcp.server import build_server
from rootsd.mcp.source import RootsSource, SessionObserver
from rootsd.mcp.subscriptions import CHANGE_NOTIFICATION_INTERVAL_S, NotificationThrottle
from rootsd.mcp.views import DEFAULT_WAIT_LIMITS, ConnectionView, WaitLimits
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import MAX_REQUEST_BYTES, ErrorResponse, LineReader, LineTooLong


@runtime_checkable
class NonBlockingSender(Protocol):
    """A stream that can be written to without waiting, which most lines need and no more."""

    def send_nowait(self, data: bytes) -> int:
        """How many bytes of `data` were taken at once; 0 also where the stream is broken."""
        ...


class PeerStalled(Exception):
    """The peer took no bytes for too long."""


class LineWriter:
    """Writes lines to `stream`; `run` is its task. `stall_s` is how long the peer may take for
    `chunk` bytes."""

    def __init__(self, stream: ByteStream, *, chunk: int, stall_s: float) -> None:
        self._stream = stream
        self._prompt = stream if isinstance(stream, NonBlockingSender) else None
        self._chunk = chunk
        self._stall_s = stall_s
        self._rest = b""
        self._closed = False
        self._ended = False
        self._wanted = anyio.Event()
        self._drained = anyio.Event()

    async def send(self, line: bytes) -> None:
        """Write a line, and return once it is out. Raises BrokenResourceError once `run` ended."""
        while self._rest:
            await self._drained.wait()
        if self._ended:
            raise anyio.BrokenResourceError
        # No await from here to the end of the line being noted.
        self._rest = line[self._prompt.send_nowait(line) :] if self._prompt else line
        if self._rest:
            self._wanted.set()
            await self._drained.wait()

    def close(self) -> None:
        """Let `run` end after what it was given."""
        self._closed = True
        self._wanted.set()

    async def run(self) -> None:
        """Write what could not be written at once. Raises Stalled where the peer does not read,
        BrokenResourceError and ClosedResourceError where it is gone."""
        try:
            await self._run()
        finally:
            self._ended = True

    async def _run(self) -> None:
        while self._rest or not self._closed:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            rest = self._rest
            for start in range(0, len(rest), self._chunk):
                try:
                    with anyio.fail_after(self._stall_s):
                        await self._stream.send(rest[start : start + self._chunk])
                except TimeoutError as error:
                    raise PeerStalled from error
            self._rest = b""
            self._drained.set()
            self._drained = anyio.Event()


_READ_SIZE = 64 * 1024


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """What one connection may use; all of it is configuration."""

    line: int = MAX_REQUEST_BYTES
    """Longest request, in bytes. Answers may be longer: thousands of roots take megabytes."""
    first_line_s: float = 30.0
    """Time to the end of the first line."""
    stall_s: float = 5.0
    """A client that does not take one `write_size` of its answer in this time is dropped."""
    write_size: int = 16 * 1024
    notice_interval_s: float = CHANGE_NOTIFICATION_INTERVAL_S
    patience: WaitLimits = DEFAULT_WAIT_LIMITS


DEFAULT_PEER_LIMITS = PeerLimits()
AwaitTurn = Callable[[], Awaitable[None]]
"""Returns when this connection is due to have a line of its handled."""


async def no_wait() -> None:
    """For whoever is alone."""


class DisconnectReason(StrEnum):
    """How a connection came to its end."""

    LEFT = "left"
    SILENT = "said nothing"
    LINE_TOO_LONG = "sent too long a line"
    SLOW_READER = "did not read its answers"


async def serve_session(  # noqa: PLR0913 - one connection has many sides
    stream: ByteStream,
    source: RootsSource,
    *,
    witness: SessionObserver,
    heard: Callable[[], None] = lambda: None,
    requests: TokenBucket | None = None,
    member: SessionMembership = NO_MEMBERSHIP,
    start: SessionStart = NO_SESSION_START,
    turn: AwaitTurn = no_wait,
    limits: PeerLimits = DEFAULT_PEER_LIMITS,
) -> DisconnectReason:
    """Serve MCP on `stream` until the peer leaves or oversteps a limit; closes the stream.

    `witness` is told what is to be known about the session. `heard` is called when it has sent a
    whole line. `requests` is how often its process may ask for a folder, and `member` tells which
    sessions it belongs to. `start` tells its workspace, whose roots are marked. Each line waits
    for its `turn`. Nothing that a peer sends raises.
    Cancel the call to end the connection from this side.
    """
    view = ConnectionView(source, witness, limits.patience, member=member, start=start)
    if requests is not None:
        view.requests = requests
    session = _Connection(stream, view, heard, turn, limits)
    try:
        return await session.run()
    finally:
        await anyio.aclose_forcefully(stream)


class _Connection:
    def __init__(
        self,
        stream: ByteStream,
        view: ConnectionView,
        heard: Callable[[], None],
        turn: AwaitTurn,
        limits: PeerLimits,
    ) -> None:
        self._heard = heard
        self._turn = turn
        self._stream = stream
        self._source = view.source
        self._limits = limits
        self._view = view
        self._writer = LineWriter(stream, chunk=limits.write_size, stall_s=limits.stall_s)
        self._end = DisconnectReason.LEFT

    async def run(self) -> DisconnectReason:
        async with anyio.create_task_group() as connection:
            connection.start_soon(self._write, connection.cancel_scope)
            async with anyio.create_task_group() as workers:
                await workers.start(self._follow)
                self._end = await self._converse(workers)
                workers.cancel_scope.cancel()
            self._writer.close()
        return self._end

    async def _converse(self, group: TaskGroup) -> DisconnectReason:
        eras = ProtocolRouter(build_server(self._source), self._view, group, self._writer.send)
        lines = LineReader(self._limits.line)
        try:
            await self._read(eras, lines)
            await eras.finish()
        except LineTooLong as error:
            fault = ErrorResponse(None, jsonrpc.INVALID_REQUEST, str(error))
            await self._writer.send(jsonrpc.encode(fault))
            return DisconnectReason.LINE_TOO_LONG
        except TimeoutError:
            return DisconnectReason.SILENT
        return DisconnectReason.LEFT

    async def _read(self, eras: ProtocolRouter, lines: LineReader) -> None:
        with anyio.fail_after(self._limits.first_line_s) as patience:
            while True:
                try:
                    lines.feed(await self._stream.receive(_READ_SIZE))
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    break
                await self._turn()
                line = lines.pop()
                while line is not None:
                    if patience.deadline < math.inf:
                        patience.deadline = math.inf
                        self._heard()
                    await eras.receive(line)
                    if (line := lines.pop()) is not None:
                        await self._turn()
            patience.deadline = math.inf
            await eras.receive(lines.rest())  # a last line may lack its newline

    async def _write(self, connection: anyio.CancelScope) -> None:
        try:
            await self._writer.run()
        except PeerStalled:
            self._end = DisconnectReason.SLOW_READER
            connection.cancel()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            connection.cancel()

    async def _follow(self, *, task_status: TaskStatus[None]) -> None:
        pace = NotificationThrottle(self._limits.notice_interval_s)
        told = await self._source.wait_past(-1)
        self._view.begun = told.focus
        task_status.started()  # before the first answer: what changes after it must be told
        while True:
            latest = await self._source.wait_past(told.revision)
            news = self._view.news(told, latest)
            while wait := pace.wait(anyio.current_time(), revokes=news.revokes):
                with anyio.move_on_after(wait):
                    newer = await self._source.wait_past(latest.revision)
                    news, latest = news | self._view.news(latest, newer), newer
            told = latest
            if news.resources:
                await self._announce(news)
                pace.sent(anyio.current_time())

    async def _announce(self, news: PublishedDiff) -> None:
        await self._view.audience.attend()
        # In one piece: each write wakes the client.
        lines = b"".join(self._view.audience.announce(news))
        if lines:
            await self._writer.send(lines)
