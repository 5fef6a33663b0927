"""Remember what the client said, and replay it to a restarted server. Pure.

The handshake, the log level and the subscriptions of the handshake era; the streams of 2026-07-28;
and what was asked and not answered, where asking twice does no harm: this goes again under the
client's own ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rootsd.wire import mcp_messages
from rootsd.wire.jsonrpc import Id, Notification, Request, encode

_INITIALIZE = "initialize"
_LISTEN = "subscriptions/listen"
# They change nothing, and clients give up where one of them fails.
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
    """Feed it the requests that went to the server, and the answers to them."""

    OBSERVED_METHODS = frozenset(
        {_INITIALIZE, "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
    )
    """The requests answered_by answers have to be read."""

    def __init__(self) -> None:
        self.initialized = False
        """Whether the handshake is over."""
        self._handshake: bytes | None = None
        self._capabilities: dict[str, Any] = {}
        self._log_level: Request | None = None
        self._subscribed: dict[str, None] = {}
        self._open: dict[Id, bytes] = {}
        self._streams: set[Id] = set()

    def request_sent(self, request: Request, line: bytes) -> None:
        """A request goes to the server."""
        if request.method in _REPLAYED_METHODS:
            self._open[request.id] = line

    def response_received(self, request: Request, result: object) -> None:
        """It was answered, and not by an error; told before `closed`."""
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
        """A request was answered or is cancelled."""
        self._open.pop(id_, None)
        self._streams.discard(id_)

    def will_replay(self, id_: Id) -> bool:
        """Whether the next server is asked what this one has not answered."""
        return id_ in self._open

    def is_repeated_acknowledgment(self, notice: Notification) -> bool:
        """Whether a notice says of a stream that it is open, and the client knows that already."""
        id_ = (
            mcp_messages.subscription_id(notice)
            if notice.method == mcp_messages.ACKNOWLEDGED
            else None
        )
        if id_ is None or id_ not in self._open:
            return False
        if id_ in self._streams:
            return True
        self._streams.add(id_)
        return False

    def is_stream(self, id_: Id) -> bool:
        """Whether a request has opened a stream, so that its answer is the end of it."""
        return id_ in self._streams

    @property
    def handshake(self) -> bytes | None:
        """The `initialize` that was agreed on, a line; None where there was none."""
        return self._handshake

    def after_handshake(self, ids: Iterator[Id]) -> Iterator[Request | Notification]:
        """What follows it, with ids of our own."""
        if self.initialized:
            yield Notification(mcp_messages.INITIALIZED)
        if self._log_level is not None:
            yield self._log_level._replace(id=next(ids))
        for uri in self._subscribed:
            yield Request(next(ids), "resources/subscribe", {"uri": uri})

    def open_requests(self) -> Iterator[bytes]:
        """What was asked and not answered, streams among them."""
        for line in self._open.values():
            yield line + b"\n"

    def change_notifications(self) -> Iterator[bytes]:
        """What the client has to look at again, as far as the server said that it tells of it."""
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
