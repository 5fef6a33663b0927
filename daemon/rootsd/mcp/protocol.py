"""Answer `rootsd/hello` and `roots/list`, and route all other requests to the SDK.

`rootsd/hello` comes from rootsd's own bridges, and `roots/list` from custom clients. MCP servers
do not have these methods. No input can harm the daemon: two open requests cannot have the same id,
the number of open requests is bounded, and unknown notifications are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.server import Server

from rootsd import __version__
from rootsd.core.errors import Busy, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.record import BadRecord, from_json, to_json
from rootsd.mcp.responses import (
    MAX_BATCH_MESSAGES,
    AwaitTurn,
    BatchResponse,
    ResponseSender,
)
from rootsd.mcp.serializers import JsonObject, roots_result
from rootsd.mcp.server import SdkDispatcher
from rootsd.mcp.source import propose_open_folder
from rootsd.mcp.views import ConnectionView
from rootsd.wire import hello, jsonrpc
from rootsd.wire.jsonrpc import (
    Batch,
    ErrorResponse,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
)
from rootsd.wire.requested_scope import RequestedScope
from rootsd.wire.scope import move_scope, resolve_scope, resume_state

_DRAIN_S = 5.0


class ProtocolRouter:
    """Handles the lines of one connection; `send` takes the lines that answer them.

    An answer waits for `await_turn` before it is encoded.
    """

    def __init__(
        self,
        server: Server[ConnectionView],
        view: ConnectionView,
        group: TaskGroup,
        send: Callable[[bytes], Awaitable[None]],
        await_turn: AwaitTurn,
    ) -> None:
        self._view = view
        self._group = group
        self._responses = ResponseSender(send, await_turn)
        self._dispatcher = SdkDispatcher(server, view, group, self._responses)
        self._has_first_request = False
        self._has_name = False
        self._outside: frozenset[str] = frozenset()  # the folders in no root at the last move

    async def receive(self, line: bytes) -> None:
        """Handle one line. Raises only what `send` raises, for any line."""
        if not line.strip():
            return
        message = jsonrpc.parse(line)
        if not isinstance(message, Malformed) and _has_unpaired_surrogate(line):
            id_ = message.id if isinstance(message, Request) else None
            reason = "the text holds half of a surrogate pair, which UTF-8 cannot encode"
            message = Malformed(ErrorResponse(id_, jsonrpc.INVALID_REQUEST, reason))
        if isinstance(message, Batch):
            await self._handle_batch(message)
        else:
            await self._handle(message)

    async def finish(self) -> None:
        """Handle the end of input: end the streams, and wait for the answers to open requests."""
        self._view.subscribers.close_streams()
        with anyio.move_on_after(_DRAIN_S):
            await self._responses.all_answered()

    async def _handle_batch(self, batch: Batch) -> None:
        """Handle each message of a batch, and answer all of them in one line."""
        if len(batch.members) > MAX_BATCH_MESSAGES:
            reason = f"a batch holds at most {MAX_BATCH_MESSAGES} messages"
            await self._responses.answer(
                ErrorResponse(None, jsonrpc.INVALID_REQUEST, reason), None
            )
            return
        answers = BatchResponse()
        for member in batch.members:
            await self._handle(member, answers)
        await self._responses.end_batch(answers)

    async def _handle(
        self, message: Message | Malformed, batch: BatchResponse | None = None
    ) -> None:
        match message:
            case Malformed(fault):
                await self._responses.answer(fault, batch)
            case Request():
                await self._route(message, batch)
                self._has_first_request = True
            case Notification():
                await self._on_notification(message)
            case Response() | ErrorResponse():
                pass  # the server sends no requests, so these answer nothing

    async def _route(self, request: Request, batch: BatchResponse | None) -> None:
        match request.method:
            case hello.HELLO_METHOD:
                await self._responses.answer(await self._answer_hello(request), batch)
            case hello.MOVE_METHOD:
                await self._responses.answer(await self._answer_move(request), batch)
            case "roots/list":
                await self._responses.answer(await self._list_roots(request), batch)
            case _:
                await self._pass_on(request, batch)

    async def _answer_hello(self, request: Request) -> Response | ErrorResponse:
        if self._has_first_request:
            reason = f"{hello.HELLO_METHOD} must be the first request of a connection"
            return ErrorResponse(request.id, jsonrpc.INVALID_REQUEST, reason, {"reason": reason})
        try:
            greeting = hello.decode_hello(request.params)
        except hello.BadHello as error:
            return _invalid_hello(request, str(error))
        start = None
        if greeting.scope != RequestedScope():
            # A bad scope is an error. If it were ignored, the peer would get more than it asked
            # for.
            try:
                source = self._view.source
                scope = await resolve_scope(greeting, source.canonical, source.session_start)
            except ValueError as error:
                return _invalid_hello(request, str(error))
            self._view.narrow(scope)
            start = resume_state(scope)
        self._learn_name(greeting.client)
        result = hello.HelloResult(rootsd=__version__, start=start)
        return Response(request.id, to_json(result))

    async def _answer_move(self, request: Request) -> Response | ErrorResponse:
        source = self._view.source
        try:
            folders = from_json(hello.WorkFolders, request.params).folders
            moved = await move_scope(
                self._view.first_scope,
                self._view.start_now,
                folders,
                source.canonical,
                source.session_start,
                source.current,
            )
        except (BadRecord, ValueError) as error:
            data = {"reason": str(error)}
            reason = "this move cannot be used"
            return ErrorResponse(request.id, jsonrpc.INVALID_PARAMS, reason, data)
        except RootsdError as error:
            data = {"reason": error.code.value, "remedy": error.remedy}
            return ErrorResponse(request.id, jsonrpc.INTERNAL_ERROR, error.message, data)
        # A bridge asks again before each call, and each proposal counts for the limit.
        known, self._outside = self._outside, frozenset(moved.outside)
        for folder in moved.outside:
            if folder not in known:
                await _propose_folder(folder, self._view)
        if moved.scope is None:
            return Response(request.id, to_json(hello.MoveResult(moved.outside)))
        self._view.move(moved.scope, moved.start)
        result = hello.MoveResult(moved.outside, resume_state(moved.scope))
        return Response(request.id, to_json(result))

    async def _list_roots(self, request: Request) -> Response | ErrorResponse:
        # Set this first, so that the client is notified of a change during the verification.
        self._view.subscribers.has_listed_roots = True
        try:
            published = await self._view.current()
            workspace = self._view.workspace(published)
            return Response(request.id, roots_result(published, self._view.uris, workspace))
        except MCPError as error:
            return ErrorResponse(request.id, error.code, error.message, error.data)

    async def _pass_on(self, request: Request, batch: BatchResponse | None) -> None:
        if isinstance(request.params, list):
            reason = "the parameters of an MCP request are an object"
            await self._responses.answer(
                ErrorResponse(request.id, jsonrpc.INVALID_PARAMS, reason), batch
            )
            return
        if self._responses.is_open(request.id):
            reason = "a request with this id is still open"
            await self._responses.answer(
                ErrorResponse(request.id, jsonrpc.INVALID_REQUEST, reason), batch
            )
            return
        self._learn_name(_client_name(request.params))
        await self._dispatcher.dispatch(request, request.params, batch)

    def _learn_name(self, name: str) -> None:
        if name and not self._has_name:
            self._view.client = safe_label(name)
            self._view.observer.named(self._view.client)
            self._has_name = True

    async def _on_notification(self, notification: Notification) -> None:
        match notification:
            case Notification("notifications/initialized"):
                if await self._dispatcher.initialized():
                    self._view.subscribers.initialized = True
            case Notification("notifications/cancelled", {"requestId": int() | str() as id_}):
                await self._responses.cancel(id_)
            case Notification(hello.PROPOSED_FOLDER_METHOD, {"path": str() as path}):
                self._group.start_soon(_propose_folder, path, self._view)
            case Notification(hello.REPORTED_ROOTS_METHOD, params) if (
                reported := hello.decode_reported_roots(params)
            ) is not None:
                roots, names = reported
                self._view.observer.roots_reported(roots, tuple(map(safe_label, names)))
            case _:
                pass  # JSON-RPC 2.0: unknown notifications are ignored


async def _propose_folder(path: str, view: ConnectionView) -> None:
    """Propose to the user a folder that a client has open. Drop it after too many requests."""
    if not view.request_rate.wait(anyio.current_time()):
        process = view.membership.key.label
        with suppress(Busy, MCPError):
            await propose_open_folder(view.source, view.current, path, view.client, process)


def _client_name(params: JsonObject | None) -> str:
    match params:
        case {"clientInfo": {"name": str() as name}}:
            return name
        case {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": str() as name}}}:
            return name
        case _:
            return ""


def _invalid_hello(request: Request, reason: str) -> ErrorResponse:
    data = {"reason": reason, "version": hello.HELLO_VERSION}
    return ErrorResponse(request.id, jsonrpc.INVALID_PARAMS, "this hello cannot be used", data)


def _has_unpaired_surrogate(line: bytes) -> bool:
    if b"\\ud" not in line and b"\\uD" not in line:  # \U is not an escape in JSON
        return False
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
