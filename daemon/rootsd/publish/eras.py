"""What a peer says, whichever protocol era it speaks: the SDK's part goes to the SDK.

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
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from rootsd import __version__
from rootsd.core.labels import safe_label
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import Extent, Scope, Start, Uris
from rootsd.publish.calls import Calls
from rootsd.publish.outlet import MOST_IN_A_BATCH, BatchAnswer, Outlet
from rootsd.publish.shapes import JsonObject, roots_result
from rootsd.publish.view import View
from rootsd.publish.wishes import propose
from rootsd.wire import hello, jsonrpc
from rootsd.wire.jsonrpc import Batch, Fault, Malformed, Message, Notice, Reply, Request

_DRAIN_S = 5.0


class Eras:
    """Takes the lines of one connection in; `send` gets the lines that answer them."""

    def __init__(
        self,
        server: Server[View],
        view: View,
        group: TaskGroup,
        send: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._view = view
        self._group = group
        self._outlet = Outlet(send)
        self._calls = Calls(server, view, group, self._outlet)
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
            message = Malformed(Fault(id_, jsonrpc.INVALID_REQUEST, reason))
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
        if len(batch.members) > MOST_IN_A_BATCH:
            reason = f"a batch holds at most {MOST_IN_A_BATCH} messages"
            await self._outlet.answer(Fault(None, jsonrpc.INVALID_REQUEST, reason), None)
            return
        answers = BatchAnswer()
        for member in batch.members:
            await self._take(member, answers)
        await self._outlet.end_batch(answers)

    async def _take(self, message: Message | Malformed, batch: BatchAnswer | None = None) -> None:
        match message:
            case Malformed(fault):
                await self._outlet.answer(fault, batch)
            case Request():
                await self._answer_or_pass(message, batch)
                self._greeted = True
            case Notice():
                await self._notice(message)
            case Reply() | Fault():
                pass  # answers to nothing: no request is ever sent from here

    async def _answer_or_pass(self, request: Request, batch: BatchAnswer | None) -> None:
        match request.method:
            case hello.METHOD:
                await self._outlet.answer(await self._welcome(request), batch)
            case "roots/list":
                await self._outlet.answer(await self._list_roots(request), batch)
            case _:
                await self._pass_on(request, batch)

    async def _welcome(self, request: Request) -> Reply | Fault:
        if self._greeted:
            reason = f"{hello.METHOD} comes first on a connection"
            return Fault(request.id, jsonrpc.INVALID_REQUEST, reason, {"reason": reason})
        try:
            greeting = hello.decode(request.params)
        except hello.BadHello as error:
            return _unusable(request, str(error))
        start = None
        if greeting.scope != hello.Scope():
            # The whole set would be more than was asked for: what cannot be followed is refused.
            try:
                scope = await self._scope_of(greeting.scope)
            except ValueError as error:
                return _unusable(request, str(error))
            self._view.narrow(scope)
            start = _told_start(scope)
        self._learn_name(greeting.client)
        return Reply(request.id, hello.welcome(__version__, start))

    async def _scope_of(self, wish: hello.Scope) -> Scope:
        uris = Uris.ANY if wish.any_uri else Uris.FILE
        scope = Scope(frozenset(wish.names), frozenset(wish.tags), uris=uris)
        if wish.workspace is not None:
            folder, extent = _absolute("workspace", wish.workspace), Extent.WORKSPACE
        elif wish.cwd is not None:
            folder, extent = _absolute("cwd", wish.cwd), Extent.ROOT
        else:
            return scope
        source = self._view.source
        canonical = await source.canonical(folder)
        if wish.start is None:
            start = await source.starting_in(canonical)
        else:
            told = wish.start.anchor
            anchor = None if told is None else _absolute("anchor", told)
            start = Start(anchor, wish.start.approvals)
        return replace(scope, folder=canonical, extent=extent, start=start)

    async def _list_roots(self, request: Request) -> Reply | Fault:
        self._view.audience.asked_roots = True  # first: a change from here on must be told
        try:
            published = await self._view.current()
            here = self._view.workspace(published)
            return Reply(request.id, roots_result(published, self._view.uris, here))
        except MCPError as error:
            return Fault(request.id, error.code, error.message, error.data)

    async def _pass_on(self, request: Request, batch: BatchAnswer | None) -> None:
        if isinstance(request.params, list):
            reason = "MCP's parameters are an object"
            await self._outlet.answer(Fault(request.id, jsonrpc.INVALID_PARAMS, reason), batch)
            return
        if self._outlet.is_open(request.id):
            reason = "a request with this id is still open"
            await self._outlet.answer(Fault(request.id, jsonrpc.INVALID_REQUEST, reason), batch)
            return
        self._learn_name(_client_name(request.params))
        await self._calls.take(request, request.params, batch)

    def _learn_name(self, name: str) -> None:
        if name and not self._has_name:
            self._view.client = safe_label(name)
            self._view.witness.named(self._view.client)
            self._has_name = True

    async def _notice(self, notice: Notice) -> None:
        match notice:
            case Notice("notifications/initialized"):
                if await self._calls.initialized():
                    self._view.audience.initialized = True
            case Notice("notifications/cancelled", {"requestId": int() | str() as id_}):
                await self._outlet.cancel(id_)
            case Notice(hello.PROPOSED, {"path": str() as path, "reason": str() as reason}):
                self._group.start_soon(propose, path, reason, self._view)
            case Notice(hello.TOLD, params) if (told := hello.decode_told(params)) is not None:
                names = tuple(safe_label(name) for name in told.names)
                self._view.witness.told(told.roots, names)
            case _:
                pass  # unknown notices are ignored, as JSON-RPC has it


def _absolute(field: str, path: str) -> bytes:
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"{field} is an absolute path")
    return bytes_of(path)


def _told_start(scope: Scope) -> hello.Start | None:
    """Return what the peer has to send along when it connects again."""
    if scope.folder is None:
        return None
    anchor = scope.start.anchor
    return hello.Start(None if anchor is None else text_of(anchor), scope.start.approvals)


def _client_name(params: JsonObject | None) -> str:
    match params:
        case {"clientInfo": {"name": str() as name}}:
            return name
        case {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": str() as name}}}:
            return name
        case _:
            return ""


def _unusable(request: Request, reason: str) -> Fault:
    data = {"reason": reason, "version": hello.VERSION}
    return Fault(request.id, jsonrpc.INVALID_PARAMS, "this hello cannot be used", data)


def _has_unpaired_surrogate(line: bytes) -> bool:
    if b"\\ud" not in line and b"\\uD" not in line:  # \U is no escape in JSON
        return False
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
