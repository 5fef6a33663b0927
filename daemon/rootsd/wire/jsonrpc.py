"""JSON-RPC 2.0: parse and encode messages, split lines, and edit one member of a message in place.

Text becomes a `Request`, `Notification`, `Response`, `ErrorResponse`, or `Batch`, and back. Text
that is not a message becomes `Malformed`, a value like the others. Ids keep their type: 0, "0",
and "" are three different ids, and all of them are valid. This module knows no method names.

There are two parsers. `parse` is for a program that acts on the message itself. `parse_strict` is
for a program that passes the line on to another parser. It accepts a line only if every careful
parser finds the same message in it. Otherwise a peer could send one message to the run proxy and
a different one to the program behind it. RFC 8259 does not define the meaning of repeated names,
huge numbers, and deep nesting. RFC 7493 (I-JSON) and `parse_strict` refuse them. `parse_repaired`
gives such a line one meaning: it chooses one, as both official SDKs do, and writes the line anew.

The messages are named tuples, because proxies import this module. `dataclasses` would add 6 ms to
each of their starts.

`LineReader` splits bytes into lines of limited length. This is the framing of MCP's stdio
transport: one message per line, without a newline inside. `mcp.sock` and `control.sock` use it
too.

`set_member`, `remove_member`, and `element_spans` work on JSON text and leave all other characters
as they are. Parsing and printing would change the form of numbers, escapes, and spaces, such as
`1e400`, `1.10`, or half a surrogate pair. These functions take text that `json.loads` accepts, and
read it in the same way: if members share a key, the last one counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import accumulate
from typing import Any

from rootsd.core.quick_tuple import NamedTuple

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MAX_ID = (1 << 53) - 1
"""The largest integer that a parser with 64-bit floats keeps exact (RFC 7493, section 2.2)."""
MAX_NESTING = 128
"""How deeply arrays and objects may be nested for `parse_strict`."""
MAX_NUMBER_LENGTH = 1_000
"""How many characters a number may have for `parse_strict`."""

_encoded = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_ITEMS_PER_PART = 512

Id = int | str
Params = dict[str, Any] | list[Any] | None


class Request(NamedTuple):
    """A call that expects a response."""

    id: Id
    method: str
    params: Params = None


class Notification(NamedTuple):
    """A call that expects no response."""

    method: str
    params: Params = None


class Response(NamedTuple):
    """The result of the request with this id."""

    id: Id
    result: Any


class ErrorResponse(NamedTuple):
    """The error for a request. The id is None if the request's id could not be read."""

    id: Id | None
    code: int
    message: str
    data: Any = None


class Malformed(NamedTuple):
    """Text that is not a message."""

    error: ErrorResponse
    """The error to send back. Its id is None if the text has no usable id."""
    is_call: bool = False
    """Whether the text names a method. Then the sender chose the id."""


class Batch(NamedTuple):
    """Several messages in one line. Only MCP 2025-03-26 allows this. Never empty or nested."""

    members: tuple[Message | Malformed, ...]


Message = Request | Notification | Response | ErrorResponse


def parse(line: bytes) -> Message | Batch | Malformed:
    """Parse one line as JSON-RPC 2.0 over MCP: ids are strings or integers, never null."""
    try:
        value = json.loads(line.decode(), parse_constant=_refuse_constant)
    except ValueError:  # UnicodeDecodeError and JSONDecodeError among them
        return Malformed(ErrorResponse(None, PARSE_ERROR, "this line is not JSON in UTF-8"))
    except RecursionError:
        return Malformed(ErrorResponse(None, PARSE_ERROR, "the JSON is nested too deeply"))
    if not isinstance(value, list):
        return _message(value)
    if not value:
        return _invalid(None, "a batch must not be empty")
    return Batch(tuple(_message(member) for member in value))


def parse_strict(line: bytes) -> Message | Batch | Malformed:
    """Return the message that every parser finds in one line, without its newline.

    Unlike `parse`, this refuses a line break, two members with the same name, deep nesting, long
    numbers, ids beyond 53 bits or with half a surrogate pair, params that are not an object, a
    message that is both a call and a response, and a member whose name differs from a reserved
    name only by case.
    """
    try:
        value = _strict_value(line)
    except _AmbiguousError as error:
        return _rejected(line, str(error))
    except ValueError:  # UnicodeDecodeError and JSONDecodeError among them
        return _rejected(line, "this line is not JSON in UTF-8")
    if not isinstance(value, list):
        return _strict_message(value)
    if not value:
        return _invalid(None, "a batch must not be empty")
    return Batch(tuple(_strict_message(member) for member in value))


