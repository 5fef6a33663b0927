"""Answer `rootsd/hello` and `roots/list`, and route all other requests to the SDK.

The rest is answered here: `roots/list`, for authors of clients, and the `rootsd/hello` of our
bridges, which no MCP server is asked. And nothing a peer sends can harm: every id is in use once,
few requests are open at a time, and only the notices that matter are heeded.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.server import Server

from rootsd import __version__
from rootsd.core.labels import safe_label
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import Scope, ScopeExtent, SessionStart, UriFilter
from rootsd.mcp.responses import MAX_BATCH_MESSAGES, BatchResponse, ResponseSender
from rootsd.mcp.serializers import JsonObject, roots_result
from rootsd.mcp.server import SdkDispatcher
from rootsd.mcp.tools import propose_folder
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

_DRAIN_S = 5.0


class ProtocolRouter:
    """Takes the lines of one connection in; `send` gets the lines that answer them."""

    def __init__(
        self,
        server: Server[ConnectionView],
        view: ConnectionView,
        group: TaskGroup,
        send: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._view = view
        self._group = group
        self._outlet = ResponseSender(send)
        self._calls = SdkDispatcher(server, view, group, self._outlet)
        self._greeted = False
        self._has_name = False

    async def receive(self, line: bytes) -> None:
        """Handle one line. Raises nothing but what `send` raises, whatever the line holds."""
        if not line.strip():
            return
        message = jsonrpc.parse(line)
        if not isinstance(message, Malformed) and _has_unpaired_surrogate(line):
            id_ = message.id if isinstance(message, Request) else None
            reason = "the text holds half of a surrogate pair, which UTF-8 cannot carry"
            message = Malformed(ErrorResponse(id_, jsonrpc.INVALID_REQUEST, reason))
        if isinstance(message, Batch):
            await self._take_batch(message)
        else:
            await self._take(message)

    async def finish(self) -> None:
        """The peer sends no more: answer what is open, and end the streams."""
        self._view.audience.close_streams()
        with anyio.move_on_after(_DRAIN_S):
            await self._outlet.all_answered()

    async def _take_batch(self, batch: Batch) -> None:
        """Handle each message of a batch, and answer all of them in one line."""
        if len(batch.members) > MAX_BATCH_MESSAGES:
            reason = f"a batch holds at most {MAX_BATCH_MESSAGES} messages"
            await self._outlet.answer(ErrorResponse(None, jsonrpc.INVALID_REQUEST, reason), None)
            return
        answers = BatchResponse()
        for member in batch.members:
            await self._take(member, answers)
        await self._outlet.end_batch(answers)

    async def _take(
        self, message: Message | Malformed, batch: BatchResponse | None = None
    ) -> None:
        match message:
            case Malformed(fault):
                await self._outlet.answer(fault, batch)
            case Request():
                await self._answer_or_pass(message, batch)
                self._greeted = True
            case Notification():
                await self._notice(message)
            case Response() | ErrorResponse():
                pass  # answers to nothing: no request is ever sent from here

    async def _answer_or_pass(self, request: Request, batch: BatchResponse | None) -> None:
        match request.method:
            case hello.HELLO_METHOD:
                await self._outlet.answer(await self._welcome(request), batch)
            case "roots/list":
                await self._outlet.answer(await self._list_roots(request), batch)
            case _:
                await self._pass_on(request, batch)

    async def _welcome(self, request: Request) -> Response | ErrorResponse:
        if self._greeted:
            reason = f"{hello.HELLO_METHOD} comes first on a connection"
            return ErrorResponse(request.id, jsonrpc.INVALID_REQUEST, reason, {"reason": reason})
        try:
            greeting = hello.decode_hello(request.params)
        except hello.BadHello as error:
            return _invalid_hello(request, str(error))
        start = None
        if greeting.scope != hello.RequestedScope():
            # The whole set would be more than was asked for: what cannot be followed is refused.
            try:
                scope = await self._scope_of(greeting.scope)
            except ValueError as error:
                return _invalid_hello(request, str(error))
            self._view.narrow(scope)
            start = _start_for_peer(scope)
        self._learn_name(greeting.client)
        return Response(request.id, hello.hello_result(__version__, start))

    async def _scope_of(self, wish: hello.RequestedScope) -> Scope:
        uris = UriFilter.ANY if wish.any_uri else UriFilter.FILE
        scope = Scope(frozenset(wish.names), frozenset(wish.tags), uris=uris)
        if wish.workspace is not None:
            folder, extent = _parse_absolute("workspace", wish.workspace), ScopeExtent.WORKSPACE
        elif wish.cwd is not None:
            folder, extent = _parse_absolute("cwd", wish.cwd), ScopeExtent.ROOT
        else:
            return scope
        source = self._view.source
        canonical = await source.canonical(folder)
        if wish.start is None:
            start = await source.starting_in(canonical)
        else:
            told = wish.start.anchor
            anchor = None if told is None else _parse_absolute("anchor", told)
            start = SessionStart(anchor, wish.start.approvals)
        return replace(scope, folder=canonical, extent=extent, start=start)

    async def _list_roots(self, request: Request) -> Response | ErrorResponse:
        self._view.audience.asked_roots = True  # first: a change from here on must be told
        try:
            published = await self._view.current()
            here = self._view.workspace(published)
            return Response(request.id, roots_result(published, self._view.uris, here))
        except MCPError as error:
            return ErrorResponse(request.id, error.code, error.message, error.data)

    async def _pass_on(self, request: Request, batch: BatchResponse | None) -> None:
        if isinstance(request.params, list):
            reason = "MCP's parameters are an object"
            await self._outlet.answer(
                ErrorResponse(request.id, jsonrpc.INVALID_PARAMS, reason), batch
            )
            return
        if self._outlet.is_open(request.id):
            reason = "a request with this id is still open"
            await self._outlet.answer(
                ErrorResponse(request.id, jsonrpc.INVALID_REQUEST, reason), batch
            )
            return
        self._learn_name(_client_name(request.params))
        await self._calls.take(request, request.params, batch)

    def _learn_name(self, name: str) -> None:
        if name and not self._has_name:
            self._view.client = safe_label(name)
            self._view.witness.named(self._view.client)
            self._has_name = True

    async def _notice(self, notice: Notification) -> None:
        match notice:
            case Notification("notifications/initialized"):
                if await self._calls.initialized():
                    self._view.audience.initialized = True
            case Notification("notifications/cancelled", {"requestId": int() | str() as id_}):
                await self._outlet.cancel(id_)
            case Notification(
                hello.PROPOSED_FOLDER_METHOD, {"path": str() as path, "reason": str() as reason}
            ):
                self._group.start_soon(propose_folder, path, reason, self._view)
            case Notification(hello.REPORTED_ROOTS_METHOD, params) if (
                told := hello.decode_reported_roots(params)
            ) is not None:
                names = tuple(safe_label(name) for name in told.names)
                self._view.witness.roots_reported(told.roots, names)
            case _:
                pass  # unknown notices are ignored, as JSON-RPC has it


def _parse_absolute(field: str, path: str) -> bytes:
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"{field} is an absolute path")
    return bytes_of(path)


def _start_for_peer(scope: Scope) -> hello.ResumeState | None:
    """Return what the peer has to send along when it connects again."""
    if scope.folder is None:
        return None
    anchor = scope.start.anchor
    return hello.ResumeState(None if anchor is None else text_of(anchor), scope.start.approvals)


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
    if b"\\ud" not in line and b"\\uD" not in line:  # \U is no escape in JSON
        return False
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
