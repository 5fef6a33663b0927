"""Roots in the revision 2026-07-28: each request declares them, and a server asks by its answer.

A server that wants roots answers `input_required`, and the request comes again with what it
wants. Where roots alone are wanted the relay sends the request again itself, under an id of its
own. Where the client has something to answer as well, the roots are taken out of what it is asked,
and the way back to them travels in `requestState`, which the client has to return as it is: so
nothing is kept here that could be lost. A `Seal` proves that a state is ours: a server could make
one up, too. Pure.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from rootsd.wire import splice
from rootsd.wire.jsonrpc import Id, Request

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_WAY = ("params", "_meta", _CAPABILITIES)
_MAY_ASK = frozenset({"tools/call", "prompts/get", "resources/read"})
_PREFIX = "rootsd1."
_SIGNATURE = 16  # bytes
MOST_ROUNDS = 10
"""So often does a client ask again by itself; the SDKs have the same limit."""


class Whose(Enum):
    """Who answers what a server asks about roots."""

    OURS = "ours"
    """The relay alone: the client is not even asked."""
    THEIRS = "theirs"
    """The client is asked, and its answer narrowed."""


class Question(NamedTuple):
    """The keys under which a server wants roots, and what it wants back: its `requestState`."""

    keys: tuple[str, ...]
    state: Any
    has_state: bool
    is_alone: bool


class Seal:
    """Signs the states of one relay with `key`, so that no server can forge one.

    `tag` distinguishes the ids of this relay from those of another relay beside it.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.tag = self._sign(b"ids").hex()[:8]

    def close(self, kept: bytes) -> str:
        """Return the `requestState` that holds `kept`."""
        return _PREFIX + base64.urlsafe_b64encode(self._sign(kept) + kept).decode()

    def open(self, state: str) -> bytes | None:
        """Return what `state` holds; None if this seal has not closed it."""
        if not state.startswith(_PREFIX):
            return None
        try:
            data = base64.urlsafe_b64decode(state.removeprefix(_PREFIX))
        except (ValueError, binascii.Error):
            return None
        signature, kept = data[:_SIGNATURE], data[_SIGNATURE:]
        return kept if signature == self._sign(kept) else None

    def _sign(self, kept: bytes) -> bytes:
        return hashlib.blake2b(kept, key=self._key, digest_size=_SIGNATURE).digest()


class Wrapped(NamedTuple):
    """What a `requestState` of ours holds."""

    keys: tuple[str, ...]
    state: Any
    has_state: bool
    whose: Whose


def is_enveloped(request: Request) -> bool:
    """Whether a request is of this era: it carries the revision with it."""
    match request.params:
        case {"_meta": dict() as meta}:
            return _VERSION in meta
        case _:
            return False


def may_ask(request: Request) -> bool:
    """Whether the answer to an enveloped request may ask for more."""
    return request.method in _MAY_ASK


def declares_roots(request: Request) -> bool:
    """Whether the client says in an enveloped request that it can be asked for roots."""
    match request.params:
        case {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"roots": dict()}}}:
            return True
        case _:
            return False


def stamped(text: str, request: Request) -> str:
    """Return the request with the relay's own declaration of roots in place of the client's.

    A request that is not in order stays as it is: the server refuses it.
    """
    match request.params:
        case {"_meta": {"io.modelcontextprotocol/clientCapabilities": dict() as declared}}:
            if declared.get("roots") == {}:
                return text
            return splice.put(text, (*_WAY, "roots"), "{}")
        case _:
            return text


def question_in(result: object) -> Question | None:
    """What the result of a request asks about roots; None where it asks nothing of the kind."""
    match result:
        case {"resultType": "input_required", "inputRequests": dict() as wanted, **more}:
            keys = tuple(key for key, value in wanted.items() if _is_about_roots(value))
        case _:
            return None
    if not keys:
        return None
    state = more.get("requestState")
    return Question(keys, state, "requestState" in more, is_alone=len(keys) == len(wanted))


