"""Run requests on the MCP SDK's low-level server, in every protocol revision.

The MCP server: what is offered, in one object that serves every connection and both eras.

It holds no state. What a connection sees comes with the request, as the SDK's "lifespan state".

Has the SDK's kernel answer requests, each in a task of its own, in whichever era it speaks.

The SDK's own loops take messages from streams and put answers into streams, as they must between
a transport and a server that know nothing of each other: a call changes tasks six times on its
way. Here both sit on one connection, so that a request goes from its line into its task, and what
the kernel returns goes from there to the socket.

The SDK settles the era of a connection by its first request. Clients exist that probe with
`server/discover` and then send `initialize` all the same: here each request says which it speaks.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.server import CacheHint, InitializationOptions, NotificationOptions, Server
from mcp.server.caching import CacheableMethod
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnRequest
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import (
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCResponse,
)

from rootsd import __version__
from rootsd.core.labels import safe_label
from rootsd.core.model import PublishedSet
from rootsd.core.scope import Scope
from rootsd.mcp import resources, tools
from rootsd.mcp.cache import cached_by_identity
from rootsd.mcp.responses import BatchResponse, ResponseSender
from rootsd.mcp.serializers import JsonObject
from rootsd.mcp.source import RootsSource
from rootsd.mcp.views import ConnectionView
from rootsd.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Id, Request

_INSTRUCTIONS = (
    "rootsd tells which project folders the user approved. Call list_roots before you work with"
    " files, and keep to the folders it lists; a folder that is not listed was not approved."
    " Each later answer of a tool says what changed since your last call. This server tells and"
    " does not enforce. The resource roots://approved holds the list as JSON."
)

# Roots are never to be kept: one may be revoked at any moment. The rest is the same for everybody
# until another version of the daemon takes over, behind a bridge without the client's knowing.
_SAME_FOR_ALL = CacheHint(ttl_ms=60_000, scope="public")
_CACHE_HINTS: dict[CacheableMethod, CacheHint] = {
    "server/discover": _SAME_FOR_ALL,
    "tools/list": _SAME_FOR_ALL,
    "resources/templates/list": _SAME_FOR_ALL,
}


class _NullObserver:
    """The witness where the SDK's own transport serves: it keeps accounts of its own."""

    def named(self, name: str) -> None:
        pass

    def scoped(self, scope: Scope) -> None:
        pass

    def roots_reported(self, roots: int, names: tuple[str, ...]) -> None:
        pass

    def roots_sent(self, published: PublishedSet) -> None:
        pass


@cached_by_identity(size=1)
def build_server(source: RootsSource) -> Server[ConnectionView]:
    """The one server over `source`; any of the SDK's transports can serve it."""

    @asynccontextmanager
    async def lifespan(_: Server[ConnectionView]) -> AsyncIterator[ConnectionView]:
        yield ConnectionView(source, _NullObserver())

    server = Server(
        "rootsd",
        version=__version__,
        title="rootsd",
        description="The project folders that the user approved",
        instructions=_INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read_resource,
        on_subscribe_resource=resources.subscribe,
        on_unsubscribe_resource=resources.unsubscribe,
        on_subscriptions_listen=resources.listen,
        on_completion=resources.complete_name,
        cache_hints=_CACHE_HINTS,
    )
    server.middleware.clear()  # it makes spans of OpenTelemetry, which nobody here collects
    return server


def handshake_options(server: Server[ConnectionView]) -> InitializationOptions:
    """What `initialize` is answered with."""
    return server.create_initialization_options(NotificationOptions(resources_changed=True))


log = logging.getLogger(__name__)

_REQUIRED_KEYS = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
_ENVELOPE_KEYS = frozenset((*_REQUIRED_KEYS, CLIENT_INFO_META_KEY))
_METHODS_SINCE_2026 = frozenset(("server/discover", "subscriptions/listen"))

# No request is ever sent from here: the older revisions would allow it, the newest one does not.
_TRANSPORT = TransportContext(kind="jsonrpc", can_send_request=False)


