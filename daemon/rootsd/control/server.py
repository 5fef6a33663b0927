"""Serve the control socket: read request lines, ask the guard, dispatch, and answer.

A connection sends one JSON-RPC request per line and gets the responses in that order. The guard
admits or refuses a command before the dispatcher passes it to its handler. While a long request
runs, the server says on the same connection that it still works, or how far a scan has come, so
that a client can tell a busy daemon from a stuck one. Progress may be dropped if the reader is
slow, but a response never is. A request may begin a subscription. The server then sends
notifications on the same connection until it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Any

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream

from rootsd.control.dispatch import Dispatcher
from rootsd.control.guard import CommandGuard
from rootsd.control.guarded_connection import ChallengeNeeded, GuardedConnection
from rootsd.control.routes import (
    ConnectionState,
    ProgressSink,
    RequestContext,
    Subscription,
)
from rootsd.core.errors import RootsdError, Unconfirmed
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, ActorKind
from rootsd.net.acceptor import MarkActive
from rootsd.net.fair_scheduler import FairScheduler
from rootsd.net.unix_socket import Peer
from rootsd.processes.process_exit import ProcessHandle
from rootsd.wire import jsonrpc
from rootsd.wire.guard import CHALLENGE_ANSWER, ErrorDetails, IntroduceRequest
from rootsd.wire.jsonrpc import MAX_REQUEST_BYTES, LineReader, LineTooLong
from rootsd.wire.registry import decode_request, unknown_params
from rootsd.wire.request import (
    WORKING_INTERVAL_S,
    WORKING_METHOD,
    BadRequest,
    ControlRequest,
)
from rootsd.wire.scans import ScanProgressItem

log = logging.getLogger(__name__)

ERROR_CODE = -32000
"""The JSON-RPC code of every expected error. `data.code` has the error's own code."""

_CONNECTION_LOST = (anyio.BrokenResourceError, anyio.ClosedResourceError)
# A shell may pass long lists of paths. Only processes of the same user reach this socket.
_LINE_LIMIT = 64 * MAX_REQUEST_BYTES


Admit = Callable[[ControlRequest, str | None], Awaitable[Actor]]
"""Returns the caller of a request if the guard admits it. Otherwise raises CallerRefused. The text
is the word that a person typed at a challenge."""


WaitForTurn = Callable[[], Awaitable[None]]
"""Returns when it is this connection's turn to have a line answered."""


async def serve_control(
    stream: ByteStream,
    dispatcher: Dispatcher,
    admit: Admit,
    turn: WaitForTurn,
    pid: int = 0,
) -> None:
    """Answer the requests on `stream`, one after the other, until it ends. Then close it.

    `pid` is the peer's process, or 0 if it is unknown.
    """
    connection = _ControlConnection(stream, dispatcher, admit, turn, ConnectionState(pid))
    async with stream:
        try:
            await connection.serve()
        except _CONNECTION_LOST:
            log.debug("a control connection was lost")
        finally:
            connection.close()


class _ControlConnection:
    """One control connection. It has a second task only while it has a subscription."""

    def __init__(
        self,
        stream: ByteStream,
        dispatcher: Dispatcher,
        admit: Admit,
        turn: WaitForTurn,
        state: ConnectionState,
    ) -> None:
        self._stream = stream
        self._dispatcher = dispatcher
        self._admit = admit
        self._turn = turn
        self._state = state
        self._reader = LineReader(_LINE_LIMIT)
        self._sending = anyio.Lock(fast_acquire=True)

    async def serve(self) -> None:
        """Answer requests until the stream ends. Raises the errors of a lost connection."""
        try:
            while self._state.subscription is None and await self._handle_next():
                pass
            if self._state.subscription is not None:
                await self._serve_with(self._state.subscription)
        except LineTooLong as error:
            fault = jsonrpc.ErrorResponse(None, jsonrpc.INVALID_REQUEST, str(error))
            await self._send(fault)

    def close(self) -> None:
        """End the subscription, if there is one."""
        if self._state.subscription is not None:
            self._state.subscription.close()

    async def _serve_with(self, subscription: Subscription) -> None:
        """Answer requests until the stream ends, and send the updates of the subscription."""
        trouble: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._send_updates, subscription, group.cancel_scope)
            try:
                while await self._handle_next():
                    pass
            except (LineTooLong, *_CONNECTION_LOST) as error:
                trouble = error  # raised below, because the task group would wrap it
            group.cancel_scope.cancel()
        if trouble is not None:
            raise trouble

    async def _send_updates(
        self, subscription: Subscription, connection: anyio.CancelScope
    ) -> None:
        async def send(method: str, params: Mapping[str, Any]) -> None:
            # Do not cancel in the middle of a line. It would run into the next one.
            with anyio.CancelScope(shield=True):
                await self._send(jsonrpc.Notification(method, dict(params)))

        try:
            await subscription.send_updates(send)
        except* _CONNECTION_LOST:  # also in a group, because a subscription may have tasks
            pass
        connection.cancel()

    async def _handle_next(self) -> bool:
        """Handle the next line. Return False if the stream has ended."""
        while (line := self._reader.pop()) is None:
            try:
                data = await self._stream.receive()
            except anyio.EndOfStream:
                return False
            await self._turn()
            self._reader.feed(data)
        await self._handle_line(line)
        await self._turn()
        return True

    async def _handle_line(self, line: bytes) -> None:
        message = jsonrpc.parse(line)
        if isinstance(message, jsonrpc.Malformed):
            await self._send(message.error)
        if not isinstance(message, jsonrpc.Request):
            return
        dispatcher = self._dispatcher
        try:
            params = message.params if isinstance(message.params, dict) else {}
            request = decode_request(message.method, params)
            later = unknown_params(message.method, params)
            if later and dispatcher.guarded_command(request) is not None:
                raise BadRequest(_unknown_fields_error(message.method, later), "rootsd up")
            result = await self._carry_out(request, _typed_word(params))
        except RootsdError as error:
            await self._send(_error_response(message.id, error))
            return
        async with self._sending:
            for part in jsonrpc.encode_parts(jsonrpc.Response(message.id, result)):
                await self._stream.send(part)
        dispatcher.finish(request)

    async def _carry_out(self, request: ControlRequest, typed: str | None) -> dict[str, Any]:
        if not request.is_long:
            # Most requests are short. A second task for progress would double their cost.
            return await self._admit_and_answer(request, typed, None)
        progress = _ProgressSender(self._send)
        refusal: RootsdError | None = None
        result: dict[str, Any] = {}
        async with anyio.create_task_group() as group:
            group.start_soon(progress.send_each)
            try:
                result = await self._admit_and_answer(request, typed, progress.put)
            except RootsdError as error:
                refusal = error  # raised below, because the task group would wrap it
            group.cancel_scope.cancel()
        if refusal is not None:
            raise refusal
        return result

    async def _admit_and_answer(
        self, request: ControlRequest, typed: str | None, progress: ProgressSink | None
    ) -> dict[str, Any]:
        actor = await self._admit(request, typed)
        call = RequestContext(actor, progress, self._state)
        return await self._dispatcher.answer(request, call)

    async def _send(self, message: jsonrpc.Message) -> None:
        """Send one line. The lock keeps the lines of two tasks apart."""
        async with self._sending:
            await self._stream.send(jsonrpc.encode(message))