def parse_repaired(line: bytes) -> tuple[bytes, Message | Batch | Malformed]:
    """Return the message in one line, and the line that every parser reads as this message.

    That is the same line if `parse_strict` accepts it. Otherwise it is a new one with the meaning
    that both official MCP SDKs find: of two members with the same name the last one counts, 1.0 is
    1, and a member that is null beside the one that counts is absent. If the line has no such
    meaning, or a member of a batch has none, that is `Malformed`.
    """
    found = parse_strict(line)
    members = found.members if isinstance(found, Batch) else (found,)
    if not any(isinstance(each, Malformed) for each in members):
        return line, found
    repaired = _repaired(line)
    if repaired is None:
        return line, found
    meant = parse_strict(repaired)
    return line if isinstance(meant, Malformed) else repaired, meant


def _repaired(line: bytes) -> bytes | None:
    """Return a line of plain members only, or None if the text is not JSON of bounded depth."""
    if _is_deep(line):
        return None
    try:
        value = json.loads(line.decode(), parse_constant=_refuse_constant)
        kept = [_plain(each) for each in value] if isinstance(value, list) else _plain(value)
        return _encoded(kept).encode()
    except (ValueError, RecursionError):  # also a number such as 1e400
        return None


def _plain(value: object) -> object:
    """Return a message without members that mean nothing, and with its id as an integer."""
    if not isinstance(value, dict):
        return value
    kept = {name: each for name, each in value.items() if name in _RESERVED}
    for name in ("method", "params", "error"):
        if name in kept and kept[name] is None:
            del kept[name]
    if kept.get("result", ...) is None and ("error" in kept or "method" in kept):
        del kept["result"]
    if "id" in kept:
        kept["id"] = _whole_number(kept["id"])
    error = kept.get("error")
    if isinstance(error, dict) and "code" in error:
        kept["error"] = {**error, "code": _whole_number(error["code"])}
    return kept


