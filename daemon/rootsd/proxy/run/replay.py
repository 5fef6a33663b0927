"""Remember what the client said, and replay it to a restarted server. Pure.

Three things must survive a restart of the server: the handshake with the log level and the
resource subscriptions, the open streams of MCP 2026-07-28, and the requests without an answer. A
request goes again under the client's own id, but only if a repetition is safe. The server is a
third party's program, so this list is shorter than the bridge's (`rootsd.proxy.bridge.pending`),
and tool calls are never repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rootsd.wire import mcp_messages
from rootsd.wire.jsonrpc import Id, Notification, Request, encode

_INITIALIZE = "initialize"
_LISTEN = "subscriptions/listen"
# These requests change nothing, and clients give up when one of them fails.
_REPLAYED_METHODS = frozenset(
    {
        "ping", "prompts/list", "resources/list", "resources/templates/list", "server/discover",
        "tools/list", _INITIALIZE, _LISTEN,
    }
)  # fmt: skip
_LIST_CHANGED = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": mcp_messages.RESOURCES_CHANGED,
}


class Replay:
    """The session state of the client. Pass it each request to the server, and each response."""

    OBSERVED_METHODS = frozenset(
        {_INITIALIZE, "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
    )
    """The methods whose responses this class must see."""

    def __init__(self) -> None:
        self.initialized = False
        """Whether the client has sent `notifications/initialized`."""
        self._handshake: bytes | None = None
        self._capabilities: dict[str, Any] = {}
        self._log_level: Request | None = None
        self._subscribed: dict[str, None] = {}
        self._open: dict[Id, bytes] = {}
        self._streams: set[Id] = set()

    def request_sent(self, request: Request, line: bytes) -> None:
        """Note a request that goes to the server."""
        if request.method in _REPLAYED_METHODS:
            self._open[request.id] = line

    def response_received(self, request: Request, result: object) -> None:
        """Note a successful response. Call this before `request_closed`."""
        match request, result:
            case Request(_, "initialize", dict()), {"capabilities": dict() as capabilities}:
                self._handshake = self._open.get(request.id)
                self._capabilities = capabilities
            case Request(_, "logging/setLevel"), _:
                self._log_level = request
            case Request(_, "resources/subscribe", {"uri": str() as uri}), _:
                self._subscribed[uri] = None
            case Request(_, "resources/unsubscribe", {"uri": str() as uri}), _:
                self._subscribed.pop(uri, None)
            case _:
                pass

    def request_closed(self, id_: Id) -> None:
        """Forget a request that was answered or cancelled."""
        self._open.pop(id_, None)
        self._streams.discard(id_)

    def will_replay(self, id_: Id) -> bool:
        """Whether the next server gets this request if the current one does not answer it."""
        return id_ in self._open

    def is_repeated_acknowledgment(self, notification: Notification) -> bool:
        """Whether a notification acknowledges a stream that the client already knows to be
        open.
        """
        id_ = (
            mcp_messages.subscription_id(notification)
            if notification.method == mcp_messages.ACKNOWLEDGED
            else None
        )
        if id_ is None or id_ not in self._open:
            return False
        if id_ in self._streams:
            return True
        self._streams.add(id_)
        return False

    def is_stream(self, id_: Id) -> bool:
        """Whether a request has opened a stream, so that its response ends the stream."""
        return id_ in self._streams

    @property
    def handshake(self) -> bytes | None:
        """The line of the `initialize` request that the server accepted, or None."""
        return self._handshake

    def after_handshake(self, ids: Iterator[Id]) -> Iterator[Request | Notification]:
        """Yield the messages that follow the handshake, with ids from `ids`."""
        if self.initialized:
            yield Notification(mcp_messages.INITIALIZED)
        if self._log_level is not None:
            yield self._log_level._replace(id=next(ids))
        for uri in self._subscribed:
            yield Request(next(ids), "resources/subscribe", {"uri": uri})

    def open_requests(self) -> Iterator[bytes]:
        """Yield the lines of the requests without an answer, streams among them."""
        for line in self._open.values():
            yield line + b"\n"

    def change_notifications(self) -> Iterator[bytes]:
        """Yield notifications for everything that the server said it would report changes of."""
        if not self.initialized:
            return
        for name, method in _LIST_CHANGED.items():
            match self._capabilities.get(name):
                case {"listChanged": True}:
                    yield encode(Notification(method))
                case _:
                    pass
        for uri in self._subscribed:
            yield mcp_messages.encode_resource_updated(uri)
