"""Serve one MCP connection: read requests, write lines, and notify of changes.

A connection has two tasks beside its reader. One writes what the socket did not take at once, and
one waits for changes of the published set. LineWriter sends all lines whole, in order, and without
a buffer. A sender waits until the previous line has been sent, so the memory of a connection is
bounded, and canceling a sender cannot cut a line short.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol, runtime_checkable

import anyio
from anyio.abc import ByteStream, TaskGroup, TaskStatus
from msgspec import Struct

from rootsd.core.scope import NO_SESSION_START, SessionStart
from rootsd.core.session_keys import NO_MEMBERSHIP, SessionMembership
from rootsd.core.session_observer import SessionObserver
from rootsd.core.throttle import TokenBucket
from rootsd.mcp.diff import PublishedDiff
from rootsd.mcp.protocol import ProtocolRouter
from rootsd.mcp.responses import AwaitTurn
from rootsd.mcp.server import build_server
from rootsd.mcp.source import RootsSource
from rootsd.mcp.subscriptions import CHANGE_NOTIFICATION_INTERVAL_S, NotificationThrottle
from rootsd.mcp.views import DEFAULT_WAIT_LIMITS, ConnectionView, WaitLimits
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import MAX_REQUEST_BYTES, ErrorResponse, LineReader, LineTooLong


@runtime_checkable
class NonBlockingSender(Protocol):
    """A stream with a write that never waits, which is enough for most lines."""

    def send_nowait(self, data: bytes) -> int:
        """Write what fits at once, and return its length; 0 also if the stream is broken."""
        ...


class PeerStalled(Exception):
    """The peer read no bytes for too long."""


class LineWriter:
    """Writes lines to `stream`; `run` is its task.

    The peer may take `stall_s` seconds for each `chunk` bytes.
    """

    def __init__(self, stream: ByteStream, *, chunk: int, stall_s: float) -> None:
        self._stream = stream
        self._non_blocking = stream if isinstance(stream, NonBlockingSender) else None
        self._chunk = chunk
        self._stall_s = stall_s
        self._rest = b""
        self._closed = False
        self._ended = False
        self._wanted = anyio.Event()
        self._drained = anyio.Event()

    async def send(self, line: bytes) -> None:
        """Write a line, and return when all of it is sent.

        Raises BrokenResourceError after the end of `run`.
        """
        while self._rest:
            await self._drained.wait()
        if self._ended:
            raise anyio.BrokenResourceError
        # No await until `_rest` is set. Otherwise another sender could write its line here.
        self._rest = line[self._non_blocking.send_nowait(line) :] if self._non_blocking else line
        if self._rest:
            self._wanted.set()
            await self._drained.wait()

    def close(self) -> None:
        """Let `run` end when it has written the lines that it already has."""
        self._closed = True
        self._wanted.set()

    async def run(self) -> None:
        """Write what could not be written at once.

        Raises PeerStalled if the peer does not read, and BrokenResourceError or
        ClosedResourceError if it has disconnected.
        """
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


class PeerLimits(Struct, frozen=True):
    """The resources that one connection may use."""

    max_line: int = MAX_REQUEST_BYTES
    """Maximum request in bytes. Answers may be longer: thousands of roots take megabytes."""
    first_line_s: float = 30.0
    """Time until the end of the first line, in seconds."""
    stall_s: float = 5.0
    """Time to read `write_size` bytes of an answer; slower clients are disconnected."""
    write_size: int = 16 * 1024
    notification_interval_s: float = CHANGE_NOTIFICATION_INTERVAL_S
    wait_limits: WaitLimits = DEFAULT_WAIT_LIMITS


DEFAULT_PEER_LIMITS = PeerLimits()


class DisconnectReason(StrEnum):
    """The reason why a connection ended. `rootsd sessions` shows the values."""

    LEFT = "left"
    SILENT = "said nothing"
    LINE_TOO_LONG = "sent too long a line"
    SLOW_READER = "did not read its answers"


async def serve_session(  # noqa: PLR0913 - a connection has many collaborators
    stream: ByteStream,
    source: RootsSource,
    *,
    observer: SessionObserver,
    mark_active: Callable[[], None],
    await_turn: AwaitTurn,
    request_rate: TokenBucket | None = None,
    membership: SessionMembership = NO_MEMBERSHIP,
    start: SessionStart = NO_SESSION_START,
    limits: PeerLimits = DEFAULT_PEER_LIMITS,
) -> DisconnectReason:
    """Serve MCP on `stream` until the peer disconnects or exceeds a limit. Then close the stream.

    `observer` follows the session. `mark_active` is called after the first whole line.
    `request_rate` limits requests for folders by the peer's process, and `membership` names the
    sessions that the connection belongs to. Roots in the workspace of `start` are marked. Each
    line, and each answer, waits for `await_turn`. No input of the peer makes this function raise.
    To end the connection from this side, cancel the call.
    """
    view = ConnectionView(source, observer, limits.wait_limits, membership=membership, start=start)
    if request_rate is not None:
        view.request_rate = request_rate
    connection = _Connection(stream, view, mark_active, await_turn, limits)
    try:
        return await connection.run()
    finally:
        await anyio.aclose_forcefully(stream)


class _Connection:
    def __init__(
        self,
        stream: ByteStream,
        view: ConnectionView,
        mark_active: Callable[[], None],
        await_turn: AwaitTurn,
        limits: PeerLimits,
    ) -> None:
        self._mark_active = mark_active
        self._await_turn = await_turn
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
                await workers.start(self._follow_changes)
                self._end = await self._handle_input(workers)
                workers.cancel_scope.cancel()
            self._writer.close()
        return self._end

    async def _handle_input(self, group: TaskGroup) -> DisconnectReason:
        server = build_server()
        router = ProtocolRouter(server, self._view, group, self._writer.send, self._await_turn)
        lines = LineReader(self._limits.max_line)
        try:
            await self._read(router, lines)
            await router.finish()
        except LineTooLong as error:
            response = ErrorResponse(None, jsonrpc.INVALID_REQUEST, str(error))
            await self._writer.send(jsonrpc.encode(response))
            return DisconnectReason.LINE_TOO_LONG
        except TimeoutError:
            return DisconnectReason.SILENT
        return DisconnectReason.LEFT

    async def _read(self, router: ProtocolRouter, lines: LineReader) -> None:
        with anyio.fail_after(self._limits.first_line_s) as timeout:
            while True:
                try:
                    lines.feed(await self._stream.receive(_READ_SIZE))
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    break
                await self._await_turn()
                line = lines.pop()
                while line is not None:
                    if timeout.deadline < math.inf:
                        timeout.deadline = math.inf
                        self._mark_active()
                    await router.receive(line)
                    if (line := lines.pop()) is not None:
                        await self._await_turn()
            timeout.deadline = math.inf
            await router.receive(lines.rest())  # the last line may lack its newline

    async def _write(self, connection: anyio.CancelScope) -> None:
        try:
            await self._writer.run()
        except PeerStalled:
            self._end = DisconnectReason.SLOW_READER
            connection.cancel()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            connection.cancel()

    async def _follow_changes(self, *, task_status: TaskStatus[None]) -> None:
        throttle = NotificationThrottle(self._limits.notification_interval_s)
        notified = await self._source.wait_past(-1)
        self._view.begin(notified)
        # This runs before the first answer, so no change after that answer is missed.
        task_status.started()
        while True:
            latest = await self._source.wait_past(notified.revision)
            diff = self._view.diff(notified, latest)
            while wait := throttle.wait(anyio.current_time(), revokes=diff.revokes):
                with anyio.move_on_after(wait):
                    newer = await self._source.wait_past(latest.revision)
                    diff, latest = diff | self._view.diff(latest, newer), newer
            notified = latest
            if diff.resources:
                await self._notify(diff)
                throttle.sent(anyio.current_time())

    async def _notify(self, diff: PublishedDiff) -> None:
        await self._view.subscribers.wait_until_acknowledged()
        # One write for all lines, because each write wakes the client.
        lines = b"".join(self._view.subscribers.notifications_for(diff))
        if lines:
            await self._writer.send(lines)