def _whole_number(value: Any) -> Any:  # noqa: ANN401
    """Return 1 for 1.0, and any other value as it is."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_ID:
        return int(value)
    return value


_DECIMAL = r"([+-]?[0-9]{1,17})(?:\.0*)?"


def is_plain_line(line: bytes) -> bool:
    """Return whether a search in the bytes finds what any parser does.

    The line is UTF-8 and one line for all of them, and no name in it is written with escapes.
    """
    if b"\\u" in line or line.find(b"\r", 0, -1) >= 0:
        return False
    try:
        return line.isascii() or bool(line.decode())
    except UnicodeDecodeError:
        return False


def same_id(id_: Id, known: Container[Id]) -> Id | None:
    """Return the one of the `known` ids that `id_` stands for by its value, or None.

    1 and "1" are two ids. But a peer that answers the only one of them that it got means that one,
    and both official SDKs take it so.
    """
    if id_ in known:
        return id_
    if isinstance(id_, int):
        return str(id_) if str(id_) in known else None
    found = re.fullmatch(_DECIMAL, id_.strip(_WHITE_SPACE))
    return number if found and (number := int(found[1])) in known else None


def encode(message: Message) -> bytes:
    """Return the line for `message`, with its newline. It is ASCII, so that any id survives."""
    body: dict[str, Any] = {"jsonrpc": "2.0"}
    match message:
        case Request(id_, method, params):
            body |= {"id": id_, "method": method}
            if params is not None:
                body["params"] = params
        case Notification(method, params):
            body["method"] = method
            if params is not None:
                body["params"] = params
        case Response(id_, result):
            body |= {"id": id_, "result": result}
        case ErrorResponse(id_, code, text, data):
            error = {"code": code, "message": text}
            body |= {"id": id_, "error": error if data is None else error | {"data": data}}
    return _encoded(body).encode() + b"\n"


def encode_parts(response: Response) -> Iterator[bytes]:
    """Yield the line for `response` in parts, between which other tasks can run.

    The encoder lets no other thread run, and takes 50 ms for a list of 20,000 projects.
    """
    result = response.result
    if not isinstance(result, dict) or not any(map(_is_long, result.values())):
        yield encode(response)
        return
    before = f'{{"jsonrpc":"2.0","id":{_encoded(response.id)},"result":{{'
    for key, value in result.items():
        yield f"{before}{_encoded(key)}:".encode()
        if _is_long(value):
            for at in range(0, len(value), _ITEMS_PER_PART):
                items = _encoded(value[at : at + _ITEMS_PER_PART])[1:-1]
                yield f"{',' if at else '['}{items}".encode()
            yield b"]"
        else:
            yield _encoded(value).encode()
        before = ","
    yield b"}}\n"


def _is_long(value: object) -> bool:
    return isinstance(value, list) and len(value) > _ITEMS_PER_PART


def _refuse_constant(name: str) -> None:
    # NaN and Infinity are Python's own extension of JSON.
    raise ValueError(name)


class _AmbiguousError(ValueError):
    """Text that may be JSON, but that parsers may read differently."""


_WHITE_SPACE = " \t\n\r"  # of JSON
_RESERVED = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_STRING = rb'"(?:[^"\\]|\\.)*"'
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # up and down, as signed bytes
_ALL_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_LONG_DIGITS = b"0" * (MAX_NUMBER_LENGTH // 3)  # each part of a number is a run of digits


def _strict_value(line: bytes) -> Any:  # noqa: ANN401
    """Return the JSON value of `line`. Raises ValueError."""
    if line.find(b"\r", 0, -1) >= 0:
        raise _AmbiguousError("the line contains a line break")
    text = line.decode().strip(_WHITE_SPACE)
    if _is_deep(line):
        raise _AmbiguousError("the JSON is nested too deeply")
    is_long = len(line) > MAX_NUMBER_LENGTH and _LONG_DIGITS in line.translate(_ALL_DIGITS_ALIKE)
    value, end = (_NUMBER_READER if is_long else _READER).raw_decode(text)
    if end < len(text):
        raise ValueError("the line continues after its value")
    return value


def _rejected(line: bytes, why: str) -> Malformed:
    """Return the error for a refused line, with the id that a lenient parser finds there."""
    try:
        value = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return Malformed(ErrorResponse(None, PARSE_ERROR, why))
    is_call = value.get("method") is not None
    id_ = value.get("id") if is_call else _whole_number(value.get("id"))
    is_usable = isinstance(id_, int | str) and not isinstance(id_, bool) and _is_exact(id_)
    return Malformed(ErrorResponse(id_ if is_usable else None, PARSE_ERROR, why), is_call)


def _is_deep(line: bytes) -> bool:
    if line.count(b"[") + line.count(b"{") <= MAX_NESTING:
        return False
    brackets = re.sub(_STRING, b"", line).translate(_STEPS, _NOT_BRACKETS)
    return max(accumulate(memoryview(brackets).cast("b")), default=0) > MAX_NESTING


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _AmbiguousError("an object has two members with the same name")
    return members


def _bounded(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def read_bounded(digits: str) -> Any:  # noqa: ANN401
        if len(digits) > MAX_NUMBER_LENGTH:
            raise _AmbiguousError("a number is too long")
        return read(digits)

    return read_bounded


def _strict_message(value: object) -> Message | Malformed:
    found = _message(value)
    if isinstance(found, Malformed) or not isinstance(value, dict):
        return found
    why = _why_ambiguous(value, found)
    if not why:
        return found
    id_ = found.id if not isinstance(found, Notification) and _is_exact(found.id) else None
    return Malformed(ErrorResponse(id_, INVALID_REQUEST, why), is_call="method" in value)


def _why_ambiguous(value: dict[str, Any], found: Message) -> str:
    """Return why parsers may read a message differently; empty if they do not."""
    for name in value:
        # Some parsers ignore the case of names.
        if name not in _RESERVED and name.casefold() in _RESERVED:
            return f"the member {name!a} differs from a reserved one only by case"
    if not isinstance(found, Notification) and not _is_exact(found.id):
        return "the id is an integer beyond 53 bits, or holds half a surrogate pair"
    if isinstance(found, Request | Notification):
        return _why_ambiguous_call(value, found)
    if "result" in value and "error" in value:
        return "the answer has a result and an error"
    if isinstance(found, ErrorResponse):
        if value.get("id") != found.id:
            return "the id is neither a string nor an integer"
        if isinstance(found.code, bool):
            return "the code of an error is an integer"
    return ""


def _why_ambiguous_call(value: dict[str, Any], found: Request | Notification) -> str:
    if isinstance(found.params, list):
        return "params are an object"
    if "result" in value or "error" in value:
        return "the message is both a call and an answer"
    return "" if _is_text(found.method) else "the method holds half a surrogate pair"


def _is_exact(id_: Id | None) -> bool:
    if isinstance(id_, str):
        return _is_text(id_)
    return id_ is None or abs(id_) <= MAX_ID


def _is_text(text: str) -> bool:
    """Return whether the text has no half surrogate pair, which some parsers replace."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _message(value: object) -> Message | Malformed:
    if not isinstance(value, dict):
        return _invalid(None, "a message is a JSON object")
    # To Python, True is an int, but it is not a valid id.
    id_ = value.get("id")
    if isinstance(id_, bool) or not isinstance(id_, int | str):
        id_ = None
    if value.get("jsonrpc") != "2.0":
        reason = 'the message lacks "jsonrpc": "2.0"'
        return Malformed(ErrorResponse(id_, INVALID_REQUEST, reason), is_call="method" in value)
    if "method" in value:
        return _call(value, id_)
    if "result" in value and "error" not in value:
        if id_ is None:
            return _invalid(None, "a result needs the id of its request")
        return Response(id_, value["result"])
    return _error_response(value, id_)


