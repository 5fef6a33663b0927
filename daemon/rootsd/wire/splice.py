"""Small changes to JSON text that leave every other character as it was. Pure.

Numbers, escapes, spaces and the order of members are the sender's: parsing and printing would
change `1e400`, `1.10` or half a surrogate pair. All functions take text that `json.loads` takes,
and look through it as that does: of members with one key, the last one counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class _Member(NamedTuple):
    """Where a member of an object lies: from its key's quote, through its value, to its end."""

    key: str
    start: int
    value: int
    end: int


def put(text: str, path: Sequence[str], value: str) -> str:
    """The text with the JSON `value` at `path`, a way of keys. Raises KeyError where what is to
    hold it is missing, and is no object."""
    *way, key = path
    holder = _object_at(text, way)
    found = None
    for member in _members(text, holder):
        found = member if member.key == key else found
    if found is not None:
        return text[: found.value] + value + text[found.end :]
    inside = holder + 1
    comma = "" if text[_skip(text, inside)] == "}" else ","
    return f"{text[:inside]}{json.dumps(key)}:{value}{comma}{text[inside:]}"


def drop(text: str, path: Sequence[str]) -> str:
    """The text without the member at `path`. Raises KeyError where nothing could hold it."""
    *way, key = path
    holder = _object_at(text, way)
    kept = [text[m.start : m.end] for m in _members(text, holder) if m.key != key]
    _, end = _DECODER.raw_decode(text, holder)
    return f"{text[:holder]}{{{','.join(kept)}}}{text[end:]}"


def elements(text: str) -> list[tuple[int, int]]:
    """Where the elements of an array begin and end."""
    found = []
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append((at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _object_at(text: str, way: Sequence[str]) -> int:
    at = _skip(text, 0)
    for key in way:
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
        key, end = _DECODER.raw_decode(text, at)
        value = _skip(text, _skip(text, end) + 1)
        _, end = _DECODER.raw_decode(text, value)
        yield _Member(key, at, value, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
