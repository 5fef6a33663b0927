"""Serve the control socket: read request lines, ask the guard, dispatch, and answer.

One connection of the command line: lines in, requests to the desk, answers out.

Progress notices of a scan go out on the same connection before its answer. They may be dropped
when the reader is slow; an answer never is.

The control socket's connections: each asks the gate before an order of its is followed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import anyio
from anyio import to_thread
from anyio.abc import ByteStream, SocketAttribute, SocketStream

from rootsd.control.dispatch import Dispatcher
from rootsd.control.guard import AgentActivity, ChallengeNeeded, CommandGuard, GuardedConnection
from rootsd.control.routes import GuardedCommand, RequestContext
from rootsd.core.changes import AuditRecord
from rootsd.core.errors import AmbiguousReference, CallerRefused, RootsdError
from rootsd.core.guard import Guard, Process, ProcessChain
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, ActorKind
from rootsd.helper.client import Helper, NoAnswer
from rootsd.helper.questions import (
    ProcessReport,
    ask_bare_processes,
    ask_processes,
    ask_to_write_terminal,
)
from rootsd.system.ipc.acceptor import MarkActive
from rootsd.system.ipc.fair_scheduler import FairScheduler
from rootsd.system.ipc.unix_socket import Peer
from rootsd.system.process_exit import ProcessHandle
from rootsd.system.terminals import TerminalWriteFailed
from rootsd.wire import jsonrpc
from rootsd.wire.daemon import ScanProgressItem, ScanRequest
from rootsd.wire.guard import CHALLENGE_ANSWER
from rootsd.wire.jsonrpc import MAX_REQUEST_BYTES, LineReader, LineTooLong
from rootsd.wire.registry import decode_request, unknown_params
from rootsd.wire.request import BadRequest, ControlRequest

log = logging.getLogger(__name__)

ERROR_CODE = -32000
"""The JSON-RPC code of every expected error; `data.code` holds its word (DESIGN section 6)."""

_CONNECTION_LOST = (anyio.BrokenResourceError, anyio.ClosedResourceError)
# A person's shell hands over long lists of paths; the socket is theirs alone.
_LINE_LIMIT = 64 * MAX_REQUEST_BYTES


class RequestDispatcher(Protocol):
    """Whoever answers requests: the desk."""

    async def answer(self, request: ControlRequest, call: RequestContext) -> dict[str, Any]:
        """The answer to `request`. Raises RootsdError."""

    def answered(self, request: ControlRequest) -> None:
        """Told once the answer to `request` is out."""

    def order_in(self, request: ControlRequest) -> GuardedCommand | None:
        """The order that `request` is; None for what only looks, or changes no decision."""


Admit = Callable[[ControlRequest, str | None], Awaitable[Actor]]
"""Who asks, if that may be answered; the text is what was typed at a challenge. Raises
CallerRefused."""


WaitForTurn = Callable[[], Awaitable[None]]
"""Returns when this connection is due to be answered a line."""


async def serve_control(
    stream: ByteStream, desk: RequestDispatcher, admit: Admit, turn: WaitForTurn
) -> None:
    """Answer requests on `stream`, one after the other, until the peer is gone; then close it."""
    async with stream:
        try:
            try:
                await _serve(stream, desk, admit, turn)
            except LineTooLong as error:
                fault = jsonrpc.ErrorResponse(None, jsonrpc.INVALID_REQUEST, str(error))
                await stream.send(jsonrpc.encode(fault))
        except _CONNECTION_LOST:
            log.debug("a control connection broke off")


async def _serve(
    stream: ByteStream, desk: RequestDispatcher, admit: Admit, turn: WaitForTurn
) -> None:
    reader = LineReader(_LINE_LIMIT)
    async for data in stream:
        await turn()
        reader.feed(data)
        while (line := reader.pop()) is not None:
            await _handle_line(stream, desk, admit, line)
            await turn()


async def _handle_line(
    stream: ByteStream, desk: RequestDispatcher, admit: Admit, line: bytes
) -> None:
    message = jsonrpc.parse(line)
    if isinstance(message, jsonrpc.Malformed):
        await stream.send(jsonrpc.encode(message.error))
    if not isinstance(message, jsonrpc.Request):
        return
    try:
        params = message.params if isinstance(message.params, dict) else {}
        request = decode_request(message.method, params)
        later = unknown_params(message.method, params)
        if later and desk.order_in(request) is not None:
            raise BadRequest(_unknown_fields_error(message.method, later), "rootsd up")
        actor = await admit(request, _typed_word(params))
        result = await _dispatch(stream, desk, actor, request)
    except RootsdError as error:
        await stream.send(jsonrpc.encode(_error_response(message.id, error)))
        return
    await stream.send(jsonrpc.encode(jsonrpc.Response(message.id, result)))
    desk.answered(request)


def _unknown_fields_error(method: str, names: list[str]) -> str:
    shown = ", ".join(safe_label(name) for name in names)
    return f"this daemon is older, and does not know {shown} of the request {method}"


def _typed_word(params: dict[str, Any]) -> str | None:
    typed = params.get(CHALLENGE_ANSWER)
    if typed is not None and not isinstance(typed, str):
        raise BadRequest(f"the value of {CHALLENGE_ANSWER} is not of its form: not a string")
    return typed


async def _dispatch(
    stream: ByteStream, desk: RequestDispatcher, actor: Actor, request: ControlRequest
) -> dict[str, Any]:
    if not isinstance(request, ScanRequest):
        # Most ask for little: a task beside it, to tell of progress, would cost as much again.
        return await desk.answer(request, RequestContext(actor))
    notices = _ProgressSender(stream)
    refusal: RootsdError | None = None
    result: dict[str, Any] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(notices.send_each)
        try:
            result = await desk.answer(request, RequestContext(actor, notices.put))
        except RootsdError as error:
            refusal = error  # a task group would wrap what it lets through
        group.cancel_scope.cancel()
    if refusal is not None:
        raise refusal
    return result


class _ProgressSender:
    """The newest progress, sent as fast as the reader takes it; older progress is dropped."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._newest: ScanProgressItem | None = None
        self._arrived = anyio.Event()

    def put(self, progress: ScanProgressItem) -> None:
        self._newest = progress
        self._arrived.set()

    async def send_each(self) -> None:
        """Returns where the reader is gone: what it asked for goes on, ^C ends the asking."""
        with suppress(*_CONNECTION_LOST):
            while True:
                await self._arrived.wait()
                self._arrived = anyio.Event()
                notice = jsonrpc.Notification("progress", dict(self._newest or {}))
                # A notice that is cut in the middle would garble the answer behind it.
                with anyio.CancelScope(shield=True):
                    await self._stream.send(jsonrpc.encode(notice))


