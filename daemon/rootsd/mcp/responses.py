"""Send responses one line at a time, collect those of a batch, and bound the open requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse
from msgspec import Struct

from rootsd.core.labels import safe_json
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import ErrorResponse, Id, Response

# A peer that sends requests and never reads must not fill the memory with answers, nor keep the
# daemon busy. Streams, and calls that wait for a decision, count as open.
_MAX_OPEN_REQUESTS = 32
AwaitTurn = Callable[[], Awaitable[None]]
"""Waits until it is this connection's turn to have a line handled, or an answer encoded."""


MAX_BATCH_MESSAGES = 64
"""The limit of a batch, because its answers stay in memory until the last one is complete."""
_MAX_BATCH_BYTES = 8 << 20
_TOO_LARGE = "the answers to this batch are too large; send the requests one by one"


class BatchResponse:
    """The answers to one batch, which are sent as one line when the last answer is complete.

    JSON-RPC 2.0, section 6: an array of the answers in any order, and no line at all for a batch
    of notifications.
    """

    def __init__(self) -> None:
        self._answers: list[bytes] = []
        self._size = 0
        self._pending = 1  # the batch itself, until all of its messages are read

    def expect(self) -> None:
        """Expect one more answer."""
        self._pending += 1

    def add(self, answer: bytes, id_: Id | None) -> None:
        """Add an answer, which is the line of a JSON-RPC message."""
        if self._size + len(answer) > _MAX_BATCH_BYTES:
            answer = jsonrpc.encode(ErrorResponse(id_, jsonrpc.INTERNAL_ERROR, _TOO_LARGE))
        self._size += len(answer)
        self._answers.append(answer.rstrip(b"\n"))

    def settle(self) -> bytes:
        """Expect one answer less. Return the line of the batch if that was the last one."""
        self._pending -= 1
        if self._pending or not self._answers:
            return b""
        return b"[" + b",".join(self._answers) + b"]\n"


class _OpenRequest(Struct, frozen=True):
    """A request without an answer so far, and its batch if it came in one."""

    scope: anyio.CancelScope
    batch: BatchResponse | None


class ResponseSender:
    """The sender of all answers and notifications of a connection, which limits open requests."""

    def __init__(
        self,
        send: Callable[[bytes], Awaitable[None]],
        await_turn: AwaitTurn,
    ) -> None:
        self._send = send
        self._await_turn = await_turn
        self._open: dict[Id, _OpenRequest] = {}
        self._unfinished = 0  # requests that are open or whose answer is being written
        self._sending = 0  # messages being written or waiting to be; 0 if the peer keeps reading
        self._write_lock = anyio.Lock(fast_acquire=True)
        self._progressed = anyio.Event()

    def is_open(self, id_: Id) -> bool:
        """Return whether a request with this id has no answer yet."""
        return id_ in self._open

    async def open(self, id_: Id, batch: BatchResponse | None = None) -> anyio.CancelScope:
        """Register a request, and return the cancel scope for the work on it.

        Waits while too many requests are open, and while the peer does not read earlier answers.
        """
        while self._sending or self._unfinished >= _MAX_OPEN_REQUESTS:
            await self._progressed.wait()
        scope = anyio.CancelScope()
        self._open[id_] = _OpenRequest(scope, batch)
        if batch is not None:
            batch.expect()
        self._unfinished += 1
        return scope

    async def cancel(self, id_: Id) -> None:
        """Cancel the work on a request, which gets no answer.

        7 and "7" are the same id here, as for the SDK's clients.
        """
        for same in [each for each in self._open if str(each) == str(id_)]:
            opened = self._open.pop(same)
            opened.scope.cancel()
            if opened.batch is not None:
                await self._write(opened.batch.settle())
            self._settle(1)

    async def all_answered(self) -> None:
        """Wait until all requests are answered."""
        while self._unfinished:
            await self._progressed.wait()

    async def answer(self, message: Response | ErrorResponse, batch: BatchResponse | None) -> None:
        """Send the answer to a request that was never opened. Raises what `send` raises."""
        line = jsonrpc.encode(message)
        if batch is None:
            await self._send(line)
        else:
            batch.add(line, message.id)

    async def end_batch(self, batch: BatchResponse) -> None:
        """Note that all messages of a batch are read. Raises what `send` raises."""
        if line := batch.settle():
            await self._send(line)

    async def send(self, message: JSONRPCResponse | JSONRPCError | JSONRPCNotification) -> None:
        """Send an answer or a notification, unless the peer has disconnected.

        The id is released before the answer is written, because the peer may use it again as soon
        as it has read the answer.
        """
        opened = None
        if not isinstance(message, JSONRPCNotification) and message.id is not None:
            opened = self._open.pop(message.id, None)
        batch = None if opened is None else opened.batch
        self._sending += 1
        try:
            async with self._write_lock:  # answers are large as text, so encode one at a time
                await self._await_turn()  # a list of a thousand roots takes milliseconds
                text = safe_json(message.model_dump_json(by_alias=True, exclude_unset=True))
                line = text.encode() + b"\n"
                if batch is not None and not isinstance(message, JSONRPCNotification):
                    batch.add(line, message.id)
                    line = batch.settle()
                await self._write(line)
        finally:
            self._sending -= 1
            self._settle(int(opened is not None))

    async def _write(self, line: bytes) -> None:
        """Send a line unless it is empty or the peer has disconnected."""
        try:
            if line:
                await self._send(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the connection is about to end

    def _settle(self, number: int) -> None:
        self._unfinished -= number
        self._progressed.set()
        self._progressed = anyio.Event()
