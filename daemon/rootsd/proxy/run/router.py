"""Decide for each message whether to forward, change, answer, or drop it. Pure.

A message comes with its bytes and goes on as the same bytes. Two kinds change: messages about
roots, and messages whose id the proxy has to map. A method returns None if nothing goes on.

The router keeps the client's own folders away from the server. A server can ask for roots in two
ways: by a request, or by a result that asks for input (MCP 2026-07-28). The proxy answers both
itself. A client might still find such a question in a line where the proxy finds none. So the
router also checks each line of the client:

* A response goes on only if the proxy forwarded the request, and only if it contains no roots.
* Answers about roots are removed from every request (`inputResponses`).
* A line that is not strict JSON-RPC never goes on, from either side. Many servers write lines that
  are nearly strict, and whose meaning is plain to both SDKs. Such a line goes on after it was
  written anew (`parse_repaired`), and an answer gets the id that the client gave.

The client's lines are always read whole. Long lines of the server may pass unread, but they cannot
leak a folder: they only lead to another line of the client.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial

from rootsd.core.errors import RootsdError
from rootsd.proxy.replay import OpenRequest, RepeatPolicy, Replay
from rootsd.proxy.run import codex, input_required
from rootsd.proxy.run.call_watch import CallOutcome, CallWatch, outcome_of
from rootsd.proxy.run.input_required import (
    MAX_INPUT_RETRIES,
    InputRetries,
    InputRetry,
    RootsAnswerer,
    RootsQuestion,
    StateSigner,
)
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.own_ids import OwnIds, is_own
from rootsd.proxy.run.readiness import ReadinessGate
from rootsd.proxy.run.roots import RootsProvider
from rootsd.wire import jsonrpc, mcp_messages
from rootsd.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ErrorResponse,
    Id,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    encode,
)

SERVER_POLICY = RepeatPolicy(
    frozenset(
        {
            "initialize", "ping", "prompts/list", "resources/list", "resources/templates/list",
            "server/discover", "subscriptions/listen", "tools/list",
        }
    )
)  # fmt: skip
"""The requests that change nothing at any server, and whose failure makes clients give up.