class SdkDispatcher:
    """The requests of one connection that are the SDK's to answer."""

    def __init__(
        self,
        server: Server[ConnectionView],
        view: ConnectionView,
        group: TaskGroup,
        outlet: ResponseSender,
    ) -> None:
        self._server = server
        self._view = view
        self._group = group
        self._outlet = outlet
        self._handshake: ServerRunner[ConnectionView] | None = None

    async def take(
        self, request: Request, params: JsonObject | None, batch: BatchResponse | None = None
    ) -> None:
        """Have a request answered, as a part of the answer to `batch` if it came in one.

        Returns at once, but for `initialize`: what a client says right after it finds the
        handshake done.
        """
        scope = await self._outlet.open(request.id, batch)
        if request.method == "initialize":
            await self._answer(self._shaken().on_request, request, params, scope)
        elif self._is_enveloped(request.method, params):
            self._group.start_soon(self._answer, self._on_enveloped, request, params, scope)
        else:
            kernel = self._shaken().on_request
            self._group.start_soon(self._answer, kernel, request, params, scope)

    async def initialized(self) -> bool:
        """The client says that its handshake is done; whether it had begun one."""
        if self._handshake is None:
            return False
        await self._handshake.on_notify(
            _DispatchContext(self._outlet), "notifications/initialized", None
        )
        return True

    async def _answer(
        self,
        kernel: OnRequest,
        request: Request,
        params: JsonObject | None,
        scope: anyio.CancelScope,
    ) -> None:
        answer: JSONRPCResponse | JSONRPCError
        with scope:
            try:
                call = _DispatchContext(self._outlet, request.id, params)
                result = await kernel(call, request.method, params)
                answer = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
            except Exception as error:  # noqa: BLE001 - a bug costs its own request, and is logged
                said = _error_data(error, request.method)
                answer = JSONRPCError(jsonrpc="2.0", id=request.id, error=said)
        if not scope.cancel_called:  # else the client has taken it back, and awaits no answer
            await self._outlet.send(answer)

    def _is_enveloped(self, method: str, params: JsonObject | None) -> bool:
        """Return whether a request speaks 2026-07-28, or would have to.

        It does if it has one of the envelope's keys, or calls a method of that revision alone. A
        request without any of this needs a handshake before it; only `ping` does not.
        """
        if _envelope(params).keys() & _ENVELOPE_KEYS or method in _METHODS_SINCE_2026:
            return True
        return self._handshake is None and method != "ping"

    def _shaken(self) -> ServerRunner[ConnectionView]:
        """The kernel of the older revisions, which keeps what the handshake settled."""
        if self._handshake is None:
            self._handshake = ServerRunner(
                self._server,
                Connection.for_loop(_DispatchContext(self._outlet)),
                self._view,
                init_options=handshake_options(self._server),
            )
        return self._handshake

    async def _on_enveloped(
        self,
        call: DispatchContext[TransportContext],
        method: str,
        params: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """The kernel of 2026-07-28, where each request says who asks. Raises MCPError."""
        _check_envelope(_envelope(params))
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        asker = Connection.from_envelope(
            route.protocol_version, route.client_info, route.client_capabilities
        )
        return await ServerRunner(self._server, asker, self._view).on_request(call, method, params)


@dataclass(slots=True)
class _DispatchContext:
    """The SDK's DispatchContext: how handlers speak to the client while a request is open; that
    of no request where the id is None."""

    _outlet: ResponseSender
    request_id: Id | None = None
    _params: JsonObject | None = None
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    transport: TransportContext = _TRANSPORT
    can_send_request: bool = False
    message_metadata: None = None

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notice."""
        del opts  # of streams over HTTP
        words = {} if params is None else {"params": dict(params)}
        await self._outlet.send(JSONRPCNotification(jsonrpc="2.0", method=method, **words))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell how far the request is, where the client asked for that."""
        token = progress_token_from_params(self._params)
        if token is None:
            return
        said = {"progress": progress, "total": total, "message": message}
        given = {name: value for name, value in said.items() if value is not None}
        await self.notify("notifications/progress", {"progressToken": token, **given})

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Raises NoBackChannelError."""
        del params, opts
        raise NoBackChannelError(method)


def _envelope(params: Mapping[str, Any] | None) -> JsonObject:
    match params:
        case {"_meta": dict() as meta}:
            return meta
        case _:
            return {}


def _check_envelope(meta: JsonObject) -> None:
    """Raise MCPError with -32602 that names each key that 2026-07-28 requires and `meta` lacks.

    See "Per-request protocol fields" in basic/index of that revision (SEP-2575).
    """
    wrong = [f"{key} is missing" for key in _REQUIRED_KEYS if key not in meta]
    if not wrong and not isinstance(meta[CLIENT_CAPABILITIES_META_KEY], dict):
        wrong = [f"{CLIENT_CAPABILITIES_META_KEY} is no object"]
    if not isinstance(meta.get(CLIENT_INFO_META_KEY, {}), dict):
        wrong.append(f"{CLIENT_INFO_META_KEY} is no object")
    if wrong:
        reason = f"in params._meta {', '.join(wrong)}; clients of older revisions send initialize"
        missing = [key for key in _REQUIRED_KEYS if key not in meta]
        raise MCPError(INVALID_PARAMS, reason, {"reason": reason, "missing": missing})


def _error_data(error: Exception, method: str) -> ErrorData:
    said = handler_exception_to_error_data(error)
    if said is None:
        log.error("answering %s failed", safe_label(method), exc_info=error)
        reason = "a fault in rootsd, which its log describes"
        return ErrorData(code=INTERNAL_ERROR, message="internal error", data={"reason": reason})
    if said.code == METHOD_NOT_FOUND:
        reason = f"{safe_label(method)} is not served in the protocol revision of this request"
        return ErrorData(code=said.code, message=said.message, data={"reason": reason})
    return said
