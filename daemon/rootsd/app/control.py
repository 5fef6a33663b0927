"""One connection of the command line: lines in, requests to the desk, answers out.

Progress notices of a scan go out on the same connection before its answer. They may be dropped
when the reader is slow; an answer never is.
"""

from __future__ import annotations

import logging
from typing import Any

import anyio
from anyio.abc import ByteStream

from rootsd.app.requests import Desk
from rootsd.core.errors import RootsdError
from rootsd.core.model import Actor
from rootsd.wire import jsonrpc
from rootsd.wire.control import BadRequest, Progress, decode
from rootsd.wire.lines import REQUEST_LIMIT, LineReader, LineTooLong

log = logging.getLogger(__name__)

REFUSED = -32000
"""The JSON-RPC code of every expected error; `data.code` holds its word (DESIGN section 6)."""

# A person's shell hands over long lists of paths; the socket is theirs alone.
_LINE_LIMIT = 64 * REQUEST_LIMIT


async def serve_control(stream: ByteStream, desk: Desk, actor: Actor) -> None:
    """Answer requests on `stream`, one after the other, until the peer is gone."""
    reader = LineReader(_LINE_LIMIT)
    try:
        async for data in stream:
            reader.feed(data)
            while (line := reader.pop()) is not None:
                await _answer(stream, desk, actor, line)
    except LineTooLong as error:
        await stream.send(jsonrpc.encode(jsonrpc.Fault(None, jsonrpc.INVALID_REQUEST, str(error))))
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        log.debug("a control connection broke off")


async def _answer(stream: ByteStream, desk: Desk, actor: Actor, line: bytes) -> None:
    message = jsonrpc.parse(line)
    match message:
        case jsonrpc.Request(id_, method, params):
            reply = await _carry_out(stream, desk, actor, jsonrpc.Request(id_, method, params))
        case jsonrpc.Malformed(fault):
            reply = fault
        case _:
            return
    await stream.send(jsonrpc.encode(reply))


async def _carry_out(
    stream: ByteStream, desk: Desk, actor: Actor, call: jsonrpc.Request
) -> jsonrpc.Reply | jsonrpc.Fault:
    notices = _Notices(stream)
    try:
        request = decode(call.method, call.params if isinstance(call.params, dict) else {})
        result: dict[str, Any] = {}
        async with anyio.create_task_group() as group:
            group.start_soon(notices.send_each)
            try:
                result = await desk.answer(request, actor, notices.put)
            except RootsdError as error:
                return _fault(call.id, error)
            finally:
                group.cancel_scope.cancel()
    except BadRequest as error:
        return _fault(call.id, error)
    return jsonrpc.Reply(call.id, result)


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
        while True:
            await self._arrived.wait()
            self._arrived = anyio.Event()
            notice = jsonrpc.Notice("progress", dict(self._newest or {}))
            # A notice that is cut in the middle would garble the answer behind it.
            with anyio.CancelScope(shield=True):
                await self._stream.send(jsonrpc.encode(notice))


def _fault(id_: jsonrpc.Id, error: RootsdError) -> jsonrpc.Fault:
    data = {"code": error.code.value, "remedy": error.remedy}
    return jsonrpc.Fault(id_, REFUSED, error.message, data)
