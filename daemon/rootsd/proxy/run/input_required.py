"""Answer requests for roots that arrive as `input_required` results (MCP 2026-07-28). Pure.

In this protocol version, each request declares the client's capabilities, and a server asks for
roots by its result. The client then sends the request again together with the answers.

If the server asks for roots only, the proxy sends the request again by itself, under an id of its
own. The client never sees that id, so the proxy maps responses and cancellations (`InputRetries`).
If the server also asks for something else, the proxy removes the roots from the question and
forwards the rest. It stores what it removed in `requestState`, which the client must return
unchanged. So the proxy keeps no state that it could lose. `StateSigner` signs that state, because
a server could forge it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from rootsd.core.quick_tuple import NamedTuple
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import Id, Request, Response

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_CAPABILITIES_PATH = ("params", "_meta", _CAPABILITIES)
_MAY_REQUIRE_INPUT = frozenset({"tools/call", "prompts/get", "resources/read"})
_PREFIX = "rootsd1."
_PLACE = "rootsd-place"
_SIGNATURE_BYTES = 16  # bytes
MAX_INPUT_RETRIES = 10
"""How often one request is repeated with answers. The SDKs have the same limit."""


class RootsAnswerer(Enum):
    """Who answers a server's question about roots."""

    PROXY = "ours"
    """The proxy alone. The client does not see the question."""
    CLIENT = "theirs"
    """The client. Its answer narrows the roots."""
    PLACE = "place"
    """The client, but the proxy asks, to learn where the session works. The server has not got the
    request yet.
    """


class RootsQuestion(NamedTuple):
    """The keys under which a server wants roots, and the `requestState` that it wants back."""

    keys: tuple[str, ...]
    state: Any
    has_state: bool


class StateSigner:
    """A signer with a secret `key`, so that no server can forge a state.

    `tag` distinguishes the ids of this proxy from those of another proxy.
    """

    def __init__(self, key: bytes, tag: str) -> None:
        self._key = key
        self.tag = tag

    def wrap(self, payload: bytes) -> str:
        """Return a `requestState` that contains `payload`."""
        return _PREFIX + base64.urlsafe_b64encode(self._sign(payload) + payload).decode()

    def unwrap(self, state: str) -> bytes | None:
        """Return the payload of `state`; None if this signer did not make it."""
        if not state.startswith(_PREFIX):
            return None
        try:
            data = base64.urlsafe_b64decode(state.removeprefix(_PREFIX))
        except (ValueError, binascii.Error):
            return None
        signature, payload = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
        return payload if signature == self._sign(payload) else None

    def _sign(self, payload: bytes) -> bytes:
        import hashlib  # noqa: PLC0415 - loads OpenSSL, and most servers never ask

        return hashlib.blake2b(payload, key=self._key, digest_size=_SIGNATURE_BYTES).digest()


class WrappedState(NamedTuple):
    """The content of a `requestState` that the proxy made."""

    question: RootsQuestion
    answered_by: RootsAnswerer


def carries_protocol_version(request: Request) -> bool:
    """Whether a request names its protocol version, as MCP 2026-07-28 requires."""
    match request.params:
        case {"_meta": dict() as meta}:
            return _VERSION in meta
        case _:
            return False


def may_require_input(request: Request) -> bool:
    """Whether the result of a request may ask for input."""
    return request.method in _MAY_REQUIRE_INPUT


def declares_roots(request: Request) -> bool:
    """Whether the client declares in a request that it can be asked for roots."""
    match request.params:
        case {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"roots": dict()}}}:
            return True
        case _:
            return False


def with_roots_capability(text: str, request: Request) -> str:
    """Return the request with the proxy's declaration of roots instead of the client's.

    A malformed request stays as it is, because the server refuses it.
    """
    match request.params:
        case {"_meta": {"io.modelcontextprotocol/clientCapabilities": dict() as declared}}:
            if declared.get("roots") == {}:
                return text
            return jsonrpc.set_member(text, (*_CAPABILITIES_PATH, "roots"), "{}")
        case _:
            return text


