"""Run requests on the MCP SDK's low-level server, in every protocol revision.

`build_server` registers the handlers in one server object without state. It serves every
connection in every revision. Each request brings the view of its connection, as the SDK's
"lifespan state".

`SdkDispatcher` runs each request of a connection in its own task. The SDK's own loops connect any
transport to any server through streams, and a call changes tasks six times on its way.
`SdkDispatcher` hands the request to its task directly, and the task writes the result to the
socket.

The SDK chooses the protocol revision of a connection by its first request. But some clients probe
with `server/discover` and then send `initialize`. So `SdkDispatcher` chooses the revision for each
request.

This is the only module that imports internals of the SDK. pyproject.toml caps its version.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
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
from msgspec import Struct, field

from rootsd import __version__
from rootsd.core.labels import safe_label
from rootsd.mcp import resources, tools
from rootsd.mcp.responses import BatchResponse, ResponseSender
from rootsd.mcp.serializers import JsonObject
from rootsd.mcp.views import ConnectionView
from rootsd.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Id, Request

log = logging.getLogger(__name__)

_INSTRUCTIONS = (
    "rootsd lists the project folders that the user approved. Call list_roots before you work with"
    " files, and work only in the folders it lists; a folder that is not listed is not approved."
    " Each later result of a tool says what changed since your last call. This server informs you"
    " and does not enforce. The resource roots://approved holds the list as JSON."
)

# Clients must not cache roots, because a root may be revoked at any moment. The rest is the same
# for all clients until another version of the daemon starts, which a client behind a bridge cannot
# see.
_SAME_FOR_ALL = CacheHint(ttl_ms=60_000, scope="public")
_CACHE_HINTS: dict[CacheableMethod, CacheHint] = {
    "server/discover": _SAME_FOR_ALL,
    "tools/list": _SAME_FOR_ALL,
    "resources/templates/list": _SAME_FOR_ALL,
}


@cache
def build_server() -> Server[ConnectionView]:
    """Return the one server, without state. `SdkDispatcher` gives each request its view."""
    server: Server[Any] = Server(
        "rootsd",
        version=__version__,
        title="rootsd",
        description="The project folders that the user approved",
        instructions=_INSTRUCTIONS,
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
    server.middleware.clear()  # it creates OpenTelemetry spans, which nothing collects
    return server


def handshake_options(server: Server[ConnectionView]) -> InitializationOptions:
    """Return the options that `initialize` returns to clients."""
    return server.create_initialization_options(NotificationOptions(resources_changed=True))


_REQUIRED_KEYS = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
_ENVELOPE_KEYS = frozenset((*_REQUIRED_KEYS, CLIENT_INFO_META_KEY))
_METHODS_SINCE_2026 = frozenset(("server/discover", "subscriptions/listen"))

# The server sends no requests: the older revisions allow it, but the newest one does not.
_TRANSPORT = TransportContext(kind="jsonrpc", can_send_request=False)


class SdkDispatcher:
    """Dispatches the requests of one connection to the SDK."""

    def __init__(
        self,
        server: Server[ConnectionView],
        view: ConnectionView,
        group: TaskGroup,
        responses: ResponseSender,
    ) -> None:
        self._server = server
        self._view = view
        self._group = group
        self._responses = responses
        self._handshake: ServerRunner[ConnectionView] | None = None

    async def dispatch(
        self, request: Request, params: JsonObject | None, batch: BatchResponse | None = None
    ) -> None:
        """Start a request. If there is a `batch`, the answer becomes part of the batch's answer.

        Returns at once, except for `initialize`: the client's next message needs the handshake.
        """
        scope = await self._responses.open(request.id, batch)
        if request.method == "initialize":
            await self._answer(self._handshake_runner().on_request, request, params, scope)
        elif self._is_enveloped(request.method, params):
            self._group.start_soon(self._answer, self._on_enveloped, request, params, scope)
        else:
            handler = self._handshake_runner().on_request
            self._group.start_soon(self._answer, handler, request, params, scope)

    async def initialized(self) -> bool:
        """Handle `notifications/initialized`; return whether a handshake had begun."""
        if self._handshake is None:
            return False
        await self._handshake.on_notify(
            _DispatchContext(self._responses), "notifications/initialized", None
        )
        return True

    async def _answer(
        self,
        handler: OnRequest,
        request: Request,
        params: JsonObject | None,
        scope: anyio.CancelScope,
    ) -> None:
        answer: JSONRPCResponse | JSONRPCError
        with scope:
            try:
                context = _DispatchContext(self._responses, request.id, params)
                result = await handler(context, request.method, params)
                answer = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
            except Exception as error:  # noqa: BLE001 - a bug fails its own request only, and is logged
                data = _error_data(error, request.method)
                answer = JSONRPCError(jsonrpc="2.0", id=request.id, error=data)
        if not scope.cancel_called:  # a canceled request gets no answer
            await self._responses.send(answer)

    def _is_enveloped(self, method: str, params: JsonObject | None) -> bool:
        """Return whether a request uses MCP 2026-07-28, or must use it.

        Requests of that revision describe their client in `params._meta`, which the SDK calls the
        envelope. A request counts if it has one of the envelope's keys, or calls a method that
        only this revision has. Any other request except `ping` must follow a handshake.
        """
        if _envelope(params).keys() & _ENVELOPE_KEYS or method in _METHODS_SINCE_2026:
            return True
        return self._handshake is None and method != "ping"

    def _handshake_runner(self) -> ServerRunner[ConnectionView]:
        """Return the SDK's runner for the older revisions, which stores the handshake's result."""
        if self._handshake is None:
            self._handshake = ServerRunner(
                self._server,
                Connection.for_loop(_DispatchContext(self._responses)),
                self._view,
                init_options=handshake_options(self._server),
            )
        return self._handshake

    async def _on_enveloped(
        self,
        context: DispatchContext[TransportContext],
        method: str,
        params: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """Run a request of MCP 2026-07-28, which names its client itself. Raises MCPError."""
        # First, because a client that probes for a method learns from this code alone.
        if self._server.get_request_handler(method) is None:
            raise MCPError(METHOD_NOT_FOUND, "Method not found")
        _check_envelope(_envelope(params))
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        client = Connection.from_envelope(
            route.protocol_version, route.client_info, route.client_capabilities
        )
        runner = ServerRunner(self._server, client, self._view)
        return await runner.on_request(context, method, params)


class _DispatchContext(Struct):
    """The SDK's DispatchContext, with which handlers send messages to the client of a request.

    The id is None outside of a request.
    """

    _responses: ResponseSender
    request_id: Id | None = None
    _params: JsonObject | None = None
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    transport: TransportContext = _TRANSPORT
    can_send_request: bool = False
    message_metadata: None = None

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification."""
        del opts  # for streams over HTTP
        members = {} if params is None else {"params": dict(params)}
        await self._responses.send(JSONRPCNotification(jsonrpc="2.0", method=method, **members))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Send a progress notification if the client asked for it."""
        token = progress_token_from_params(self._params)
        if token is None:
            return
        fields = {"progress": progress, "total": total, "message": message}
        known = {name: value for name, value in fields.items() if value is not None}
        await self.notify("notifications/progress", {"progressToken": token, **known})

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Raise NoBackChannelError: the server sends no requests."""
        del params, opts
        raise NoBackChannelError(method)


