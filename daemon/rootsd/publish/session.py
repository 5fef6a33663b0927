"""One MCP connection from its first byte to its last: read, answer, tell what changed."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

import anyio
from anyio.abc import ByteStream, TaskGroup, TaskStatus

from rootsd.core.allowance import Allowance
from rootsd.core.scope import NO_START, Start
from rootsd.core.session_keys import NOBODY, Membership
from rootsd.publish.difference import Difference
from rootsd.publish.eras import Eras
from rootsd.publish.pace import NOTICE_INTERVAL_S, Pace
from rootsd.publish.server import build_server
from rootsd.publish.source import RootsSource, Witness
from rootsd.publish.view import DEFAULT_PATIENCE, Patience, View
from rootsd.publish.writer import Stalled, Writer
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import Fault
from rootsd.wire.lines import REQUEST_LIMIT, LineReader, LineTooLong

_READ_SIZE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one connection may use; all of it is configuration."""

    line: int = REQUEST_LIMIT
    """Longest request, in bytes. Answers may be longer: thousands of roots take megabytes."""
    first_line_s: float = 30.0
    """Time to the end of the first line."""
    stall_s: float = 5.0
    """A client that does not take one `write_size` of its answer in this time is dropped."""
    write_size: int = 16 * 1024
    notice_interval_s: float = NOTICE_INTERVAL_S
    patience: Patience = DEFAULT_PATIENCE


DEFAULT_LIMITS = Limits()
Turn = Callable[[], Awaitable[None]]
"""Returns when this connection is due to have a line of its handled."""


async def at_once() -> None:
    """For whoever is alone."""


class End(StrEnum):
    """How a connection came to its end."""

    LEFT = "left"
    SILENT = "said nothing"
    LINE_TOO_LONG = "sent too long a line"
    SLOW_READER = "did not read its answers"


async def serve_session(  # noqa: PLR0913 - one connection has many sides
    stream: ByteStream,
    source: RootsSource,
    *,
    witness: Witness,
    heard: Callable[[], None] = lambda: None,
    requests: Allowance | None = None,
    member: Membership = NOBODY,
    start: Start = NO_START,
    turn: Turn = at_once,
    limits: Limits = DEFAULT_LIMITS,
) -> End:
    """Serve MCP on `stream` until the peer leaves or oversteps a limit; closes the stream.

    `witness` is told what is to be known about the session. `heard` is called when it has sent a
    whole line. `requests` is how often its process may ask for a folder, and `member` tells which
    sessions it belongs to. `start` tells its workspace, whose roots are marked. Each line waits
    for its `turn`. Nothing that a peer sends raises.
    Cancel the call to end the connection from this side.
    """
    view = View(source, witness, limits.patience, member=member, start=start)
    if requests is not None:
        view.requests = requests
    session = _Session(stream, view, heard, turn, limits)
    try:
        return await session.run()
    finally:
        await anyio.aclose_forcefully(stream)


class _Session:
    def __init__(
        self,
        stream: ByteStream,
        view: View,
        heard: Callable[[], None],
        turn: Turn,
        limits: Limits,
    ) -> None:
        self._heard = heard
        self._turn = turn
        self._stream = stream
        self._source = view.source
        self._limits = limits
        self._view = view
        self._writer = Writer(stream, chunk=limits.write_size, stall_s=limits.stall_s)
        self._end = End.LEFT

    async def run(self) -> End:
        async with anyio.create_task_group() as connection:
            connection.start_soon(self._write, connection.cancel_scope)
            async with anyio.create_task_group() as workers:
                await workers.start(self._follow)
                self._end = await self._converse(workers)
                workers.cancel_scope.cancel()
            self._writer.close()
        return self._end

    async def _converse(self, group: TaskGroup) -> End:
        eras = Eras(build_server(self._source), self._view, group, self._writer.send)
        lines = LineReader(self._limits.line)
        try:
            await self._read(eras, lines)
            await eras.finish()
        except LineTooLong as error:
            fault = Fault(None, jsonrpc.INVALID_REQUEST, str(error))
            await self._writer.send(jsonrpc.encode(fault))
            return End.LINE_TOO_LONG
        except TimeoutError:
            return End.SILENT
        return End.LEFT

    async def _read(self, eras: Eras, lines: LineReader) -> None:
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
        except Stalled:
            self._end = End.SLOW_READER
            connection.cancel()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            connection.cancel()

    async def _follow(self, *, task_status: TaskStatus[None]) -> None:
        pace = Pace(self._limits.notice_interval_s)
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

    async def _announce(self, news: Difference) -> None:
        await self._view.audience.attend()
        # In one piece: each write wakes the client.
        lines = b"".join(self._view.audience.announce(news))
        if lines:
            await self._writer.send(lines)