def find_roots_question(result: object) -> RootsQuestion | None:
    """Return the question about roots in a result, or None."""
    match result:
        case {"resultType": "input_required", "inputRequests": dict() as wanted, **more}:
            keys = tuple(key for key, value in wanted.items() if _is_about_roots(value))
        case _:
            return None
    if not keys:
        return None
    state = more.get("requestState")
    return RootsQuestion(keys, state, "requestState" in more)


def asks_only_for_roots(result: object) -> bool:
    """Return whether a result asks for roots and for nothing else."""
    match result:
        case {"inputRequests": dict() as wanted}:
            return all(map(_is_about_roots, wanted.values()))
        case _:
            return False


def is_malformed_question(result: object) -> bool:
    """Whether a result asks for input in a way that the proxy cannot answer.

    Another parser could still find a question about roots in it.
    """
    match result:
        case {"inputRequests": wanted, **more}:
            if not isinstance(wanted, dict):
                return True
            return more.get("resultType") != "input_required" and any(
                _is_about_roots(value) for value in wanted.values()
            )
        case _:
            return False


def hide_roots_question(text: str, question: RootsQuestion, signer: StateSigner) -> str:
    """Return a result without its question about roots, which the state remembers."""
    for key in question.keys:
        text = jsonrpc.remove_member(text, ("result", "inputRequests", key))
    return _with_state(text, question, RootsAnswerer.PROXY, signer)


def forward_roots_question(text: str, question: RootsQuestion, signer: StateSigner) -> str:
    """Return a result that asks the client about roots, which the state remembers."""
    return _with_state(text, question, RootsAnswerer.CLIENT, signer)


def unwrap_state(request: Request, signer: StateSigner) -> WrappedState | None:
    """Return the state of ours that a request brings back, or None."""
    match request.params:
        case {"requestState": str() as state} if (payload := signer.unwrap(state)) is not None:
            keys, inner, has_state, answered_by = json.loads(payload)
            question = RootsQuestion(tuple(keys), inner, has_state)
            return WrappedState(question, RootsAnswerer(answered_by))
        case _:
            return None  # the server refuses a state that only looks like ours


def place_question(request: Request, signer: StateSigner) -> bytes | None:
    """Return the result that asks the client of a call where its session works.

    Return None for other requests, and for a call that brings answers: it is not the first one.
    """
    match request.params:
        case {"requestState": _} | {"inputResponses": _}:
            return None
        case _:
            pass
    if not (may_require_input(request) and declares_roots(request)):
        return None
    question = RootsQuestion((_PLACE,), None, has_state=False)
    state = signer.wrap(_compact([*question, RootsAnswerer.PLACE.value]).encode())
    wanted = {_PLACE: {"method": "roots/list"}}
    result = {"resultType": "input_required", "inputRequests": wanted, "requestState": state}
    return jsonrpc.encode(Response(request.id, result))


def brings_place(request: Request, signer: StateSigner) -> bool:
    """Return whether a request is one that comes again with the answer to `place_question`."""
    wrapped = unwrap_state(request, signer)
    return wrapped is not None and wrapped.answered_by is RootsAnswerer.PLACE


def told_place(request: Request) -> object:
    """Return the client's answer to `place_question`, or None."""
    return client_roots_response(request, RootsQuestion((_PLACE,), None, has_state=False))


def without_place(text: str) -> str:
    """Return a request as it was before `place_question`."""
    text = jsonrpc.remove_member(text, ("params", "inputResponses"))
    return jsonrpc.remove_member(text, ("params", "requestState"))


def looks_like_roots_result(value: object) -> bool:
    """Whether some parser could read a client's answer as one to `roots/list`."""
    return isinstance(value, dict) and any(key.casefold() == "roots" for key in value)


def has_valid_responses(request: Request) -> bool:
    """Whether the proxy can inspect the answers in a request, or there are none."""
    match request.params:
        case {"inputResponses": answers}:
            return isinstance(answers, dict)
        case _:
            return True


def strip_roots_responses(text: str, request: Request) -> str:
    """Return the request without answers about roots, which only the proxy may give."""
    for key in _keys_of_roots(request):
        text = jsonrpc.remove_member(text, ("params", "inputResponses", key))
    return text


def _keys_of_roots(request: Request) -> Iterator[str]:
    match request.params:
        case {"inputResponses": dict() as answers}:
            for key, value in answers.items():
                if looks_like_roots_result(value):
                    yield key
        case _:
            pass


