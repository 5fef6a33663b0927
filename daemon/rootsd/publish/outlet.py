"""Where the SDK's answers leave: counts what is still owed, and puts errors into our words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, ErrorData, JSONRPCError, JSONRPCResponse

from rootsd.core.labels import safe_json, safe_label
from rootsd.wire.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, Id

# A peer that asks and never reads must not fill the memory with answers that wait, nor keep the
# daemon busy with making them. Streams and calls that wait for a decision are open all the while.
_MAX_OPEN = 32

# What the SDK says of a handler that raised, in the handshake era: `code=0`, and the exception.
_SDK_FAULT = 0


class Outlet:
    """The SDK's WriteStream of a connection, shared by the loops of both eras."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._open: set[Id] = set()
        self._owed = 0  # open, or its answer is being written
        self._leaving = 0  # what is being written, or waits for that: nothing where the peer reads
        self._turn = anyio.Lock(fast_acquire=True)
        self._moved = anyio.Event()

    def is_open(self, id_: Id) -> bool:
        """Whether a request with this id waits for its answer."""
        return id_ in self._open

    async def open(self, id_: Id) -> None:
        """Note a request that the SDK will answer; waits while too many are open, and while the
        peer does not read what it was answered before."""
        while self._leaving or self._owed >= _MAX_OPEN:
            await self._moved.wait()
        self._open.add(id_)
        self._owed += 1

    def cancel(self, id_: Id) -> None:
        """The SDK leaves a cancelled request without an answer. It takes 7 and "7" for one id."""
        for spelling in [each for each in self._open if str(each) == str(id_)]:
            self._open.discard(spelling)
            self._settle(1)

    async def all_answered(self) -> None:
        """Wait until nothing is owed."""
        while self._owed:
            await self._moved.wait()

    async def send(self, item: SessionMessage) -> None:
        """Send what the SDK says. The id is free before the answer leaves: the peer may use it
        again as soon as it has read it."""
        message = item.message
        if isinstance(message, JSONRPCError) and message.error.code == CONNECTION_CLOSED:
            # What the SDK says of open requests when it is ended from this side. They are to stay
            # without an answer: whoever carries the connection asks the next daemon.
            return
        was_open = False
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in self._open:
            self._open.discard(message.id)
            was_open = True
        if isinstance(message, JSONRPCError):
            message = message.model_copy(update={"error": _in_our_words(message.error)})
        self._leaving += 1
        try:
            async with self._turn:  # as text, answers are large: one of them at a time
                text = safe_json(message.model_dump_json(by_alias=True, exclude_unset=True))
                await self._send(text.encode() + b"\n")
        finally:
            self._leaving -= 1
            self._settle(int(was_open))

    async def aclose(self) -> None:
        """One loop ends; the other goes on, and the connection is not the SDK's to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _settle(self, number: int) -> None:
        self._owed -= number
        self._moved.set()
        self._moved = anyio.Event()


def _in_our_words(error: ErrorData) -> ErrorData:
    match error:
        case ErrorData(code=code) if code == _SDK_FAULT:
            reason = "a fault in rootsd, which its log describes"
            return ErrorData(
                code=INTERNAL_ERROR, message="internal error", data={"reason": reason}
            )
        case ErrorData(code=code, data=str() as method) if code == METHOD_NOT_FOUND:
            reason = f"{safe_label(method)} is not served in the protocol revision of this request"
            return ErrorData(code=code, message=error.message, data={"reason": reason})
        case _:
            return error
