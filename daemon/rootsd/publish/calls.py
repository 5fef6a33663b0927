"""Has the SDK's kernel answer requests, each in a task of its own, in whichever era it speaks.

The SDK's own loops take messages from streams and put answers into streams, as they must between
a transport and a server that know nothing of each other: a call changes tasks six times on its
way. Here both sit on one connection, so that a request goes from its line into its task, and what
the kernel returns goes from there to the socket.

The SDK settles the era of a connection by its first request. Clients exist that probe with
`server/discover` and then send `initialize` all the same: here each request says which it speaks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnRequest
from mcp.shared.exceptions import MCPError, NoBackChannelError
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

from rootsd.core.labels import safe_label
from rootsd.publish.outlet import BatchAnswer, Outlet
from rootsd.publish.server import handshake_options
from rootsd.publish.shapes import JsonObject
from rootsd.publish.view import View
from rootsd.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Id, Request

log = logging.getLogger(__name__)

_REQUIRED_KEYS = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
_ENVELOPE_KEYS = frozenset((*_REQUIRED_KEYS, CLIENT_INFO_META_KEY))
_METHODS_OF_2026 = frozenset(("server/discover", "subscriptions/listen"))

# No request is ever sent from here: the older revisions would allow it, the newest one does not.
_TRANSPORT = TransportContext(kind="jsonrpc", can_send_request=False)


class Calls:
    """The requests of one connection that are the SDK's to answer."""

    def __init__(self, server: Server[View], view: View, group: TaskGroup, outlet: Outlet) -> None:
        self._server = server
        self._view = view
        self._group = group
        self._outlet = outlet
        self._handshake: ServerRunner[View] | None = None

    async def take(
        self, request: Request, params: JsonObject | None, batch: BatchAnswer | None = None
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
        await self._handshake.on_notify(_Call(self._outlet), "notifications/initialized", None)
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
                call = _Call(self._outlet, request.id, params)
                result = await kernel(call, request.method, params)
                answer = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
            except Exception as error:  # noqa: BLE001 - a bug costs its own request, and is logged
                said = _in_our_words(error, request.method)
                answer = JSONRPCError(jsonrpc="2.0", id=request.id, error=said)
        if not scope.cancel_called:  # else the client has taken it back, and awaits no answer
            await self._outlet.send(answer)

    def _is_enveloped(self, method: str, params: JsonObject | None) -> bool:
        """Return whether a request speaks 2026-07-28, or would have to.

        It does if it has one of the envelope's keys, or calls a method of that revision alone. A
        request without any of this needs a handshake before it; only `ping` does not.
        """
        if _envelope(params).keys() & _ENVELOPE_KEYS or method in _METHODS_OF_2026:
            return True
        return self._handshake is None and method != "ping"

    def _shaken(self) -> ServerRunner[View]:
        """The kernel of the older revisions, which keeps what the handshake settled."""
        if self._handshake is None:
            self._handshake = ServerRunner(
                self._server,
                Connection.for_loop(_Call(self._outlet)),
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
class _Call:
    """The SDK's DispatchContext: how handlers speak to the client while a request is open; that
    of no request where the id is None."""

    _outlet: Outlet
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


def _in_our_words(error: Exception, method: str) -> ErrorData:
    said = handler_exception_to_error_data(error)
    if said is None:
        log.error("answering %s failed", safe_label(method), exc_info=error)
        reason = "a fault in rootsd, which its log describes"
        return ErrorData(code=INTERNAL_ERROR, message="internal error", data={"reason": reason})
    if said.code == METHOD_NOT_FOUND:
        reason = f"{safe_label(method)} is not served in the protocol revision of this request"
        return ErrorData(code=said.code, message=said.message, data={"reason": reason})
    return said
