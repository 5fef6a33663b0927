"""Remember what the client said, and replay it when a new daemon takes over. Pure.

Lines in, lines out, no I/O. When the daemon is lost, the next one is told the hello, the handshake
and the subscriptions under ids of our own, whose answers are kept from the client; what was request
and not answered is request again under the client's own id, as long as asking twice does no harm.
Then the client is told that everything may have changed, in the words of the era it speaks.
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
    """The daemon that runs now does not speak the revision that the client agreed on."""

    code = ErrorCode.UNREACHABLE


class BridgeOutput(NamedTuple):
    """What to pass on, both ways: whole lines."""

    to_client: bytes = b""
    to_daemon: bytes = b""


class BridgeSession:
    """Feed it each line of both sides, and what happened to the connection."""

    def __init__(self, greeting: hello.Hello | None = None) -> None:
        self.forwards = greeting is None
        """Whether what the client says may go to the daemon as it comes."""
        self.answer_count = 0
        """How many requests of the client were answered by a daemon."""
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
        """Whether no more should be taken while there is no daemon."""
        return self._pending.is_full

    def from_client(self, line: bytes, *, forwarded: bool) -> bytes:
        """Look at a line of the client, and return what to answer the client with at once.

        `forwarded`: a daemon has the line; else it goes to the next one.
        """
        message = parse(line)
        if isinstance(message, Batch):
            parts = BatchAnswers()
            for member in message.members:
                if isinstance(member, Request):
                    self._pending.add(member, encode(member), forwarded=forwarded, parts=parts)
                elif isinstance(member, Malformed):
                    parts.add_error(member.fault)
                else:
                    self._note_notification(member)
            if not forwarded and not any(isinstance(each, Request) for each in message.members):
                return parts.join()  # no daemon is request
        elif isinstance(message, Request):
            self._pending.add(message, line + b"\n", forwarded=forwarded)
        else:
            return self._note_notification(message)
        return b""

    def connected(self) -> BridgeOutput:
        """A daemon is connected: what to tell it first."""
        self._own_requests.clear()
        self._changes_due = False
        hello_line = b""
        if self._greeting is not None:
            request = hello.encode_hello(self._greeting, 0)
            hello_line = self._request(ReplayRole.HELLO, request.method, request.params)
            if self._is_scoped:
                # Nothing may be request before it is certain that the answers will be narrow.
                self.forwards = False
                return BridgeOutput(to_daemon=hello_line)
        output = self._initialize()
        return BridgeOutput(output.to_client, hello_line + output.to_daemon)

    def from_daemon(self, line: bytes) -> BridgeOutput:
        """Look at a line of the daemon, and say what goes to the client.

        Raises hello.ScopeRefused and RevisionLost, after which this connection is of no use.
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
        """Pass on the answers to a whole batch."""
        batch = parse(line)
        for answer in batch.members if isinstance(batch, Batch) else ():
            if not isinstance(answer, Response | ErrorResponse) or answer.id is None:
                continue
            if entry := self._pending.remove(answer.id):
                self.answer_count += 1
                self._learn_from(entry, encode(answer))
        return BridgeOutput(line + b"\n")

    def connection_lost(self) -> bytes:
        """The daemon is lost: the answers to what cannot be request again."""
        self.forwards = False
        return self._pending.connection_lost()

    def fail_all(self, error: RootsdError) -> bytes:
        """Answer all that the client waits for with `error`."""
        return self._pending.fail_all(error)

    def refuse_oversized_line(self, limit: int) -> bytes:
        """The answer to a line that is longer than `limit` bytes; its id cannot be read."""
        text = f"the line is longer than {limit} bytes"
        return encode(ErrorResponse(None, INVALID_REQUEST, text))

    def _note_notification(self, message: object) -> bytes:
        """Note what a notice says; return the answers to a batch if it completes them."""
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
        """Remember what an answer to the client has brought about."""
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
        request = self._request(ReplayRole.INITIALIZE, "initialize", self._handshake[0])
        return BridgeOutput(to_daemon=request)

    def _resume(self) -> BridgeOutput:
        """The daemon is where the last one was: subscribe, and ask what was not answered."""
        self.forwards = True
        lines = [self._subscribe(uri) for uri in sorted(self._subscribed)]
        if self._handshake and self._initialized:
            lines.insert(0, encode(Notification(mcp_messages.INITIALIZED)))
        if self._has_requested_roots:  # whoever has request is told of changes
            lines.append(self._request(ReplayRole.ROOTS, "roots/list", None))
        refused, again = self._pending.replay()
        lines.append(again)
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
                self._expect_same_revision(answer)
                return self._resume()
            case ReplayRole.SUBSCRIBE, ErrorResponse():
                self._failed_subscriptions.add(uri)  # the root is gone; it may come back
            case ReplayRole.SUBSCRIBE, _ if uri in self._failed_subscriptions:
                self._failed_subscriptions.discard(uri)
                if not self._changes_due:
                    return BridgeOutput(mcp_messages.encode_resource_updated(uri))
            case _:
                pass
        return BridgeOutput(self._change_notifications())

    def _expect_same_revision(self, answer: object) -> None:
        match answer:
            case Response(_, {"protocolVersion": version}) if (
                self._handshake and version == self._handshake[1]
            ):
                return
        raise ProtocolVersionMismatch(
            "the daemon that runs now does not speak the agreed revision of MCP",
            "restart the MCP server in your client",
        )

    def _change_notifications(self) -> bytes:
        """What may have changed meanwhile, once nothing can be missed any more."""
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
        """A notice of the daemon passes, but for the second opening of a stream."""
        if self._failed_subscriptions and mcp_messages.RESOURCES_CHANGED.encode() in line:
            return BridgeOutput(
                line + b"\n", b"".join(map(self._subscribe, sorted(self._failed_subscriptions)))
            )
        if mcp_messages.ACKNOWLEDGED.encode() not in line[: mcp_messages.SCAN_BYTES]:
            return BridgeOutput(line + b"\n")
        notice = parse(line)
        stream = mcp_messages.subscription_id(notice) if isinstance(notice, Notification) else None
        first = None if stream is None else self._pending.open_stream(stream)
        if first is False and isinstance(notice, Notification):
            return BridgeOutput(b"".join(mcp_messages.change_notifications(notice)))
        return BridgeOutput(line + b"\n")