def _error_response(id_: jsonrpc.Id, error: RootsdError) -> jsonrpc.ErrorResponse:
    data: dict[str, Any] = {"code": error.code.value, "remedy": error.remedy}
    if isinstance(error, AmbiguousReference):
        data["choices"] = list(error.choices)
    if isinstance(error, ChallengeNeeded):
        data["challenge"] = error.challenge
    return jsonrpc.ErrorResponse(id_, ERROR_CODE, error.message, data)


_WITHOUT_HELPER = (
    "rootsd recognizes a finished copy by quiet times alone, and refuses every command that "
    "decides something, since it cannot see who asks; if that lasts, try: rootsd down && rootsd up"
)
_QUERY_ACTOR = Actor(ActorKind.PERSON)


class ControlServer:
    """Serves control connections; `desk` answers them."""

    def __init__(self, gate: CommandGuard, desk: Dispatcher) -> None:
        self._gate = gate
        self._desk = desk
        self._turns = FairScheduler()

    async def serve(self, stream: SocketStream, peer: Peer, heard: MarkActive) -> None:
        """Answer what comes on `stream`, which is closed at the end."""
        connection = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django here
        with closing(ProcessHandle(connection, peer.pid)) as visitor:
            visit = GuardedConnection(self._gate, visitor)

            async def admit(request: ControlRequest, typed: str | None) -> Actor:
                heard()
                return await self._admit(visitor, visit, request, typed)

            turn = partial(self._turns.take, peer.pid)
            await serve_control(stream, self._desk, admit, turn)

    async def _admit(
        self,
        visitor: ProcessHandle,
        visit: GuardedConnection,
        request: ControlRequest,
        typed: str | None,
    ) -> Actor:
        if visitor.pid == 0:
            raise CallerRefused(
                "this program runs where rootsd cannot see it, in another pid namespace",
                "run it outside of that container",
            )
        order = self._desk.order_in(request)
        if order is not None:
            return await visit.admit(order, typed)
        if command := self._desk.command_in(request):
            await self._gate.note_command(command, visitor)
        return await visit.actor() if self._desk.asks_who(request) else _QUERY_ACTOR


def make_guard(
    guard: Guard | None,
    helper: Helper,
    note: Callable[[AuditRecord], Awaitable[None]],
    connected: Callable[[], Iterable[int]],
    now: Callable[[], datetime],
    records: AgentActivity,
) -> CommandGuard:
    """Return the gate of a daemon; `guard` is what was set, if anything was."""
    return CommandGuard(
        guard or Guard.AGENTS,
        view=HelperProcessView(helper),
        note=note,
        connected=connected,
        clock=time.monotonic,
        now=now,
        records=records,
    )


class HelperProcessView:
    """How the gate sees processes and reaches their terminals: through the helper.

    The confined daemon may neither read what other processes are nor write on a terminal.
    """

    def __init__(self, helper: Helper) -> None:
        self._helper = helper

    async def look(
        self, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
    ) -> ProcessReport | None:
        """Look at processes.

        Where the helper has no answer, it is asked once more for the callers alone, by a look
        that no other process can delay. By then another helper may have taken its place.
        """
        return await to_thread.run_sync(self._look, callers, others, markers)

    async def ancestors(self, pids: Sequence[int]) -> Mapping[int, ProcessChain] | None:
        """Look at processes and those above them, not at their environments or terminals. None
        where nobody can look."""
        seen = await self.look((), pids, ())
        return (
            None if seen is None else {pid: line.processes for pid, line in seen.lineages.items()}
        )

    async def show(self, caller: Process, text: str) -> str:
        """Show text on the terminal of `caller` and return its name. Raises RootsdError."""
        try:
            return await to_thread.run_sync(ask_to_write_terminal, self._helper, caller, text)
        except TerminalWriteFailed as error:
            raise CallerRefused(str(error)) from error

    def _look(
        self, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
    ) -> ProcessReport | None:
        try:
            return ask_processes(self._helper, callers, others, markers)
        except NoAnswer as error:
            log.warning("the look at who asks failed: %s", error)
        if not callers:
            return None
        try:
            return ask_bare_processes(self._helper, callers)
        except NoAnswer as error:
            log.warning("nobody can see who asks: %s", error)
            return None


def helper_problems(helper: Helper) -> list[str]:
    """Return what does not work without the helper, for `status`."""
    trouble = helper.problem()
    return [f"{trouble}: {_WITHOUT_HELPER}"] if trouble else []
