"""Lines that an MCP client could send, and the same lines with random damage."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("ping", {}),
    ("roots/list", {}),
    ("rootsd/hello", {"version": 1, "client": "fuzz", "scope": {"names": ["api"], "cwd": "/src"}}),
    ("server/discover", {}),
    ("tools/list", {"cursor": "YWZ0ZXI6YXBp"}),
    ("tools/call", {"name": "list_roots", "arguments": {}}),
    ("tools/call", {"name": "resolve_root", "arguments": {"path": "/src/api/x"}}),
    ("tools/call", {"name": "resolve_root", "arguments": {"name": "api"}}),
    (
        "tools/call",
        {
            "name": "request_root",
            "arguments": {"path": "/src/new", "reason": "to see", "wait_seconds": 0},
        },
    ),
    ("resources/list", {"cursor": "YWZ0ZXI6YXBp"}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "roots://approved"}),
    ("resources/read", {"uri": "roots://root/api"}),
    ("resources/subscribe", {"uri": "roots://approved"}),
    ("resources/unsubscribe", {"uri": "roots://approved"}),
    (
        "subscriptions/listen",
        {
            "notifications": {
                "resourcesListChanged": True,
                "resourceSubscriptions": ["roots://approved"],
            }
        },
    ),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "roots://root/{+name}"},
            "argument": {"name": "name", "value": "a"},
        },
    ),
    (
        "initialize",
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "fuzz", "version": "1"},
        },
    ),
    ("logging/setLevel", {"level": "info"}),
    ("no/such", {"a": [1, None, True]}),
]
NOTICES: list[tuple[str, dict[str, Any]]] = [
    ("notifications/initialized", {}),
    ("notifications/cancelled", {"requestId": 7, "reason": "fuzz"}),
    ("notifications/progress", {"progressToken": 1, "progress": 2}),
    ("notifications/roots/list_changed", {}),
]
JUNK: list[Any] = [
    None, True, 0, -1, 1.5, 2**70, 1e300, "", "x" * 500, "\x00", "\N{GRINNING FACE}", "\u202e",
    [], {}, [[]], {"": {}}, "2.0", "2026-07-28", "../..", "/", "roots://root/%ff%00",
]  # fmt: skip
BYTES = [
    b"\x00",
    b"\xff",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"\\ud800",
    b"\r",
]


def message(chance: random.Random, id_: object) -> dict[str, Any]:
    """Return a valid message."""
    if chance.random() < 0.15:
        method, params = chance.choice(NOTICES)
        return {"jsonrpc": "2.0", "method": method, "params": dict(params)}
    method, params = chance.choice(CALLS)
    if chance.random() < 0.5:
        params = {**params, "_meta": META}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def damaged(chance: random.Random, whole: dict[str, Any]) -> bytes:
    """Return the line of a message with one to three faults in its values and bytes."""
    value: Any = json.loads(json.dumps(whole))
    for _ in range(chance.randint(0, 2)):
        value = chance.choice(_TO_VALUES)(chance, value)
    line = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    for _ in range(chance.randint(0 if value != whole else 1, 2)):
        line = chance.choice(_TO_BYTES)(chance, line)
    return line


def _junk(chance: random.Random) -> Any:  # noqa: ANN401
    return deepcopy(chance.choice(JUNK))  # otherwise it may contain itself


def _replace_a_value(chance: random.Random, value: Any) -> Any:  # noqa: ANN401
    holder, key = _somewhere(chance, value)
    if holder is None:
        return _junk(chance)
    holder[key] = _junk(chance)
    return value


def _drop_a_value(chance: random.Random, value: Any) -> Any:  # noqa: ANN401
    holder, key = _somewhere(chance, value)
    if holder is not None:
        del holder[key]
    return value


def _rename_a_key(chance: random.Random, value: Any) -> Any:  # noqa: ANN401
    holder, key = _somewhere(chance, value)
    if isinstance(holder, dict):
        holder[str(_junk(chance))] = holder.pop(key)
    return value


def _make_a_batch(chance: random.Random, value: Any) -> Any:  # noqa: ANN401
    return [value, _junk(chance), deepcopy(message(chance, "in a batch"))]


def _nest(chance: random.Random, value: Any) -> Any:  # noqa: ANN401
    holder, key = _somewhere(chance, value)
    if holder is not None:
        for _ in range(chance.choice([1, 50, 200])):
            holder[key] = [holder[key]]
    return value


def _somewhere(chance: random.Random, value: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return a container within `value` and one of its keys, or None if there is none."""
    places: list[tuple[Any, Any]] = []
    left = [value]
    while left:
        holder = left.pop()
        keys: list[Any] = []
        if isinstance(holder, dict):
            keys = list(holder)
        elif isinstance(holder, list):
            keys = list(range(len(holder)))
        places += [(holder, key) for key in keys]
        left += [holder[key] for key in keys]
    return chance.choice(places) if places else (None, None)


def _cut(chance: random.Random, line: bytes) -> bytes:
    return line[: chance.randrange(len(line) + 1)]


def _flip(chance: random.Random, line: bytes) -> bytes:
    if not line:
        return b"\x01"
    at = chance.randrange(len(line))
    return line[:at] + bytes([line[at] ^ (1 << chance.randrange(8))]) + line[at + 1 :]


def _insert(chance: random.Random, line: bytes) -> bytes:
    at = chance.randrange(len(line) + 1)
    return line[:at] + chance.choice(BYTES) + line[at:]


def _repeat(chance: random.Random, line: bytes) -> bytes:
    begin = chance.randrange(len(line) + 1)
    end = min(len(line), begin + chance.randrange(1, 40))
    return line[:end] + line[begin:]


def _leave(_: random.Random, line: bytes) -> bytes:
    return line


_TO_VALUES: list[Callable[[random.Random, Any], Any]] = [
    _replace_a_value, _replace_a_value, _drop_a_value, _rename_a_key, _make_a_batch, _nest,
]  # fmt: skip
_TO_BYTES: list[Callable[[random.Random, bytes], bytes]] = [_cut, _flip, _insert, _repeat, _leave]
