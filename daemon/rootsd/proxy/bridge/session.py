"""Keep the client's session when a new daemon takes over. Pure.

The session takes lines and returns lines. It does no I/O. After a loss, it restores the state at
the next daemon in this order: the hello, the handshake, the subscriptions, and the requests
without an answer (`rootsd.proxy.replay`). The first three go under ids of our own, and the client
does not see the answers. At the end, the client gets the notifications that everything may have
changed, in the form of the protocol version it speaks.
"""

from __future__ import annotations

from typing import NamedTuple

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.core.paths import text_of
from rootsd.proxy.bridge.batch_answers import BatchAnswers
from rootsd.proxy.bridge.held_calls import TOO_LONG, HeldCalls, Released
from rootsd.proxy.client_roots import ROOTS_LIST, Folders, folders_in
from rootsd.proxy.replay import OpenRequest, RepeatPolicy, Replay
from rootsd.wire import hello, jsonrpc, mcp_messages
from rootsd.wire.jsonrpc import (
    INVALID_REQUEST,
    MAX_REQUEST_BYTES,
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

DAEMON_POLICY = RepeatPolicy(
    methods=frozenset(
        {
            "completion/complete", "initialize", "logging/setLevel", "ping", "prompts/get",
            "prompts/list", "resources/list", "resources/read", "resources/subscribe",
            "resources/templates/list", "resources/unsubscribe", "roots/list", "server/discover",
            "subscriptions/listen", "tools/list",
        }
    ),
    # request_root is safe: a folder that already waits for a decision is not added again.
    tools=frozenset({"list_roots", "request_root", "resolve_root"}),
    max_sends=3,
    max_line_bytes=MAX_REQUEST_BYTES + 1,
    max_held_bytes=1 << 20,
    max_held=256,
)  # fmt: skip
"""The requests that each daemon answers safely, even if another daemon had them before."""
_PLACE = "rootsd-place"
"""The key of the question about the place of the session, and the state that comes back with it.
The daemon asks no other questions.
"""


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
        self._replay = Replay(DAEMON_POLICY)
        self._batches: dict[Id, BatchAnswers] = {}
        self._own_requests: dict[Id, Request] = {}
        self._own_id_count = 0
        self._has_requested_roots = False
        self._failed_subscriptions: dict[str, None] = {}
        self._changes_due = False
        self._folders: Folders = ()  # where the session works; () where it began
        self._must_tell_again = False  # a folder was in no root, and may be approved since
        self.has_client_roots = False
        """Whether the client declares roots in its handshake."""
        self._calls = HeldCalls()

    @property
    def awaits_answers(self) -> bool:
        """Whether the client waits for an answer."""
        return bool(self._replay.waiting_count or self._calls)

    @property
    def holds_calls(self) -> bool:
        """Whether calls wait until the client has said where it works."""
        return bool(self._calls)

    @property
    def asks_client(self) -> bool:
        """Whether the client is asked where it works: it has roots, and MCP before 2026-07-28."""
        return self.has_client_roots and self._replay.initialized

    @property
    def deadline(self) -> float:
        """When to call `tick`."""
        return self._calls.deadline

    def tick(self, now: float) -> tuple[BridgeOutput, bytes]:
        """Stop waiting for a client that does not answer. Return as `ask_place` does."""
        return self._released(self._calls.tick(now))

    @property
    def is_full(self) -> bool:
        """Whether to stop reading from the client until a daemon is there."""
        return self._replay.is_full

    def from_client(self, line: bytes, *, forwarded: bool) -> bytes:
        """Note a line of the client. Return the lines that answer it at once.

        `forwarded` says whether a daemon already has the line. If not, the next daemon gets it.
        """
        message = parse(line)
        if isinstance(message, Batch):
            parts = BatchAnswers()
            for member in message.members:
                if isinstance(member, Request):
                    entry = self._add(member, encode(member), forwarded=forwarded)
                    if entry.request is member:
                        parts.expect()
                        self._batches[member.id] = parts
                elif isinstance(member, Malformed):
                    parts.add_error(member.error)
                else:
                    self._note_notification(member)
            if not forwarded and not any(isinstance(each, Request) for each in message.members):
                return parts.join()  # no daemon will answer it
        elif isinstance(message, Request):
            self._add(message, line + b"\n", forwarded=forwarded)
            if message.method == "initialize":
                match message.params:
                    case {"capabilities": {"roots": dict()}}:
                        self.has_client_roots = True
                    case _:
                        self.has_client_roots = False
        else:
            return self._note_notification(message)
        return b""

    def ask_place(self, line: bytes, now: float) -> tuple[BridgeOutput, bytes]:
        """Return what to say at once about a line of the client, and the lines that go on or b"".

        A client of MCP 2026-07-28 with roots is asked for them by the first answer to a call. It
        sends the call again, and the daemon learns where the session works before it answers.
        Calls of an older client are held until it has answered a question that came after them,
        except for calls in a batch.
        """
        message = parse(line)
        if isinstance(message, Batch):
            return self._ask_place_of_batch(message, line, now)
        if (taken := self._calls.take(message, now)) is not None:
            return self._released(taken)
        match message:
            case Notification(mcp_messages.INITIALIZED):
                self._replay.initialized = True  # a call may be in the same chunk
            case Request(_, "tools/call") if self.asks_client:
                return self._released(self._calls.hold(message, line + b"\n", now))
            case Request(_, "tools/call"):
                return self._ask_place_2026(line, message)
            case _:
                pass
        return BridgeOutput(), line + b"\n"

    def _ask_place_of_batch(
        self, batch: Batch, line: bytes, now: float
    ) -> tuple[BridgeOutput, bytes]:
        """Use what a batch says about held calls. It goes on whole: the daemon ignores that."""
        taken = [self._calls.take(member, now) for member in batch.members]
        steps = [self._released(each) for each in taken if each is not None]
        said = BridgeOutput(
            b"".join(output.to_client for output, _ in steps),
            b"".join(output.to_daemon for output, _ in steps),
        )
        return said, b"".join(lines for _, lines in steps) + line + b"\n"

    def _released(self, released: Released) -> tuple[BridgeOutput, bytes]:
        move = b"" if released.folders is None else self._move(released.folders)
        return BridgeOutput(released.to_client, move), released.lines

    def _ask_place_2026(self, line: bytes, call: Request) -> tuple[BridgeOutput, bytes]:
        match call.params:
            case {"requestState": state, "inputResponses": answers} if state == _PLACE:
                text = jsonrpc.remove_member(line.decode(), ("params", "inputResponses"))
                line = jsonrpc.remove_member(text, ("params", "requestState")).encode()
                told = answers.get(_PLACE) if isinstance(answers, dict) else None
                return BridgeOutput(to_daemon=self._move(folders_in(told))), line + b"\n"
            case {"requestState": _} | {"inputResponses": _}:
                return BridgeOutput(), line + b"\n"
            case {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"roots": dict()}}}:
                asked = {"resultType": "input_required", "requestState": _PLACE}
                wanted = {"inputRequests": {_PLACE: {"method": ROOTS_LIST}}}
                answer = encode(Response(call.id, {**asked, **wanted}))
                return BridgeOutput(answer), b""
            case _:
                return BridgeOutput(), line + b"\n"

    def _move(self, folders: Folders) -> bytes:
        """Return the request that tells the daemon of another place, or b""."""
        if folders == self._folders and not self._must_tell_again:
            return b""
        self._folders, self._must_tell_again = folders, False
        return self._tell_place(folders) if self.forwards else b""  # `_resume` tells it

    def _tell_place(self, folders: Folders) -> bytes:
        """Return the request about the first of the folders, as many as the daemon reads in one
        line, or b"" if that is none of them.
        """
        texts, id_ = tuple(map(text_of, folders)), self._next_id()
        while True:
            request = hello.encode_move(hello.WorkFolders(texts), id_)
            size = len(encode(request)) - 1
            if size <= MAX_REQUEST_BYTES:
                return self._own(request)
            texts = texts[: len(texts) * MAX_REQUEST_BYTES // size]
            if not texts:
                return b""

    def _add(self, request: Request, line: bytes, *, forwarded: bool) -> OpenRequest:
        add = self._replay.request_sent if forwarded else self._replay.request_queued
        return add(request, line)

    def connected(self) -> BridgeOutput:
        """Return what to tell a daemon that has just been connected."""
        self._own_requests.clear()
        self._changes_due = False
        hello_line = b""
        if self._greeting is not None:
            hello_line = self._own(hello.encode_hello(self._greeting, self._next_id()))
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
            return self._own_response(self._own_requests.pop(id_), parse(line))
        if entry := self._replay.close(id_):
            self.answer_count += 1
            self._learn_from(entry, line)
        return BridgeOutput(self._to_client(id_, line + b"\n"))

    def _batch_from_daemon(self, line: bytes) -> BridgeOutput:
        """Pass on a whole batch of answers."""
        batch = parse(line)
        for answer in batch.members if isinstance(batch, Batch) else ():
            if not isinstance(answer, Response | ErrorResponse) or answer.id is None:
                continue
            if entry := self._replay.close(answer.id):
                self._batches.pop(answer.id, None)
                self.answer_count += 1
                self._learn_from(entry, encode(answer))
        return BridgeOutput(line + b"\n")

    def connection_lost(self) -> bytes:
        """Return error answers for the requests that no other daemon may get."""
        self.forwards = False
        error = DaemonUnreachable("rootsd was restarted before it answered", "ask again")
        return self._refuse(self._replay.close_unrepeatable(), error)

    def fail_all(self, error: RootsdError) -> bytes:
        """Answer everything that the client waits for with `error`, except for open streams."""
        waiting = [entry for entry in self._replay.open_requests if not entry.is_stream]
        for entry in waiting:
            self._replay.close(entry.request.id)
        return self._refuse(waiting, error)

    def _refuse(self, closed: list[OpenRequest], error: RootsdError) -> bytes:
        ids = [entry.request.id for entry in closed]
        return b"".join(self._to_client(id_, mcp_messages.encode_error(id_, error)) for id_ in ids)

    def _to_client(self, id_: Id, answer: bytes) -> bytes:
        """Return what the client gets now: the answer, or the batch that it completes, or b""."""
        parts = self._batches.pop(id_, None)
        return answer if parts is None else parts.add(answer)

    def refuse_oversized_line(self, limit: int) -> bytes:
        """Return the answer to a line longer than `limit` bytes. Its id cannot be read."""
        text = f"the line is longer than {limit} bytes"
        return encode(ErrorResponse(None, INVALID_REQUEST, text))

    def _note_notification(self, message: object) -> bytes:
        """Note a notification. Return the answers to a batch if a cancellation completes it."""
        match message:
            case Notification(method) if method == mcp_messages.INITIALIZED:
                self._replay.initialized = True
            case Notification(method, {"requestId": int() | str() as id_}) if (
                method == mcp_messages.CANCELLED
            ):
                self._replay.close(id_)
                return self._to_client(id_, b"")
            case _:
                pass
        return b""

    def _learn_from(self, entry: OpenRequest, line: bytes) -> None:
        """Update the session state from an answer to the client."""
        request = entry.request
        if request.method == ROOTS_LIST:
            self._has_requested_roots = True
        elif request.method in Replay.OBSERVED_METHODS:
            answer = parse(line)
            if isinstance(answer, Response):
                self._replay.learn(entry, answer.result)
                for uri in self._failed_subscriptions.keys() - self._replay.subscribed:
                    del self._failed_subscriptions[uri]

    def _next_id(self) -> str:
        self._own_id_count += 1
        return f"rootsd-bridge-{self._own_id_count}"

    def _own(self, request: Request) -> bytes:
        """Return the line of a request of our own. The client does not see the answer."""
        self._own_requests[request.id] = request
        return encode(request)

    def _initialize(self) -> BridgeOutput:
        id_ = self._next_id()
        line = self._replay.handshake(id_)
        if line is None:
            return self._resume()
        self.forwards = False
        self._own_requests[id_] = Request(id_, "initialize")
        return BridgeOutput(to_daemon=line)

    def _resume(self) -> BridgeOutput:
        """Subscribe again and repeat the open requests. The handshake is over, if there was
        one.
        """
        self.forwards = True
        lines = [
            self._own(message) if isinstance(message, Request) else encode(message)
            for message in self._replay.after_handshake(iter(self._next_id, ""))
        ]
        if self._has_requested_roots:  # the daemon reports changes only after a request
            lines.append(self._own(Request(self._next_id(), ROOTS_LIST)))
        self._must_tell_again = False
        if self._folders:
            lines.append(self._tell_place(self._folders))
        refused = self._refuse(self._replay.close_unkept(), TOO_LONG)
        lines.append(self._replay.repeat())
        self._changes_due = True
        return BridgeOutput(refused + self._change_notifications(), b"".join(lines))

    def _subscribe(self, uri: str) -> bytes:
        return self._own(Request(self._next_id(), "resources/subscribe", {"uri": uri}))

    def _own_response(self, request: Request, answer: object) -> BridgeOutput:
        match request, answer:
            case Request(_, hello.HELLO_METHOD), ErrorResponse() as error if self._is_scoped:
                raise hello.scope_refusal(error)
            case Request(_, hello.HELLO_METHOD), _ if self._is_scoped:
                if isinstance(answer, Response) and self._greeting is not None:
                    self._greeting = hello.resume_hello(self._greeting, answer.result)
                return self._initialize()
            case Request(_, "initialize"), _:
                self._require_same_version(answer)
                return self._resume()
            case Request(_, "resources/subscribe", {"uri": str() as uri}), ErrorResponse():
                self._failed_subscriptions[uri] = None  # the root is gone, but it may come back
            case Request(_, "resources/subscribe", {"uri": str() as uri}), _ if (
                uri in self._failed_subscriptions
            ):
                del self._failed_subscriptions[uri]
                if not self._changes_due:
                    return BridgeOutput(mcp_messages.encode_resource_updated(uri))
            case Request(_, hello.MOVE_METHOD), Response() | ErrorResponse() if not _is_inside(
                hello.read_move(answer)
            ):
                self._must_tell_again = True
            case _:
                pass
        return BridgeOutput(self._change_notifications())

    def _require_same_version(self, answer: object) -> None:
        match answer:
            case Response(_, {"protocolVersion": version}) if (
                version == self._replay.protocol_version
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
        roots = encode(Notification(mcp_messages.ROOTS_CHANGED))
        return b"".join((roots * self._has_requested_roots, *self._replay.change_notifications()))

    def _notification(self, line: bytes) -> BridgeOutput:
        """Pass on a notification of the daemon, except for the second acknowledgment of a stream.

        An acknowledgment that the client already has becomes notifications of possible changes.
        """
        if self._failed_subscriptions and mcp_messages.RESOURCES_CHANGED.encode() in line:
            return BridgeOutput(
                line + b"\n", b"".join(map(self._subscribe, self._failed_subscriptions))
            )
        if mcp_messages.ACKNOWLEDGED.encode() not in line[: mcp_messages.SCAN_BYTES]:
            return BridgeOutput(line + b"\n")
        message = parse(line)
        if isinstance(message, Notification) and self._replay.is_repeated_acknowledgment(message):
            return BridgeOutput(b"".join(mcp_messages.change_notifications(message)))
        return BridgeOutput(line + b"\n")


def _is_inside(moved: hello.MoveResult | RootsdError) -> bool:
    """Return whether all folders of a move are in roots."""
    return isinstance(moved, hello.MoveResult) and not moved.outside