def is_strange(result: object) -> bool:
    """Whether a result asks for more in a way that the relay cannot answer.

    Another reader could still find a question about roots in it.
    """
    match result:
        case {"inputRequests": dict() as wanted, **more}:
            return more.get("resultType") != "input_required" and any(
                _is_about_roots(value) for value in wanted.values()
            )
        case {"inputRequests": _}:
            return True
        case _:
            return False


def hidden(text: str, question: Question, seal: Seal) -> str:
    """An answer without what it asks about roots, which the state remembers."""
    for key in question.keys:
        text = splice.drop(text, ("result", "inputRequests", key))
    return _with_state(text, question, Whose.OURS, seal)


def shown(text: str, question: Question, seal: Seal) -> str:
    """An answer that asks the client about roots, which the state remembers."""
    return _with_state(text, question, Whose.THEIRS, seal)


def wrapped_in(request: Request, seal: Seal) -> Wrapped | None:
    """Return what a client brings back of ours; None if it brings nothing of the kind."""
    match request.params:
        case {"requestState": str() as state} if (kept := seal.open(state)) is not None:
            keys, inner, has_state, whose = json.loads(kept)
            return Wrapped(tuple(keys), inner, has_state, Whose(whose))
        case _:
            return None  # if it looks like ours all the same, the server refuses it


def carries_roots(value: object) -> bool:
    """Whether a reader could take a client's answer for one to `roots/list`."""
    return isinstance(value, dict) and any(key.casefold() == "roots" for key in value)


def has_answers(request: Request) -> bool:
    """Whether a request brings answers in the form that the relay can look through, or none."""
    match request.params:
        case {"inputResponses": answers}:
            return isinstance(answers, dict)
        case _:
            return True


def without_roots(text: str, request: Request) -> str:
    """Return the request without answers about roots: the relay alone gives these."""
    for key in _keys_of_roots(request):
        text = splice.drop(text, ("params", "inputResponses", key))
    return text


def _keys_of_roots(request: Request) -> Iterator[str]:
    match request.params:
        case {"inputResponses": dict() as answers}:
            for key, value in answers.items():
                if carries_roots(value):
                    yield key
        case _:
            pass


def brought(request: Request, wrapped: Wrapped) -> object:
    """What the client itself answers about its roots."""
    match request.params:
        case {"inputResponses": dict() as answers}:
            return next((answers[key] for key in wrapped.keys if key in answers), None)
        case _:
            return None


def answered(text: str, request: Request, wrapped: Wrapped, answers: Mapping[str, Any]) -> str:
    """A client's request with the server's own state, and `answers` besides those it brings."""
    text = _with_answers(text, request, answers)
    return _with_own_state(text, wrapped.state, has_state=wrapped.has_state)


def again(
    text: str, request: Request, id_: Id, question: Question, answers: Mapping[str, Any]
) -> str:
    """The request once more, under another id, with nothing but `answers`."""
    text = splice.put(text, ("id",), json.dumps(id_))
    text = splice.put(text, ("params", "inputResponses"), _compact(answers))
    if not question.has_state and "requestState" not in (request.params or {}):
        return text
    return _with_own_state(text, question.state, has_state=question.has_state)


def _with_answers(text: str, request: Request, answers: Mapping[str, Any]) -> str:
    way = ("params", "inputResponses")
    brought = request.params.get(way[1]) if isinstance(request.params, dict) else None
    if not isinstance(brought, dict):
        return splice.put(text, way, _compact(answers))
    for key, value in answers.items():
        text = splice.put(text, (*way, key), _compact(value))
    return text


def _with_own_state(text: str, state: object, *, has_state: bool) -> str:
    way = ("params", "requestState")
    return splice.put(text, way, _compact(state)) if has_state else splice.drop(text, way)


def _with_state(text: str, question: Question, whose: Whose, seal: Seal) -> str:
    kept = [question.keys, question.state, question.has_state, whose.value]
    state = seal.close(_compact(kept).encode())
    return splice.put(text, ("result", "requestState"), _compact(state))


def _is_about_roots(value: object) -> bool:
    return isinstance(value, dict) and value.get("method") == "roots/list"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