def client_roots_response(request: Request, question: RootsQuestion) -> object:
    """Return the client's own answer about its roots, or None."""
    match request.params:
        case {"inputResponses": dict() as answers}:
            return next((answers[key] for key in question.keys if key in answers), None)
        case _:
            return None


def with_responses(
    text: str, request: Request, question: RootsQuestion, answers: Mapping[str, Any]
) -> str:
    """Return a client's request with the server's own state and additional `answers`."""
    text = _with_answers(text, request, answers)
    return _with_own_state(text, question)


def make_retry(
    text: str, request: Request, id_: Id, question: RootsQuestion, answers: Mapping[str, Any]
) -> str:
    """Return the request again, under another id and with `answers` only."""
    text = jsonrpc.set_member(text, ("id",), json.dumps(id_))
    text = jsonrpc.set_member(text, ("params", "inputResponses"), _compact(answers))
    if not question.has_state and "requestState" not in (request.params or {}):
        return text
    return _with_own_state(text, question)


def _with_answers(text: str, request: Request, answers: Mapping[str, Any]) -> str:
    path = ("params", "inputResponses")
    brought = request.params.get(path[1]) if isinstance(request.params, dict) else None
    if not isinstance(brought, dict):
        return jsonrpc.set_member(text, path, _compact(answers))
    for key, value in answers.items():
        text = jsonrpc.set_member(text, (*path, key), _compact(value))
    return text


def _with_own_state(text: str, question: RootsQuestion) -> str:
    path = ("params", "requestState")
    return (
        jsonrpc.set_member(text, path, _compact(question.state))
        if question.has_state
        else jsonrpc.remove_member(text, path)
    )


def _with_state(
    text: str, question: RootsQuestion, answered_by: RootsAnswerer, signer: StateSigner
) -> str:
    state = signer.wrap(_compact([*question, answered_by.value]).encode())
    return jsonrpc.set_member(text, ("result", "requestState"), _compact(state))


def _is_about_roots(value: object) -> bool:
    return isinstance(value, dict) and value.get("method") == "roots/list"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


class InputRetry(NamedTuple):
    """A request as the server got it. `number` counts the repetitions."""

    request: Request
    text: str
    answered_by: RootsAnswerer
    number: int = 0


class InputRetries:
    """The requests that may come back with a question, by their id at the server.

    That id is the client's own until the proxy sends the request again.
    """

    def __init__(self) -> None:
        self._retries: dict[Id, InputRetry] = {}
        self._aliases: dict[Id, Id] = {}
        self._deferred: set[Id] = set()

    def sent(self, retry: InputRetry, id_: Id) -> None:
        """Note that a request went to the server under `id_`."""
        self._retries[id_] = retry
        self._deferred.discard(retry.request.id)
        if id_ != retry.request.id:
            self._aliases[retry.request.id] = id_

    def take(self, id_: Id) -> InputRetry | None:
        """Remove and return the request that the server answered under `id_`."""
        retry = self._retries.pop(id_, None)
        if retry is not None:
            self._aliases.pop(retry.request.id, None)
        return retry

    def __bool__(self) -> bool:
        return bool(self._retries)

    def __contains__(self, id_: Id) -> bool:
        """Return whether the server may ask for input in its response to `id_`."""
        return id_ in self._retries

    def has_alias(self, id_: Id) -> bool:
        """Whether the client knows the request `id_` of the server under another id."""
        retry = self._retries.get(id_)
        return retry is not None and retry.request.id != id_

    def defer(self, retry: InputRetry) -> None:
        """Note that a request waits for roots, so that the server has no part of it now."""
        self._deferred.add(retry.request.id)

    def is_deferred(self, retry: InputRetry) -> bool:
        """Whether a request still waits and was not cancelled."""
        return retry.request.id in self._deferred

    def cancel(self, id_: Id) -> Id | None:
        """Return the id to cancel at the server; None if the server has nothing to cancel."""
        if id_ in self._deferred:
            self._deferred.discard(id_)
            return None
        return self._aliases.get(id_, id_)

    def clear(self) -> None:
        """Forget everything: the server is gone."""
        self._retries.clear()
        self._aliases.clear()
        self._deferred.clear()
