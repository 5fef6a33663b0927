"""JSON-RPC 2.0 messages: text in, `Request`, `Notice`, `Reply`, `Fault` or `Batch` out, and back.

Ids keep their type: 0, "0" and "" are three different ids, and all of them are legal. Nothing
here knows a method's name. What cannot be understood becomes `Malformed`, a value like the others:
peers are not trusted to send JSON.

The messages are named tuples since the lean programs import this module: `dataclasses` would cost
them 6 ms at every start.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

_encoded = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

Id = int | str
Params = dict[str, Any] | list[Any] | None


class Request(NamedTuple):
    """A call that wants an answer."""

    id: Id
    method: str
    params: Params = None


class Notice(NamedTuple):
    """A call that wants none (JSON-RPC's "notification")."""

    method: str
    params: Params = None


class Reply(NamedTuple):
    """The result of the request with this id."""

    id: Id
    result: Any


class Fault(NamedTuple):
    """The error that answers a request; the id is None where it could not be read."""

    id: Id | None
    code: int
    message: str
    data: Any = None


class Malformed(NamedTuple):
    """Text that is no message: `fault` is what to answer."""

    fault: Fault


class Batch(NamedTuple):
    """Several messages in one line: part of MCP 2025-03-26 only. Never empty, never nested."""

    members: tuple[Message | Malformed, ...]


Message = Request | Notice | Reply | Fault


def parse(line: bytes) -> Message | Batch | Malformed:
    """Read one line as JSON-RPC 2.0 over MCP: ids are strings or integers, never null."""
    try:
        value = json.loads(line.decode(), parse_constant=_refuse_constant)
    except ValueError:  # UnicodeDecodeError and JSONDecodeError among them
        return Malformed(Fault(None, PARSE_ERROR, "this line is not JSON in UTF-8"))
    except RecursionError:
        return Malformed(Fault(None, PARSE_ERROR, "the JSON is nested too deeply"))
    if not isinstance(value, list):
        return _message(value)
    if not value:
        return _invalid(None, "a batch must not be empty")
    return Batch(tuple(_message(member) for member in value))


def encode(message: Message) -> bytes:
    """The line for `message`, newline included; ASCII only, so that any id survives the way."""
    body: dict[str, Any] = {"jsonrpc": "2.0"}
    match message:
        case Request(id_, method, params):
            body |= {"id": id_, "method": method}
            if params is not None:
                body["params"] = params
        case Notice(method, params):
            body["method"] = method
            if params is not None:
                body["params"] = params
        case Reply(id_, result):
            body |= {"id": id_, "result": result}
        case Fault(id_, code, text, data):
            error = {"code": code, "message": text}
            body |= {"id": id_, "error": error if data is None else error | {"data": data}}
    return _encoded(body).encode() + b"\n"


def _refuse_constant(name: str) -> None:
    # NaN and Infinity are Python's own extension of JSON.
    raise ValueError(name)


def _message(value: object) -> Message | Malformed:
    if not isinstance(value, dict):
        return _invalid(None, "a message is a JSON object")
    # Python's True is an int; JSON's true is no id.
    id_ = value.get("id")
    if isinstance(id_, bool) or not isinstance(id_, int | str):
        id_ = None
    if value.get("jsonrpc") != "2.0":
        return _invalid(id_, 'the message lacks "jsonrpc": "2.0"')
    if "method" in value:
        return _call(value, id_)
    if "result" in value and "error" not in value:
        if id_ is None:
            return _invalid(None, "a result needs the id of its request")
        return Reply(id_, value["result"])
    return _fault(value, id_)


def _call(value: dict[str, Any], id_: Id | None) -> Message | Malformed:
    method, params = value["method"], value.get("params")
    if not isinstance(method, str):
        return _invalid(id_, "the method is a string")
    if params is not None and not isinstance(params, dict | list):
        return _invalid(id_, "params are an object or an array")
    if "id" not in value:
        return Notice(method, params)
    if id_ is None:
        return _invalid(None, "the id of a request is a string or an integer")
    return Request(id_, method, params)


def _fault(value: dict[str, Any], id_: Id | None) -> Message | Malformed:
    match value:
        case {"error": {"code": int() as code, "message": str() as text, **more}}:
            return Fault(id_, code, text, more.get("data"))
        case _:
            return _invalid(id_, "the message is neither a request nor an answer")


def _invalid(id_: Id | None, reason: str) -> Malformed:
    return Malformed(Fault(id_, INVALID_REQUEST, reason))
