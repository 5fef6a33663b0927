"""One connection of the command line: lines in, requests to the desk, answers out.

Progress notices of a scan go out on the same connection before its answer. They may be dropped
when the reader is slow; an answer never is.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

import anyio
from anyio.abc import ByteStream

from rootsd.app.control.gate import ChallengeNeeded
from rootsd.app.control.register import Call, Order
from rootsd.core.errors import AmbiguousReference, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor
from rootsd.wire import jsonrpc
from rootsd.wire.control import decode, unheeded
from rootsd.wire.guarding import TYPED
from rootsd.wire.lines import REQUEST_LIMIT, LineReader, LineTooLong
from rootsd.wire.request import BadRequest, Request
from rootsd.wire.scans import Progress, ScanOrder

log = logging.getLogger(__name__)

REFUSED = -32000
"""The JSON-RPC code of every expected error; `data.code` holds its word (DESIGN section 6)."""

_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError)
# A person's shell hands over long lists of paths; the socket is theirs alone.
_LINE_LIMIT = 64 * REQUEST_LIMIT


class Answering(Protocol):
    """Whoever answers requests: the desk."""

    async def answer(self, request: Request, call: Call) -> dict[str, Any]:
        """The answer to `request`. Raises RootsdError."""

    def answered(self, request: Request) -> None:
        """Told once the answer to `request` is out."""

    def order_in(self, request: Request) -> Order | None:
        """The order that `request` is; None for what only looks, or changes no decision."""


Admit = Callable[[Request, str | None], Awaitable[Actor]]
"""Who asks, if that may be answered; the text is what was typed at a challenge. Raises
CallerRefused."""


Turn = Callable[[], Awaitable[None]]
"""Returns when this connection is due to be answered a line."""


async def serve_control(stream: ByteStream, desk: Answering, admit: Admit, turn: Turn) -> None:
    """Answer requests on `stream`, one after the other, until the peer is gone; then close it."""
    async with stream:
        try:
            try:
                await _serve(stream, desk, admit, turn)
            except LineTooLong as error:
                fault = jsonrpc.Fault(None, jsonrpc.INVALID_REQUEST, str(error))
                await stream.send(jsonrpc.encode(fault))
        except _GONE:
            log.debug("a control connection broke off")


async def _serve(stream: ByteStream, desk: Answering, admit: Admit, turn: Turn) -> None:
    reader = LineReader(_LINE_LIMIT)
    async for data in stream:
        await turn()
        reader.feed(data)
        while (line := reader.pop()) is not None:
            await _answer(stream, desk, admit, line)
            await turn()


async def _answer(stream: ByteStream, desk: Answering, admit: Admit, line: bytes) -> None:
    message = jsonrpc.parse(line)
    if isinstance(message, jsonrpc.Malformed):
        await stream.send(jsonrpc.encode(message.fault))
    if not isinstance(message, jsonrpc.Request):
        return
    try:
        params = message.params if isinstance(message.params, dict) else {}
        request = decode(message.method, params)
        later = unheeded(message.method, params)
        if later and desk.order_in(request) is not None:
            raise BadRequest(_not_heeded(message.method, later), "rootsd up")
        actor = await admit(request, _typed(params))
        result = await _carried_out(stream, desk, actor, request)
    except RootsdError as error:
        await stream.send(jsonrpc.encode(_fault(message.id, error)))
        return
    await stream.send(jsonrpc.encode(jsonrpc.Reply(message.id, result)))
    desk.answered(request)


def _not_heeded(method: str, names: list[str]) -> str:
    shown = ", ".join(safe_label(name) for name in names)
    return f"this daemon is older, and does not know {shown} of the request {method}"


def _typed(params: dict[str, Any]) -> str | None:
    typed = params.get(TYPED)
    if typed is not None and not isinstance(typed, str):
        raise BadRequest(f"the value of {TYPED} is not of its form: not a string")
    return typed


async def _carried_out(
    stream: ByteStream, desk: Answering, actor: Actor, request: Request
) -> dict[str, Any]:
    if not isinstance(request, ScanOrder):
        # Most ask for little: a task beside it, to tell of progress, would cost as much again.
        return await desk.answer(request, Call(actor))
    notices = _Notices(stream)
    refusal: RootsdError | None = None
    result: dict[str, Any] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(notices.send_each)
        try:
            result = await desk.answer(request, Call(actor, notices.put))
        except RootsdError as error:
            refusal = error  # a task group would wrap what it lets through
        group.cancel_scope.cancel()
    if refusal is not None:
        raise refusal
    return result


class _Notices:
    """The newest progress, sent as fast as the reader takes it; older progress is dropped."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._newest: Progress | None = None
        self._arrived = anyio.Event()

    def put(self, progress: Progress) -> None:
        self._newest = progress
        self._arrived.set()

    async def send_each(self) -> None:
        """Returns where the reader is gone: what it asked for goes on, ^C ends the asking."""
        with suppress(*_GONE):
            while True:
                await self._arrived.wait()
                self._arrived = anyio.Event()
                notice = jsonrpc.Notice("progress", dict(self._newest or {}))
                # A notice that is cut in the middle would garble the answer behind it.
                with anyio.CancelScope(shield=True):
                    await self._stream.send(jsonrpc.encode(notice))


def _fault(id_: jsonrpc.Id, error: RootsdError) -> jsonrpc.Fault:
    data: dict[str, Any] = {"code": error.code.value, "remedy": error.remedy}
    if isinstance(error, AmbiguousReference):
        data["choices"] = list(error.choices)
    if isinstance(error, ChallengeNeeded):
        data["challenge"] = error.challenge
    return jsonrpc.Fault(id_, REFUSED, error.message, data)