def _envelope(params: Mapping[str, Any] | None) -> JsonObject:
    match params:
        case {"_meta": dict() as meta}:
            return meta
        case _:
            return {}


def _check_envelope(meta: JsonObject) -> None:
    """Raise MCPError (-32602) with the keys that MCP 2026-07-28 requires and `meta` lacks.

    See "Per-request protocol fields" in basic/index of that revision (SEP-2575).
    """
    wrong = [f"{key} is missing" for key in _REQUIRED_KEYS if key not in meta]
    if not wrong and not isinstance(meta[CLIENT_CAPABILITIES_META_KEY], dict):
        wrong = [f"{CLIENT_CAPABILITIES_META_KEY} is not an object"]
    if not isinstance(meta.get(CLIENT_INFO_META_KEY, {}), dict):
        wrong.append(f"{CLIENT_INFO_META_KEY} is not an object")
    if wrong:
        reason = f"in params._meta {', '.join(wrong)}; clients of older revisions send initialize"
        missing = [key for key in _REQUIRED_KEYS if key not in meta]
        raise MCPError(INVALID_PARAMS, reason, {"reason": reason, "missing": missing})


def _error_data(error: Exception, method: str) -> ErrorData:
    data = handler_exception_to_error_data(error)
    if data is None:
        log.error("answering %s failed", safe_label(method), exc_info=error)
        reason = "a bug in rootsd; see its log"
        return ErrorData(code=INTERNAL_ERROR, message="internal error", data={"reason": reason})
    if data.code == METHOD_NOT_FOUND:
        reason = f"{safe_label(method)} is not available in the protocol revision of this request"
        return ErrorData(code=data.code, message=data.message, data={"reason": reason})
    return data
