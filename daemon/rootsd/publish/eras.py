"""Both protocol eras on one connection, behind a layer of our own.

The SDK settles the era of a connection by its first request. Clients exist that probe with
`server/discover` and then send `initialize` all the same, so each connection gets two SDK loops,
each started by the first request for it: a request that carries the `_meta` of 2026-07-28 goes to
one, all others to the other, a cancellation to both.

Our own layer answers what no MCP server is asked: `roots/list`, for authors of clients, and the
`rootsd/hello` of our bridges. It also sees to it that nothing a peer sends can harm: every id is
in use once, few requests are open at a time, and only the notices that matter are passed on.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from enum import Enum, auto

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import PROTOCOL_VERSION_META_KEY, JSONRPCNotification, JSONRPCRequest

from rootsd import __version__
from rootsd.core.labels import safe_label
from rootsd.core.paths import bytes_of
from rootsd.core.scope import Scope, Uris
from rootsd.publish.outlet import Outlet
from rootsd.publish.server import handshake_options
from rootsd.publish.shapes import JsonObject, roots_result
from rootsd.publish.view import View
from rootsd.wire import hello, jsonrpc
from rootsd.wire.jsonrpc import Batch, Fault, Malformed, Message, Notice, Reply, Request

_DRAIN_S = 5.0

_Inlet = MemoryObjectSendStream[SessionMessage | Exception]
_Messages = MemoryObjectReceiveStream[SessionMessage | Exception]


class Era(Enum):
    """How a request says which revision it speaks."""

    HANDSHAKE = auto()
    PER_REQUEST = auto()


class Eras:
    """Takes the lines of one connection in; `send` gets the lines that answer them."""

    def __init__(
        self,
        server: Server[View],
        view: View,
        group: TaskGroup,
        send: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._server = server
        self._view = view
        self._group = group
        self._send = send
        self._outlet = Outlet(send)
        self._inlets: dict[Era, _Inlet] = {}
        self._messages: list[_Messages] = []
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
        for member in message.members if isinstance(message, Batch) else (message,):
            await self._take(member)

    async def finish(self) -> None:
        """The peer sends no more: answer what is open, and end the streams."""
        self._view.audience.close_streams()
        with anyio.move_on_after(_DRAIN_S):
            await self._outlet.all_answered()

    def close(self) -> None:
        """End the loops, whether they ever ran or not."""
        for inlet in self._inlets.values():
            inlet.close()
        for messages in self._messages:
            messages.close()

    async def _take(self, message: Message | Malformed) -> None:
        match message:
            case Malformed(fault):
                await self._answer(fault)
            case Request():
                await self._answer_or_pass(message)
                self._greeted = True
            case Notice():
                await self._notice(message)
            case Reply() | Fault():
                pass  # answers to nothing: no request is ever sent from here

    async def _answer_or_pass(self, request: Request) -> None:
        match request.method:
            case hello.METHOD:
                await self._answer(await self._welcome(request))
            case "roots/list":
                await self._answer(await self._list_roots(request))
            case _:
                await self._pass_on(request)

    async def _answer(self, message: Reply | Fault) -> None:
        await self._send(jsonrpc.encode(message))

    async def _welcome(self, request: Request) -> Reply | Fault:
        if self._greeted:
            reason = f"{hello.METHOD} comes first on a connection"
            return Fault(request.id, jsonrpc.INVALID_REQUEST, reason, {"reason": reason})
        try:
            greeting = hello.decode(request.params)
        except hello.BadHello as error:
            return _unusable(request, str(error))
        if greeting.scope != hello.Scope():
            # The whole set would be more than was asked for: what cannot be followed is refused.
            try:
                scope = await self._scope_of(greeting.scope)
            except ValueError as error:
                return _unusable(request, str(error))
            self._view.narrow(scope)
        self._learn_name(greeting.client)
        return Reply(request.id, {"version": hello.VERSION, "rootsd": __version__})

    async def _scope_of(self, wish: hello.Scope) -> Scope:
        folder = None
        if wish.cwd is not None:
            if not wish.cwd.startswith("/") or "\0" in wish.cwd:
                raise ValueError("cwd is an absolute path")
            folder = await self._view.source.canonical(bytes_of(wish.cwd))
        uris = Uris.ANY if wish.any_uri else Uris.FILE
        return Scope(frozenset(wish.names), frozenset(wish.tags), folder, uris)

    async def _list_roots(self, request: Request) -> Reply | Fault:
        self._view.audience.asked_roots = True  # first: a change from here on must be told
        try:
            return Reply(request.id, roots_result(await self._view.current(), self._view.uris))
        except MCPError as error:
            return Fault(request.id, error.code, error.message, error.data)

    async def _pass_on(self, request: Request) -> None:
        if isinstance(request.params, list):
            reason = "MCP's parameters are an object"
            await self._answer(Fault(request.id, jsonrpc.INVALID_PARAMS, reason))
            return
        if self._outlet.is_open(request.id):
            reason = "a request with this id is still open"
            await self._answer(Fault(request.id, jsonrpc.INVALID_REQUEST, reason))
            return
        self._learn_name(_client_name(request.params))
        await self._outlet.open(request.id)
        inlet = self._inlet(_era_of(request))
        call = JSONRPCRequest(
            jsonrpc="2.0", id=request.id, method=request.method, params=request.params
        )
        await inlet.send(SessionMessage(call))

    def _learn_name(self, name: str) -> None:
        if name and not self._has_name:
            self._view.client = safe_label(name)
            self._view.witness.named(self._view.client)
            self._has_name = True

    async def _notice(self, notice: Notice) -> None:
        # Rebuilt from what matters: the SDK logs a line for each one that it cannot read.
        match notice:
            case Notice("notifications/initialized") if Era.HANDSHAKE in self._inlets:
                await self._inlets[Era.HANDSHAKE].send(_sdk_notice(notice.method, None))
                self._view.audience.initialized = True
            case Notice("notifications/cancelled", {"requestId": int() | str() as id_}):
                for inlet in tuple(self._inlets.values()):
                    await inlet.send(_sdk_notice(notice.method, {"requestId": id_}))
                self._outlet.cancel(id_)
            case Notice(hello.TOLD, params) if (told := hello.decode_told(params)) is not None:
                names = tuple(safe_label(name) for name in told.names)
                self._view.witness.told(told.roots, names)
            case _:
                pass  # unknown notices are ignored, as JSON-RPC has it

    def _inlet(self, era: Era) -> _Inlet:
        if era not in self._inlets:
            inlet, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            self._inlets[era] = inlet
            self._messages.append(messages)
            self._group.start_soon(self._run_loop, messages)
        return self._inlets[era]

    async def _run_loop(self, messages: _Messages) -> None:
        await serve_dual_era_loop(
            self._server,
            messages,
            self._outlet,
            lifespan_state=self._view,
            init_options=handshake_options(self._server),
        )


def _era_of(request: Request) -> Era:
    """As the SDK tells the eras apart; `initialize` exists in the older one alone."""
    match request.params:
        case {"_meta": dict() as meta} if PROTOCOL_VERSION_META_KEY in meta:
            return Era.HANDSHAKE if request.method == "initialize" else Era.PER_REQUEST
        case _:
            return Era.HANDSHAKE


def _client_name(params: JsonObject | None) -> str:
    match params:
        case {"clientInfo": {"name": str() as name}}:
            return name
        case {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": str() as name}}}:
            return name
        case _:
            return ""


def _sdk_notice(method: str, params: dict[str, int | str] | None) -> SessionMessage:
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=method, params=params))


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
