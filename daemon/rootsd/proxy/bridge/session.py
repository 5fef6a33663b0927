"""Remember the client's session, and restore it when a new daemon takes over. Pure.

The session takes lines and returns lines. It does no I/O. After a loss, it restores the state at
the next daemon in this order: the hello, the handshake, the subscriptions, and the requests
without an answer. The first three go under ids of our own, and the client does not see the
answers. A request without an answer goes again under the client's own id, if a repetition is safe.
At the end, the client gets the notifications that everything may have changed, in the form of the
protocol version it speaks.

`rootsd run` has its own replay engine (`rootsd.proxy.run.replay`), because it replays to a server
that we do not know. This engine may repeat what rootsd's daemon is known to answer safely. It also
queues requests while no daemon runs, limits how often one request is sent, and renews
subscriptions that failed. None of that is safe or useful with a third party's server.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.proxy.bridge.pending import BatchAnswers, PendingRequest, PendingRequests, ReplayRole
from rootsd.wire import hello, mcp_messages
from rootsd.wire.jsonrpc import (
    INVALID_REQUEST,
    Batch,
    ErrorResponse,
    Id,
    Malformed,
    Notification,
    Request,
    Response,
    encode,
    parse,
)


class ProtocolVersionMismatch(RootsdError):
    """An error: the daemon does not speak the protocol version that the client agreed on."""

    code = ErrorCode.UNREACHABLE


class BridgeOutput(NamedTuple):
    """The whole lines to send to each side."""

    to_client: bytes = b""
    to_daemon: bytes = b""


class BridgeSession:
    """One client's session. Pass it each line of both sides, and each change of the connection."""

    def __init__(self, greeting: hello.Hello | None = None) -> None:
        self.forwards = greeting is None
        """Whether the client's lines may go to the daemon as they come."""
        self.answer_count = 0
        """How many requests of the client a daemon has answered."""
        self._greeting = greeting
        self._is_scoped = greeting is not None and greeting.scope.narrows
        self._pending = PendingRequests()
        self._own_requests: dict[Id, tuple[ReplayRole, str]] = {}
        self._own_id_count = 0
        self._handshake: tuple[dict[str, Any], str] | None = None
        self._initialized = False
        self._has_requested_roots = False
        self._subscribed: set[str] = set()
        self._failed_subscriptions: set[str] = set()
        self._changes_due = False

    @property
    def awaits_answers(self) -> bool:
        """Whether the client waits for an answer."""
        return bool(self._pending)

    @property
    def is_full(self) -> bool:
        """Whether to stop reading from the client until a daemon is there."""
        return self._pending.is_full

    def from_client(self, line: bytes, *, forwarded: bool) -> bytes:
        """Note a line of the client. Return the lines that answer it at once.

        `forwarded` says whether a daemon already has the line. If not, the next daemon gets it.
        """
        message = parse(line)
        if isinstance(message, Batch):
            parts = BatchAnswers()
            for member in message.members:
                if isinstance(member, Request):
                    self._pending.add(member, encode(member), forwarded=forwarded, parts=parts)
                elif isinstance(member, Malformed):
                    parts.add_error(member.error)
                else:
                    self._note_notification(member)
            if not forwarded and not any(isinstance(each, Request) for each in message.members):
                return parts.join()  # no daemon will answer it
        elif isinstance(message, Request):
            self._pending.add(message, line + b"\n", forwarded=forwarded)
        else:
            return self._note_notification(message)
        return b""

    def connected(self) -> BridgeOutput:
        """Return what to tell a daemon that has just been connected."""
        self._own_requests.clear()
        self._changes_due = False
        hello_line = b""
        if self._greeting is not None:
            request = hello.encode_hello(self._greeting, 0)
            hello_line = self._request(ReplayRole.HELLO, request.method, request.params)
            if self._is_scoped:
                # Send no request before the daemon has confirmed that it narrows its answers.
                self.forwards = False
                return BridgeOutput(to_daemon=hello_line)
        output = self._initialize()
        return BridgeOutput(output.to_client, hello_line + output.to_daemon)

    def from_daemon(self, line: bytes) -> BridgeOutput:
        """Return what to pass on of a line of the daemon.

        Raise hello.ScopeRefused or ProtocolVersionMismatch if this connection must not be used.
        """
        if line.startswith(b"["):
            return self._batch_from_daemon(line)
        id_ = mcp_messages.response_id(line)
        if id_ is None:
            return self._notification(line)
        if id_ in self._own_requests:
            return self._own_response(*self._own_requests.pop(id_), parse(line))
        if entry := self._pending.remove(id_):
            self.answer_count += 1
            self._learn_from(entry, line)
            if entry.parts is not None:
                return BridgeOutput(entry.parts.add(line))
        return BridgeOutput(line + b"\n")

    def _batch_from_daemon(self, line: bytes) -> BridgeOutput:
        """Pass on a whole batch of answers."""
        batch = parse(line)
        for answer in batch.members if isinstance(batch, Batch) else ():
            if not isinstance(answer, Response | ErrorResponse) or answer.id is None:
                continue
            if entry := self._pending.remove(answer.id):
                self.answer_count += 1
                self._learn_from(entry, encode(answer))
        return BridgeOutput(line + b"\n")

    def connection_lost(self) -> bytes:
        """Return error answers for the requests that no other daemon may get."""
        self.forwards = False
        return self._pending.connection_lost()

    def fail_all(self, error: RootsdError) -> bytes:
        """Answer everything that the client waits for with `error`."""
        return self._pending.fail_all(error)

    def refuse_oversized_line(self, limit: int) -> bytes:
        """Return the answer to a line longer than `limit` bytes. Its id cannot be read."""
        text = f"the line is longer than {limit} bytes"
        return encode(ErrorResponse(None, INVALID_REQUEST, text))

    def _note_notification(self, message: object) -> bytes:
        """Note a notification. Return the answers to a batch if a cancellation completes it."""
        match message:
            case Notification(method) if method == mcp_messages.INITIALIZED:
                self._initialized = True
            case Notification(method, {"requestId": int() | str() as id_}) if (
                method == mcp_messages.CANCELLED
            ):
                entry = self._pending.remove(id_)
                if entry is not None and entry.parts is not None:
                    return entry.parts.add(b"")
            case _:
                pass
        return b""

    def _learn_from(self, entry: PendingRequest, line: bytes) -> None:
        """Update the session state from an answer to the client."""
        match entry.role:
            case ReplayRole.ROOTS:
                self._has_requested_roots = True
            case ReplayRole.INITIALIZE | ReplayRole.SUBSCRIBE | ReplayRole.UNSUBSCRIBE:
                answer = parse(line)
                if isinstance(answer, Response) and isinstance(entry.request.params, dict):
                    self._accepted(entry.role, entry.request.params, answer.result)
            case _:
                pass

    def _accepted(self, role: ReplayRole, params: dict[str, Any], result: object) -> None:
        uri = str(params.get("uri"))
        match role, result:
            case ReplayRole.INITIALIZE, {"protocolVersion": str() as version}:
                self._handshake = (params, version)
            case ReplayRole.SUBSCRIBE, _:
                self._subscribed.add(uri)
            case ReplayRole.UNSUBSCRIBE, _:
                self._subscribed.discard(uri)
                self._failed_subscriptions.discard(uri)
            case _:
                pass

    def _request(self, role: ReplayRole, method: str, params: Any, uri: str = "") -> bytes:  # noqa: ANN401
        self._own_id_count += 1
        id_ = f"rootsd-bridge-{self._own_id_count}"
        self._own_requests[id_] = (role, uri)
        return encode(Request(id_, method, params))

    def _initialize(self) -> BridgeOutput:
        if self._handshake is None:
            return self._resume()
        self.forwards = False
        line = self._request(ReplayRole.INITIALIZE, "initialize", self._handshake[0])
        return BridgeOutput(to_daemon=line)

    def _resume(self) -> BridgeOutput:
        """Subscribe again and repeat the open requests. The handshake is over, if there was
        one.
        """
        self.forwards = True
        lines = [self._subscribe(uri) for uri in sorted(self._subscribed)]
        if self._handshake and self._initialized:
            lines.insert(0, encode(Notification(mcp_messages.INITIALIZED)))
        if self._has_requested_roots:  # the daemon reports changes only after a request
            lines.append(self._request(ReplayRole.ROOTS, "roots/list", None))
        refused, repeated = self._pending.replay()
        lines.append(repeated)
        self._changes_due = True
        return BridgeOutput(refused + self._change_notifications(), b"".join(lines))

    def _subscribe(self, uri: str) -> bytes:
        return self._request(ReplayRole.SUBSCRIBE, "resources/subscribe", {"uri": uri}, uri)

    def _own_response(self, role: ReplayRole, uri: str, answer: object) -> BridgeOutput:
        match role, answer:
            case ReplayRole.HELLO, ErrorResponse() as error if self._is_scoped:
                raise hello.scope_refusal(error)
            case ReplayRole.HELLO, _ if self._is_scoped:
                if isinstance(answer, Response) and self._greeting is not None:
                    self._greeting = hello.resume_hello(self._greeting, answer.result)
                return self._initialize()
            case ReplayRole.INITIALIZE, _:
                self._require_same_version(answer)
                return self._resume()
            case ReplayRole.SUBSCRIBE, ErrorResponse():
                self._failed_subscriptions.add(uri)  # the root is gone, but it may come back
            case ReplayRole.SUBSCRIBE, _ if uri in self._failed_subscriptions:
                self._failed_subscriptions.discard(uri)
                if not self._changes_due:
                    return BridgeOutput(mcp_messages.encode_resource_updated(uri))
            case _:
                pass
        return BridgeOutput(self._change_notifications())

    def _require_same_version(self, answer: object) -> None:
        match answer:
            case Response(_, {"protocolVersion": version}) if (
                self._handshake and version == self._handshake[1]
            ):
                return
        raise ProtocolVersionMismatch(
            "the running daemon does not speak the MCP version that your client agreed on",
            "restart the MCP server in your client",
        )

    def _change_notifications(self) -> bytes:
        """Return notifications for everything that may have changed, once all subscriptions are
        back.
        """
        if not self._changes_due or self._own_requests:
            return b""
        self._changes_due = False
        lines = []
        if self._has_requested_roots:
            lines.append(encode(Notification(mcp_messages.ROOTS_CHANGED)))
        if self._handshake and self._initialized:
            lines.append(encode(Notification(mcp_messages.RESOURCES_CHANGED)))
            lines += map(mcp_messages.encode_resource_updated, sorted(self._subscribed))
        return b"".join(lines)

    def _notification(self, line: bytes) -> BridgeOutput:
        """Pass on a notification of the daemon, except for the second acknowledgment of a stream.

        An acknowledgment that the client already has becomes notifications of possible changes.
        """
        if self._failed_subscriptions and mcp_messages.RESOURCES_CHANGED.encode() in line:
            return BridgeOutput(
                line + b"\n", b"".join(map(self._subscribe, sorted(self._failed_subscriptions)))
            )
        if mcp_messages.ACKNOWLEDGED.encode() not in line[: mcp_messages.SCAN_BYTES]:
            return BridgeOutput(line + b"\n")
        notification = parse(line)
        stream = (
            mcp_messages.subscription_id(notification)
            if isinstance(notification, Notification)
            else None
        )
        first = None if stream is None else self._pending.open_stream(stream)
        if first is False and isinstance(notification, Notification):
            return BridgeOutput(b"".join(mcp_messages.change_notifications(notification)))
        return BridgeOutput(line + b"\n")
