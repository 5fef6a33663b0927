"""Send responses one line at a time, collect those of a batch, and bound the open requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

from rootsd.core.labels import safe_json
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import ErrorResponse, Id, Response

# A peer that asks and never reads must not fill the memory with answers that wait, nor keep the
# daemon busy with making them. Streams and calls that wait for a decision are open all the while.
_MAX_OPEN_REQUESTS = 32

MAX_BATCH_MESSAGES = 64
"""The most messages of one batch; its answers wait in memory for each other."""
_MAX_BATCH_BYTES = 8 << 20
_TOO_LARGE = "the answers of this batch are too large together; send the requests one by one"


class BatchResponse:
    """The answers to one batch, which leave as one line once the last one is there.

    JSON-RPC 2.0, section 6: an array of the answers in any order, and nothing at all for a batch
    that holds notices alone.
    """

    def __init__(self) -> None:
        self._answers: list[bytes] = []
        self._size = 0
        self._pending = 1  # the batch itself, until all of its messages were read

    def expect(self) -> None:
        """Wait for one more answer."""
        self._pending += 1

    def add(self, answer: bytes, id_: Id | None) -> None:
        """Take an answer, the line of a JSON-RPC message."""
        if self._size + len(answer) > _MAX_BATCH_BYTES:
            answer = jsonrpc.encode(ErrorResponse(id_, jsonrpc.INTERNAL_ERROR, _TOO_LARGE))
        self._size += len(answer)
        self._answers.append(answer.rstrip(b"\n"))

    def settle(self) -> bytes:
        """Wait for one answer less; returns the line of the whole batch if it was the last."""
        self._pending -= 1
        if self._pending or not self._answers:
            return b""
        return b"[" + b",".join(self._answers) + b"]\n"


@dataclass(frozen=True, slots=True)
class _OpenRequest:
    """A request that was not answered yet, and the batch that it came in."""

    scope: anyio.CancelScope
    batch: BatchResponse | None


class ResponseSender:
    """The only place where answers and notices leave a connection; counts what it owes."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._open: dict[Id, _OpenRequest] = {}
        self._owed = 0  # open, or its answer is being written
        self._leaving = 0  # what is being written, or waits for that: nothing where the peer reads
        self._turn = anyio.Lock(fast_acquire=True)
        self._moved = anyio.Event()

    def is_open(self, id_: Id) -> bool:
        """Return whether a request with this id waits for its answer."""
        return id_ in self._open

    async def open(self, id_: Id, batch: BatchResponse | None = None) -> anyio.CancelScope:
        """Note a request that will be answered, and return the scope to work on it in.

        Waits while too many requests are open, and while the peer does not read earlier answers.
        """
        while self._leaving or self._owed >= _MAX_OPEN_REQUESTS:
            await self._moved.wait()
        scope = anyio.CancelScope()
        self._open[id_] = _OpenRequest(scope, batch)
        if batch is not None:
            batch.expect()
        self._owed += 1
        return scope

    async def cancel(self, id_: Id) -> None:
        """End the work on a request, which stays without an answer.

        7 and "7" are one id here, as they are for the SDK's clients.
        """
        for spelling in [each for each in self._open if str(each) == str(id_)]:
            opened = self._open.pop(spelling)
            opened.scope.cancel()
            if opened.batch is not None:
                await self._write(opened.batch.settle())
            self._settle(1)

    async def all_answered(self) -> None:
        """Wait until nothing is owed."""
        while self._owed:
            await self._moved.wait()

    async def answer(self, message: Response | ErrorResponse, batch: BatchResponse | None) -> None:
        """Send the answer to a request that was never opened. Raises what `send` raised."""
        line = jsonrpc.encode(message)
        if batch is None:
            await self._send(line)
        else:
            batch.add(line, message.id)

    async def end_batch(self, batch: BatchResponse) -> None:
        """Note that all messages of a batch were read. Raises what `send` raised."""
        if line := batch.settle():
            await self._send(line)

    async def send(self, message: JSONRPCResponse | JSONRPCError | JSONRPCNotification) -> None:
        """Send an answer or a notice; nothing if the peer has left.

        The id is free before the answer leaves: the peer may use it again as soon as it has read
        the answer.
        """
        opened = None
        if not isinstance(message, JSONRPCNotification) and message.id is not None:
            opened = self._open.pop(message.id, None)
        batch = None if opened is None else opened.batch
        self._leaving += 1
        try:
            async with self._turn:  # as text, answers are large: one of them at a time
                text = safe_json(message.model_dump_json(by_alias=True, exclude_unset=True))
                line = text.encode() + b"\n"
                if batch is not None and not isinstance(message, JSONRPCNotification):
                    batch.add(line, message.id)
                    line = batch.settle()
                await self._write(line)
        finally:
            self._leaving -= 1
            self._settle(int(opened is not None))

    async def _write(self, line: bytes) -> None:
        """Send a line if there is any, and if the peer has not left."""
        try:
            if line:
                await self._send(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the connection is about to end

    def _settle(self, number: int) -> None:
        self._owed -= number
        self._moved.set()
        self._moved = anyio.Event()