def _call(value: dict[str, Any], id_: Id | None) -> Message | Malformed:
    method, params = value["method"], value.get("params")
    if not isinstance(method, str):
        return _invalid_call(id_, "the method is a string")
    if params is not None and not isinstance(params, dict | list):
        return _invalid_call(id_, "params are an object or an array")
    if "id" not in value:
        return Notification(method, params)
    if id_ is None:
        return _invalid_call(None, "the id of a request is a string or an integer")
    return Request(id_, method, params)


def _error_response(value: dict[str, Any], id_: Id | None) -> Message | Malformed:
    match value:
        case {"error": {"code": int() as code, "message": str() as text, **more}}:
            return ErrorResponse(id_, code, text, more.get("data"))
        case _:
            return _invalid(id_, "the message is neither a request nor an answer")


def _invalid(id_: Id | None, reason: str) -> Malformed:
    return Malformed(ErrorResponse(id_, INVALID_REQUEST, reason))


def _invalid_call(id_: Id | None, reason: str) -> Malformed:
    return Malformed(ErrorResponse(id_, INVALID_REQUEST, reason), is_call=True)


_READER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
_NUMBER_READER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_constant=_refuse_constant,
    parse_int=_bounded(int),
    parse_float=_bounded(float),
)


MAX_REQUEST_BYTES = 64 * 1024
"""The length of the longest line that the daemon reads. Its answers may be longer."""


class LineTooLong(Exception):
    """A line that is longer than the limit. The reader cannot tell where the next line begins."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the line is longer than {limit} bytes")
        self.limit = limit


class LineReader:
    """A buffer that takes bytes and returns complete lines without their newline."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0  # there is no newline before this offset: search each byte once

    def feed(self, data: bytes) -> None:
        """Add bytes. They may begin and end anywhere in a line."""
        self._buffer += data

    def pop(self) -> bytes | None:
        """Return the next complete line, or None if there is none yet. Raises LineTooLong."""
        end = self._buffer.find(b"\n", self._searched)
        if end > self._limit or (end < 0 and len(self._buffer) > self._limit):
            raise LineTooLong(self._limit)
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def rest(self) -> bytes:
        """Return the bytes after the last newline, at the end of a stream. Empty the buffer."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        return rest


_SPACE = re.compile(r"[ \t\n\r]*")
_RAW_DECODER = json.JSONDecoder()


class _Member(NamedTuple):
    """The position of a member of an object: where its key and its value start, and its end."""

    key: str
    start: int
    value: int
    end: int


def set_member(text: str, path: Sequence[str], value: str) -> str:
    """Return the text with the JSON `value` at `path`, a sequence of keys.

    Raises KeyError if the object that would contain it is missing, or is not an object.
    """
    *parents, key = path
    target = _object_at(text, parents)
    found = None
    for member in _members(text, target):
        found = member if member.key == key else found
    if found is not None:
        return text[: found.value] + value + text[found.end :]
    inside = target + 1
    comma = "" if text[_skip(text, inside)] == "}" else ","
    return f"{text[:inside]}{json.dumps(key)}:{value}{comma}{text[inside:]}"


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at `path`. Raises KeyError if its object is missing."""
    *parents, key = path
    target = _object_at(text, parents)
    kept = [text[m.start : m.end] for m in _members(text, target) if m.key != key]
    _, end = _RAW_DECODER.raw_decode(text, target)
    return f"{text[:target]}{{{','.join(kept)}}}{text[end:]}"


def element_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of each element of an array."""
    found = []
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "]":
        _, end = _RAW_DECODER.raw_decode(text, at)
        found.append((at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _object_at(text: str, parents: Sequence[str]) -> int:
    at = _skip(text, 0)
    for key in parents:
        values = [m.value for m in _members(text, at) if m.key == key]
        if not values:
            raise KeyError(key)
        at = values[-1]
        if text[at] != "{":
            raise KeyError(key)
    return at


def _members(text: str, at: int) -> Iterator[_Member]:
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, end = _RAW_DECODER.raw_decode(text, at)
        value = _skip(text, _skip(text, end) + 1)
        _, end = _RAW_DECODER.raw_decode(text, value)
        yield _Member(key, at, value, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
