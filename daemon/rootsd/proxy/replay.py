"""Remember what a client said, and say it again to the next daemon or server. Pure.

`rootsd bridge` moves a session to another daemon, and `rootsd run` moves one to a restarted
server. Three things must survive that: the handshake with the log level and the resource
subscriptions, the open streams of MCP 2026-07-28, and the requests without an answer. A request
goes again under the client's own id, but only if a repetition is safe. Which requests are safe
depends on the other side, so the caller gives a `RepeatPolicy`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from rootsd.core.quick_tuple import NamedTuple
from rootsd.wire import jsonrpc, mcp_messages
from rootsd.wire.jsonrpc import Id, Notification, Request, encode

_INITIALIZE = "initialize"
_LISTEN = "subscriptions/listen"
_LIST_CHANGED = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": mcp_messages.RESOURCES_CHANGED,
}


class RepeatPolicy(NamedTuple):
    """The requests that may go to a second daemon or server, and how much of them to keep.

    A method or a tool that is not listed is never repeated: the first one may have carried it out.
    `max_sends` counts the daemons or servers that get the same request, because a request that
    crashes one must not crash every later one. A line longer than `max_line_bytes`, or one that
    makes all lines longer than `max_held_bytes`, is not kept. `max_held` limits the open requests.
    """

    methods: frozenset[str]
    tools: frozenset[str] = frozenset()
    max_sends: float = math.inf
    max_line_bytes: float = math.inf
    max_held_bytes: float = math.inf
    max_held: float = math.inf

    def allows(self, request: Request) -> bool:
        """Return whether a repetition of `request` is safe."""
        match request.params:
            case {"name": str() as name} if request.method == "tools/call":
                return name in self.tools
            case _:
                return request.method in self.methods


class OpenRequest:
    """A request without an answer.

    `line` ends with a newline. It is None if the line is not kept. `sent_count` counts the daemons
    or servers that got the request. `is_stream` says that it opened a stream, so that its answer
    ends the stream.
    """

    __slots__ = ("is_stream", "line", "request", "sent_count")

    def __init__(self, request: Request, line: bytes | None, sent_count: int) -> None:
        self.request = request
        self.line = line
        self.sent_count = sent_count
        self.is_stream = False


class Replay:
    """One client's session. Pass it each request of the client, and each answer that it gets."""

    OBSERVED_METHODS = frozenset(
        {_INITIALIZE, "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
    )
    """The methods whose answers this class must see, through `learn`."""

    def __init__(self, policy: RepeatPolicy) -> None:
        self.initialized = False
        """Whether the client has sent `notifications/initialized`."""
        self.protocol_version: str | None = None
        """The version of MCP in the accepted handshake."""
        self.subscribed: dict[str, None] = {}
        """The URIs of the resources that the client subscribes to, in order."""
        self._policy = policy
        self._handshake: bytes | None = None
        self._capabilities: dict[str, Any] = {}
        self._log_level: Request | None = None
        self._open: dict[Id, OpenRequest] = {}  # 1 and "1" are two ids, and two keys
        self._held_bytes = 0

    # Requests without an answer

    @property
    def open_requests(self) -> list[OpenRequest]:
        """The requests without an answer, in the order in which they came."""
        return list(self._open.values())

    @property
    def waiting_count(self) -> int:
        """How many answers the client waits for, without those that end a stream."""
        return sum(not entry.is_stream for entry in self._open.values())

    @property
    def is_full(self) -> bool:
        """Whether to accept no more requests while nobody answers."""
        policy = self._policy
        return len(self._open) >= policy.max_held or self._held_bytes >= policy.max_held_bytes

    def answered_by(self, id_: Id) -> Id:
        """Return the id of the open request that an answer to `id_` means, or else `id_`."""
        known = jsonrpc.same_id(id_, self._open)
        return id_ if known is None else known

    def find(self, id_: Id) -> Request | None:
        """Return the open request with this id, or None."""
        entry = self._open.get(id_)
        return None if entry is None else entry.request

    def request_sent(self, request: Request, line: bytes) -> OpenRequest:
        """Add a request that goes to the current daemon or server.

        Return the open request with its id. If the client used the id twice, that is the first.
        """
        kept = line if request.method == _LISTEN or self._policy.allows(request) else None
        return self._add(request, kept, 1)

    def request_queued(self, request: Request, line: bytes) -> OpenRequest:
        """Add a request that waits for a daemon. Return the same as `request_sent`."""
        return self._add(request, line, 0)

    def _add(self, request: Request, line: bytes | None, sent_count: int) -> OpenRequest:
        if entry := self._open.get(request.id):
            return entry  # the other side refuses the second request, and still answers the first
        if line is not None:
            size, policy = len(line), self._policy
            if size > policy.max_line_bytes or self._held_bytes + size > policy.max_held_bytes:
                line = None
            else:
                self._held_bytes += size
        entry = self._open[request.id] = OpenRequest(request, line, sent_count)
        return entry

    def close(self, id_: Id) -> OpenRequest | None:
        """Remove and return a request that was answered or cancelled."""
        entry = self._open.pop(id_, None)
        if entry is not None:
            self._held_bytes -= len(entry.line or b"")
        return entry

    def may_repeat(self, entry: OpenRequest) -> bool:
        """Return whether another daemon or server may get a request that one already had."""
        if entry.line is None or not (entry.is_stream or self._policy.allows(entry.request)):
            return False
        return entry.is_stream or entry.sent_count < self._policy.max_sends

    def close_unrepeatable(self) -> list[OpenRequest]:
        """Remove and return the requests that were sent, and that may not be sent again."""
        sent = [entry for entry in self.open_requests if entry.sent_count]
        lost = [entry for entry in sent if not self.may_repeat(entry)]
        for entry in lost:
            self.close(entry.request.id)
        return lost

    def close_unkept(self) -> list[OpenRequest]:
        """Remove and return the requests that were too long to keep."""
        unkept = [entry for entry in self.open_requests if entry.line is None]
        for entry in unkept:
            self.close(entry.request.id)
        return unkept

    def is_repeated_acknowledgment(self, notification: Notification) -> bool:
        """Note a stream that was opened. Return whether the client already knew it to be open."""
        if notification.method != mcp_messages.ACKNOWLEDGED:
            return False
        id_ = mcp_messages.subscription_id(notification)
        entry = None if id_ is None else self._open.get(id_)
        # No other request opens a stream, whatever the other side says.
        if entry is None or entry.request.method != _LISTEN:
            return False
        known, entry.is_stream = entry.is_stream, True
        return known

    # What the other side accepted

    def learn(self, entry: OpenRequest, result: object) -> None:
        """Note the successful answer to a request that was closed."""
        if entry.request.method not in self.OBSERVED_METHODS:
            return
        match entry.request, result:
            case Request(_, "initialize", dict()), dict():
                self._handshake = entry.line or encode(entry.request)
                version, capabilities = result.get("protocolVersion"), result.get("capabilities")
                self.protocol_version = version if isinstance(version, str) else None
                self._capabilities = capabilities if isinstance(capabilities, dict) else {}
            case Request(_, "logging/setLevel"), _:
                self._log_level = entry.request
            case Request(_, "resources/subscribe", {"uri": str() as uri}), _:
                self.subscribed[uri] = None
            case Request(_, "resources/unsubscribe", {"uri": str() as uri}), _:
                self.subscribed.pop(uri, None)
            case _:
                pass

    # What the next daemon or server gets

    @property
    def has_handshake(self) -> bool:
        """Whether the other side has accepted `initialize`, which MCP 2026-07-28 lacks."""
        return self._handshake is not None

    def handshake(self, id_: str) -> bytes | None:
        """Return the `initialize` request that was accepted, under the id `id_`, or None."""
        if self._handshake is None:
            return None
        line = self._handshake.decode().rstrip("\n")
        return jsonrpc.set_member(line, ("id",), json.dumps(id_)).encode() + b"\n"

    def after_handshake(self, ids: Iterator[Id]) -> Iterator[Request | Notification]:
        """Yield the messages that follow the handshake, with ids from `ids`."""
        if self.initialized:
            yield Notification(mcp_messages.INITIALIZED)
        if self._log_level is not None:
            yield self._log_level._replace(id=next(ids))
        for uri in self.subscribed:
            yield Request(next(ids), "resources/subscribe", {"uri": uri})

    def repeat(self) -> bytes:
        """Return the lines of the requests without an answer, and count them as sent."""
        lines = []
        for entry in self._open.values():
            if entry.line is not None:
                entry.sent_count += 1
                lines.append(entry.line)
        return b"".join(lines)

    def change_notifications(self) -> Iterator[bytes]:
        """Yield notifications for everything that the other side said it would report changes of.

        The client gets them after a move, because nobody watched meanwhile.
        """
        if not self.initialized:
            return
        for name, method in _LIST_CHANGED.items():
            match self._capabilities.get(name):
                case {"listChanged": True}:
                    yield encode(Notification(method))
                case _:
                    pass
        for uri in self.subscribed:
            yield mcp_messages.encode_resource_updated(uri)