A server is a third party's program, so this list is shorter than the bridge's, and no tool call is
repeated.
"""
_OWN_ROOTS = ("params", "capabilities", "roots")
# Names from the Language Server Protocol, and the one that MCP itself uses in `roots/list`.
_FOLDERS_OF_CLIENTS = frozenset(
    {"roots", "rootpath", "rooturi", "workspacefolder", "workspacefolders", "workspaceroot"}
)
_MAX_TEXT = 200
"""How many bytes of text of a server to show."""


class MessageRouter:
    """The rules for the messages between one client and its current server."""

    def __init__(
        self, provider: RootsProvider, gate: ReadinessGate, out: Outbox, signer: StateSigner
    ) -> None:
        self.replay = Replay(SERVER_POLICY)
        self.has_sent_roots = False
        """Whether the current server ever got roots."""
        self._provider = provider
        self._gate = gate
        self._calls = CallWatch(gate)
        self._out = out
        self._signer = signer
        self._retries = InputRetries()
        self._server_requests: Counter[Id] = Counter()  # without a response yet
        self._stale_ids: set[Id] = set()  # requests of servers that are gone
        self._server_ids: dict[Id, Id] = {}  # the server's id for each mapped id
        self._asking_ids = OwnIds(signer.tag, "asks")
        self._retry_ids = OwnIds(signer.tag, "retry")
        self._client_has_roots = False
        self._is_codex = False
        self._server_wants_state = False
        self._initialize: OpenRequest | None = None
        self._awaits_roots: Request | None = None
        self._text = b""  # what the server printed since its last message
        self._echoes_ids = True  # until the server answers 1 with "1"

    @property
    def printed_text(self) -> str:
        """The label of text that the server printed after its last message; mostly empty.

        If it ends then, the text is its reason.
        """
        return _shown(self._text) if self._text else ""

    @property
    def may_ask_client(self) -> bool:
        """Whether the client has roots, and answers questions about them by now."""
        return self._client_has_roots and self.replay.initialized

    @property
    def awaits_roots(self) -> bool:
        """Whether a request waits for roots. Later messages of the client wait behind it."""
        return self._awaits_roots is not None

    @property
    def pending_responses(self) -> int:
        """How many responses the client waits for, without those that end a stream."""
        return self.replay.waiting_count

    def in_flight(self) -> Iterator[Request]:
        """Yield the requests that would fail if the server were restarted now."""
        for entry in self.replay.open_requests:
            if not self.replay.may_repeat(entry):
                yield entry.request

    def cancels_open(self, notification: Notification) -> bool:
        """Whether a notification cancels a request that the server has."""
        id_ = mcp_messages.cancelled_id(notification)
        return id_ is not None and self.replay.find(id_) is not None

    @property
    def is_initializing(self) -> bool:
        """Whether the server has not answered `initialize` yet.

        Until then it accepts nothing else and cannot be expected to ask for roots.
        """
        begun = self._initialize
        return begun is not None and self.replay.find(begun.request.id) is begun.request

    def from_client(self, line: bytes, message: Message | Malformed, now: float) -> bytes | None:
        """Return the line that goes to the server, or None."""
        match message:
            case Request():
                return self._client_request(line, message)
            case Notification():
                return self._client_notification(line, message, now)
            case Response() | ErrorResponse():
                return self._client_response(line, message)
            case Malformed():
                self._malformed_from_client(message)
                return None

    def from_server(self, line: bytes, message: Message | Malformed, now: float) -> bytes | None:
        """Return the line that goes to the client, or None."""
        if not isinstance(message, Malformed):
            self._text = b""
        match message:
            case Response() | ErrorResponse():
                return self._server_response(line, message)
            case Request(id_, "roots/list"):
                # A question that the gate waits for is about the change, whatever is in flight.
                if self._calls.in_flight and not self._gate.expects_request:
                    self._calls.asked()
                else:
                    self._gate.roots_requested(now)
                self._provider.when_known(partial(self._list_roots, id_))
                return None
            case Request(id_):
                return self._server_request(line, id_)
            case Notification() if self.replay.is_repeated_acknowledgment(message):
                return (
                    b"\n".join(
                        line.rstrip() for line in mcp_messages.change_notifications(message)
                    )
                    or None
                )
            case Notification("roots/list"):
                self._report_dropped("the server", "a request without an id")
                return None
            case Notification():
                return line
            case Malformed():
                self._malformed_from_server(line, message)
                return None

    @property
    def ignores_all_responses(self) -> bool:
        """Whether the proxy needs to read no response that may come."""
        learns = self.replay.OBSERVED_METHODS
        return (
            self._echoes_ids
            and not self._retries
            and all(each.request.method not in learns for each in self.replay.open_requests)
        )

    def may_stream(self, id_: Id, *, is_complete: bool) -> bool:
        """Whether the response to a request may be forwarded while it arrives.

        `is_complete` says that the result asks for no input.
        """
        request = self.replay.find(id_)
        if request is None or request.method in self.replay.OBSERVED_METHODS:
            return False
        return not self._retries.has_alias(id_) and (is_complete or id_ not in self._retries)

    def close_unread(self, id_: Id) -> bool:
        """Note a response that was not parsed. Return whether its line may go on unchanged."""
        if self._retries.has_alias(id_):
            return False
        request = self.replay.find(id_)
        if request is None or request.method in self.replay.OBSERVED_METHODS:
            return False
        self._retries.take(id_)
        self.replay.close(id_)
        self._calls.answered(id_, CallOutcome.DONE)
        return True

    def server_lost(self, error: RootsdError) -> None:
        """Note that another server replaces the current one.

        Answer the requests that only the old server could answer. Tell the client that it need not
        answer the old server's requests.
        """
        for entry in self.replay.close_unrepeatable():
            self._answer_with_error(entry.request.id, error)
        for id_ in self._server_requests:
            self._out.to_client += encode(Notification(mcp_messages.CANCELLED, {"requestId": id_}))
        self._stale_ids.update(self._server_requests)
        self._server_requests.clear()
        self._server_ids.clear()
        self._retries.clear()
        self._calls.server_lost()
        self._provider.drop_requests()
        self._text = b""
        self._awaits_roots = None
        self.has_sent_roots = False

    def fail_all(self, error: RootsdError) -> None:
        """Answer all open requests of the client with `error`: no server follows."""
        for entry in self.replay.open_requests:
            self.refuse(entry.request.id, error)

    def refuse_unsent(self, message: Message | Malformed, error: RootsdError) -> None:
        """Answer a request that no server got."""
        if isinstance(message, Request):
            self.refuse(message.id, error)

    # The client's messages

    def _client_request(self, line: bytes, request: Request) -> bytes | None:
        if not input_required.has_valid_responses(request):
            reason = "params.inputResponses must be an object"
            self._out.to_client += encode(ErrorResponse(request.id, INVALID_PARAMS, reason))
            return None
        line = input_required.strip_roots_responses(line.decode(), request).encode()
        if input_required.carries_protocol_version(request) and request.method != "initialize":
            return self._request_2026(line, request)
        if request.method == "initialize":
            line = self._with_capability(_without_folders(line, request), request)
        if self._is_codex and not self._server_wants_state:
            line = codex.without_state(line.decode(), request).encode()
        entry = self.replay.request_sent(request, line + b"\n")
        self._calls.sent(request)
        if request.method == "initialize":
            self._initialize = entry
        return line

    def _with_capability(self, line: bytes, request: Request) -> bytes:
        self._is_codex = codex.is_codex(request)
        match request.params:
            case {"capabilities": {"roots": dict() as declared}}:
                self._client_has_roots = True
                if declared.get("listChanged") is True and len(declared) == 1:
                    return line
            case _:
                self._client_has_roots = False
        match request.params:
            case {"capabilities": dict()}:
                return jsonrpc.set_member(
                    line.decode(), _OWN_ROOTS, '{"listChanged": true}'
                ).encode()
            case _:
                return line  # the server refuses it

    def _request_2026(self, line: bytes, request: Request) -> bytes | None:
        text = input_required.with_roots_capability(line.decode(), request)
        line = text.encode()
        self.replay.request_sent(request, line + b"\n")
        wrapped = input_required.unwrap_state(request, self._signer)
        note = self._calls.sent if wrapped is None else self._calls.sent_again
        note(request)
        if input_required.may_require_input(request):
            theirs = self._provider.narrows_by_client and input_required.declares_roots(request)
            retry = InputRetry(
                request, text, RootsAnswerer.CLIENT if theirs else RootsAnswerer.PROXY
            )
            self._retries.sent(retry, request.id)
            if wrapped is not None:
                self._awaits_roots = request
                if wrapped.answered_by is RootsAnswerer.CLIENT:
                    self._provider.set_client_roots(
                        input_required.client_roots_response(request, wrapped.question)
                    )
                send = partial(self._send_with_roots, text, request, wrapped.question)
                self._provider.when_known(send)
                return None
        return line

    def _send_with_roots(
        self, text: str, request: Request, question: RootsQuestion, now: float
    ) -> None:
        del now
        if self._awaits_roots is not request:
            return  # it was cancelled in the meantime
        answers = {key: self._provider.result() for key in question.keys}
        self._send(input_required.with_responses(text, request, question, answers))
        self._awaits_roots = None
        self.has_sent_roots = True

    def _client_notification(
        self, line: bytes, notification: Notification, now: float
    ) -> bytes | None:
        match notification:
            case Notification(mcp_messages.INITIALIZED):
                self.replay.initialized = True
                self._gate.handshake_done(now)
                if self._client_has_roots:
                    self._provider.ask_client(now)
            case Notification(mcp_messages.ROOTS_CHANGED):
                if self._client_has_roots:
                    self._provider.client.changed(now)
                return None
            case _:
                pass
        if (id_ := mcp_messages.cancelled_id(notification)) is not None:
            return self._cancel(line, id_)
        return line

    def _cancel(self, line: bytes, id_: Id) -> bytes | None:
        self.replay.close(id_)
        self._calls.dropped(id_)
        if self._awaits_roots is not None and self._awaits_roots.id == id_:
            self._awaits_roots = None  # the server never gets it
            self._retries.take(id_)
            return None
        at_server = self._retries.cancel(id_)
        if at_server is None or at_server == id_:
            return None if at_server is None else line
        way = ("params", "requestId")
        return jsonrpc.set_member(line.decode(), way, json.dumps(at_server)).encode()

    def _client_response(self, line: bytes, answer: Response | ErrorResponse) -> bytes | None:
        if self._provider.take_client_response(answer):
            return None
        id_ = self._take_server_id(answer.id)
        if id_ is None:
            if answer.id not in self._stale_ids:
                self._report_dropped(
                    "the client", "a response to a request that rootsd did not forward"
                )
            self._stale_ids.discard(answer.id)
            return None
        if isinstance(answer, Response) and input_required.looks_like_roots_result(answer.result):
            self._report_dropped("the client", "roots that were not requested")
            self._fail_server_request(
                id_, "the client answered with roots that were not requested"
            )
            return None
        return line if id_ == answer.id else _with_id(line, id_)

    def _take_server_id(self, id_: Id | None) -> Id | None:
        """Return the server's id of the request that the client answers with `id_`."""
        if id_ is None or id_ not in self._server_requests:
            return None
        self._server_requests[id_] -= 1
        if not self._server_requests[id_]:
            del self._server_requests[id_]
        return self._server_ids.pop(id_, id_)

    def _fail_server_request(self, id_: Id, reason: str) -> None:
        self._out.to_server += encode(ErrorResponse(id_, INTERNAL_ERROR, reason))

    # Malformed lines

    def _malformed_from_client(self, malformed: Malformed) -> None:
        fault = malformed.error
        if malformed.is_call and fault.id is not None and self._out.client_reads:
            self._out.to_client += encode(fault)
            return
        self._report_dropped("the client", fault.message)
        if not malformed.is_call and (id_ := self._take_server_id(fault.id)) is not None:
            self._fail_server_request(id_, f"the client's answer is refused: {fault.message}")

    def _malformed_from_server(self, line: bytes, malformed: Malformed) -> None:
        fault = malformed.error
        if malformed.is_call and fault.id is not None and not self._out.server_lags:
            self._out.to_server += encode(fault)
            return
        is_text = not malformed.is_call and not mcp_messages.looks_like_response(line)
        self._report_dropped(
            "the server", f"{fault.message}: {_shown(line)}" if is_text else fault.message
        )
        if is_text and len(self._text) < _MAX_TEXT:
            self._text += b" " * bool(self._text) + line.strip()[:_MAX_TEXT]
        if malformed.is_call:
            return
        reason = f"the server's answer is refused: {fault.message}"
        if fault.id is None:
            self.fail_unreadable(line, reason)
        else:
            self._fail_response(fault.id, reason)

    def fail_unreadable(self, line: bytes, reason: str) -> None:
        """Answer the client with an error if a line was a response that cannot go on.

        `line` may lack its middle.
        """
        id_ = mcp_messages.quick_response_id(line)
        if id_ is not None:
            self._fail_response(id_, reason)
        elif mcp_messages.looks_like_response(line):
            self._initialize = None  # perhaps this one, which must not hold the queue for ever
            waiting = [each for each in self.replay.open_requests if not each.is_stream]
            if len(waiting) == 1:  # otherwise, nobody can tell which one it answered
                id_ = waiting[0].request.id
                self._fail_response(self._retries.cancel(id_) or id_, reason)

    def _fail_response(self, id_: Id, reason: str) -> None:
        id_ = self.replay.answered_by(id_)
        retry = self._retries.take(id_)
        if retry is not None:
            id_ = retry.request.id
        if self.replay.find(id_) is not None:
            self.refuse(id_, RootsdError(reason, "restart the MCP server in your client"))

    def _report_dropped(self, side: str, what: str) -> None:
        self._out.dropped_lines.append(f"a line of {side} was dropped: {what}")

    # The server's messages

    def _list_roots(self, id_: Id, now: float) -> None:
        result = self._provider.result()
        self._out.to_server += encode(Response(id_, result))
        self._gate.roots_sent(now, len(result["roots"]))
        self.has_sent_roots = True

    def _server_request(self, line: bytes, id_: Id) -> bytes:
        if id_ not in self._stale_ids and not is_own(id_):
            self._server_requests[id_] += 1
            return line
        # The client may still answer this id for an earlier server, or for the proxy itself.
        name = self._asking_ids.new()
        self._server_ids[name] = id_
        self._server_requests[name] += 1
        return _with_id(line, name)

    def _server_response(self, line: bytes, answer: Response | ErrorResponse) -> bytes | None:
        if answer.id is None:
            self._initialize = None  # the server could not read some line, perhaps this one
            return line
        at_server = self._open_id(answer.id)
        if at_server != answer.id:
            line = _with_id(line, at_server)
        retry = self._retries.take(at_server)
        result = answer.result if isinstance(answer, Response) else None
        question = input_required.find_roots_question(result)
        if input_required.is_malformed_question(result) or (
            question is not None and retry is None
        ):
            self._refuse_roots_question(at_server, retry)
            return None
        if retry is None:
            line = self._with_codex_capability(line, at_server, result)
            self._finish(at_server, answer)
            return line
        id_ = retry.request.id
        if question is not None:
            self._calls.asked(id_)
        is_ours = retry.answered_by is RootsAnswerer.PROXY
        if question is not None and is_ours and input_required.asks_only_for_roots(result):
            if retry.number < MAX_INPUT_RETRIES:
                self._retries.defer(retry)
                self._provider.when_known(partial(self._send_retry, retry, question))
            else:
                error = RootsdError("the server requests roots again and again", "rootsd sessions")
                self.refuse(id_, error)
            return None
        self._finish(id_, answer)
        if id_ != at_server:
            line = _with_id(line, id_)
        if question is None:
            return line
        change = (
            input_required.forward_roots_question
            if retry.answered_by is RootsAnswerer.CLIENT
            else input_required.hide_roots_question
        )
        return change(line.decode(), question, self._signer).encode()

    def _with_codex_capability(self, line: bytes, id_: Id, result: object) -> bytes:
        """Return the answer to a request. Codex learns that it may say where it works."""
        request = self.replay.find(id_)
        if not self._is_codex or request is None or request.method != "initialize":
            return line
        self._server_wants_state = codex.wants_state(result)
        return codex.advertise(line.decode(), result).encode()

    def _open_id(self, id_: Id) -> Id:
        """Return the id of the request that the server answers with `id_`, as it was sent."""
        known = self.replay.answered_by(id_)
        if known != id_:
            self._echoes_ids = False
        elif self.replay.find(id_) is None and id_ not in self._retries:
            self._initialize = None  # perhaps the server means this one
        return known

    def _refuse_roots_question(self, id_: Id, retry: InputRetry | None) -> None:
        self._report_dropped(
            "the server", "it requests roots in a result that must not request input"
        )
        if retry is not None:
            id_ = retry.request.id
        if self.replay.find(id_) is not None:
            reason = "the server requests roots in a result that must not request input"
            self.refuse(id_, RootsdError(reason, "rootsd sessions"))

    def _send_retry(self, retry: InputRetry, question: RootsQuestion, now: float) -> None:
        del now
        if not self._retries.is_deferred(retry):
            return  # it was cancelled in the meantime
        id_ = self._retry_ids.new()
        answers = {key: self._provider.result() for key in question.keys}
        self._retries.sent(retry._replace(number=retry.number + 1), id_)
        self._send(input_required.make_retry(retry.text, retry.request, id_, question, answers))
        self.has_sent_roots = True

    def _finish(self, id_: Id, answer: Response | ErrorResponse) -> None:
        entry = self.replay.close(id_)
        self._calls.answered(id_, outcome_of(answer))
        if entry is not None and isinstance(answer, Response):
            self.replay.learn(entry, answer.result)

    def refuse(self, id_: Id, error: RootsdError) -> None:
        """Answer an open request of the client with `error`."""
        self.replay.close(id_)
        self._calls.dropped(id_)
        self._answer_with_error(id_, error)

    def _answer_with_error(self, id_: Id, error: RootsdError) -> None:
        self._out.to_client += mcp_messages.encode_error(id_, error)

    def _send(self, text: str) -> None:
        self._out.to_server += text.encode() + b"\n"


def _without_folders(line: bytes, request: Request) -> bytes:
    """Return an `initialize` without the client's folders, which some clients put into it."""
    ways = list(_ways_to_folders(request.params, ("params",)))
    text = line.decode() if ways else ""
    for way in ways:
        text = jsonrpc.remove_member(text, way)
    return text.encode() if ways else line


def _ways_to_folders(value: object, way: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, each in value.items() if isinstance(value, dict) else ():
        inside = (*way, key)
        if inside == _OWN_ROOTS:
            continue
        if key.casefold().replace("_", "") in _FOLDERS_OF_CLIENTS:
            yield inside
        else:
            yield from _ways_to_folders(each, inside)


def _shown(text: bytes) -> str:
    from rootsd.core.labels import safe_label  # noqa: PLC0415 - only needed for a message

    return safe_label(text[:_MAX_TEXT], limit=_MAX_TEXT)


def _with_id(line: bytes, id_: Id) -> bytes:
    return jsonrpc.set_member(line.decode(), ("id",), json.dumps(id_)).encode()
