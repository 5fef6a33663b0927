"""Where answers leave, one at a time, and what is still owed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

from rootsd.core.labels import safe_json
from rootsd.wire.jsonrpc import Id

# A peer that asks and never reads must not fill the memory with answers that wait, nor keep the
# daemon busy with making them. Streams and calls that wait for a decision are open all the while.
_MAX_OPEN = 32


class Outlet:
    """The one way out for what the SDK says on a connection; counts what it owes."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._open: dict[Id, anyio.CancelScope] = {}
        self._owed = 0  # open, or its answer is being written
        self._leaving = 0  # what is being written, or waits for that: nothing where the peer reads
        self._turn = anyio.Lock(fast_acquire=True)
        self._moved = anyio.Event()

    def is_open(self, id_: Id) -> bool:
        """Whether a request with this id waits for its answer."""
        return id_ in self._open

    async def open(self, id_: Id) -> anyio.CancelScope:
        """Note a request that will be answered, and give the scope to work on it in; waits while
        too many are open, and while the peer does not read what it was answered before."""
        while self._leaving or self._owed >= _MAX_OPEN:
            await self._moved.wait()
        scope = self._open[id_] = anyio.CancelScope()
        self._owed += 1
        return scope

    def cancel(self, id_: Id) -> None:
        """End the work on a request, which stays without an answer. 7 and "7" are one id here, as
        they are for the SDK's clients."""
        for spelling in [each for each in self._open if str(each) == str(id_)]:
            self._open.pop(spelling).cancel()
            self._settle(1)

    async def all_answered(self) -> None:
        """Wait until nothing is owed."""
        while self._owed:
            await self._moved.wait()

    async def send(self, message: JSONRPCResponse | JSONRPCError | JSONRPCNotification) -> None:
        """Send an answer or a notice; nothing where the peer has left. The id is free before the
        answer leaves: the peer may use it again as soon as it has read it."""
        was_open = False
        if not isinstance(message, JSONRPCNotification) and message.id in self._open:
            del self._open[message.id]
            was_open = True
        self._leaving += 1
        try:
            async with self._turn:  # as text, answers are large: one of them at a time
                text = safe_json(message.model_dump_json(by_alias=True, exclude_unset=True))
                await self._send(text.encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the connection is about to end
        finally:
            self._leaving -= 1
            self._settle(int(was_open))

    def _settle(self, number: int) -> None:
        self._owed -= number
        self._moved.set()
        self._moved = anyio.Event()