def _unknown_fields_error(method: str, names: list[str]) -> str:
    shown = ", ".join(safe_label(name) for name in names)
    return f"this daemon is older and does not know {shown} of the request {method}"


def _typed_word(params: dict[str, Any]) -> str | None:
    typed = params.get(CHALLENGE_ANSWER)
    if typed is not None and not isinstance(typed, str):
        raise BadRequest(f"params.{CHALLENGE_ANSWER}: expected a string")
    return typed


class _ProgressSender:
    """Sends the newest progress as fast as the reader takes it, and drops older progress.

    If there is none for a while, it sends that the daemon still works.
    """

    def __init__(self, send: Callable[[jsonrpc.Message], Awaitable[None]]) -> None:
        self._send = send
        self._newest: ScanProgressItem | None = None
        self._arrived = anyio.Event()

    def put(self, progress: ScanProgressItem) -> None:
        self._newest = progress
        self._arrived.set()

    async def send_each(self) -> None:
        """Send until canceled or until the reader is gone. The request itself goes on."""
        with suppress(*_CONNECTION_LOST):
            while True:
                notification = jsonrpc.Notification(WORKING_METHOD, {})
                with anyio.move_on_after(WORKING_INTERVAL_S):
                    await self._arrived.wait()
                    self._arrived = anyio.Event()
                    notification = jsonrpc.Notification("progress", dict(self._newest or {}))
                # Do not cancel in the middle of a line. It would run into the response.
                with anyio.CancelScope(shield=True):
                    await self._send(notification)


def _error_response(id_: jsonrpc.Id, error: RootsdError) -> jsonrpc.ErrorResponse:
    data = ErrorDetails(code=error.code.value, remedy=error.remedy or None)
    if error.choices:
        data["typed"] = error.typed
        data["choices"] = list(error.choices)
    if isinstance(error, ChallengeNeeded):
        data["challenge"] = error.challenge
    if isinstance(error, Unconfirmed):
        data["unconfirmed"] = True
    return jsonrpc.ErrorResponse(id_, ERROR_CODE, error.message, data)


_QUERY_ACTOR = Actor(ActorKind.PERSON)


class ControlServer:
    """Serves control connections: `guard` admits commands, and `dispatcher` answers requests."""

    def __init__(self, guard: CommandGuard, dispatcher: Dispatcher) -> None:
        self._guard = guard
        self._dispatcher = dispatcher
        self._turns = FairScheduler()

    async def serve(self, stream: SocketStream, peer: Peer, mark_active: MarkActive) -> None:
        """Answer the requests on `stream`, and close it at the end."""
        connection = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django here
        with closing(ProcessHandle(connection, peer.pid)) as process:
            guarded = GuardedConnection(self._guard, process)
            admit = partial(self._admit, guarded, mark_active)
            turn = partial(self._turns.take, peer.pid)
            await serve_control(stream, self._dispatcher, admit, turn, peer.pid)

    async def _admit(
        self,
        connection: GuardedConnection,
        mark_active: MarkActive,
        request: ControlRequest,
        typed: str | None,
    ) -> Actor:
        """Return the caller of `request`, and look it up only if the request needs that."""
        mark_active()
        command = self._dispatcher.guarded_command(request)
        connection.check_may_ask(command, typed)
        if isinstance(request, IntroduceRequest):
            await connection.introduce()
        if command is not None:
            return await connection.admit(command, typed)
        if recorded := self._dispatcher.recorded_command(request):
            await connection.note_command(recorded)
        return await connection.actor() if self._dispatcher.needs_caller(request) else _QUERY_ACTOR
