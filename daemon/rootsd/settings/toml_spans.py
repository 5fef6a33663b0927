"""Insert a table into TOML text, remove it, and replace values, without a change to another byte.

A scanner finds the statements: the headers of tables, and the keys with the positions of their
values. It only has to know where strings, comments, and brackets end, because the text is parsed
by `tomllib` before. tomlkit has no positions. It counts a comment above a table as the end of the
table before, and deletes it with that table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.settings.errors import NotEditable

Keys = tuple[str, ...]

_BOM = "\ufeff"
_COMMA = re.compile(r"[ \t]*,")
_BLANK = re.compile(r"[ \t]*")
_IDLE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_KEY_PART = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_STRINGS = (
    re.compile(r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})', re.DOTALL),
    re.compile(r"'''.*?'''(?:'{0,2})", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
# A date and its time may have a blank between them.
_ATOM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[^\s,\]}#]+|[^\s,\]}#]+")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A header, or a key with its value.

    `path` has all keys from the top. A header has no value, so both its positions are None. A key
    of an inline table lies inside the statement of that table. `end` is the end of the line for a
    header and for a key with its own line, and else the end of the value.
    """

    path: Keys
    start: int
    end: int
    value_start: int | None = None
    value_end: int | None = None
    is_inline: bool = False
    is_repeated: bool = False


def parse(text: str) -> dict[str, Any]:
    """Return the values of `text`. Raises NotEditable."""
    try:
        return parse_toml(text.removeprefix(_BOM))
    except Unparsable as error:
        raise NotEditable(f"it is not TOML: {error}") from error


def insert_table(text: str, keys: Keys, values: Mapping[str, Any]) -> str:
    """Return `text` with a table at `keys` below everything else. Raises NotEditable."""
    expected = parse(text)
    target = _reach(expected, keys[:-1])
    if keys[-1] in target:
        raise NotEditable(f"{'.'.join(keys)} is there already")
    target[keys[-1]] = dict(values)
    newline = _newline(text)
    header = ".".join(map(_written_key, keys))
    lines = [f"[{header}]"]
    lines += [f"{_written_key(key)} = {literal(value)}" for key, value in values.items()]
    block = newline.join(lines)
    if not text.removeprefix(_BOM):
        return _verified(f"{text}{block}{newline}", expected)
    if text.endswith("\n"):
        return _verified(f"{text}{newline}{block}{newline}", expected)
    return _verified(f"{text}{newline}{newline}{block}", expected)


def remove_table(text: str, keys: Keys) -> str:
    """Return `text` without the table at `keys` and the tables in it.

    Comments between two tables stay. Raises NotEditable.
    """
    expected = parse(text)
    parent = expected
    for key in keys[:-1]:
        if key not in parent:
            return text
        parent = parent[key]
    if keys[-1] not in parent:
        return text
    del parent[keys[-1]]
    statements = [s for s in statements_in(text) if s.path[: len(keys)] == keys]
    if any(s.is_inline and s.path == keys for s in statements):
        raise NotEditable(f"{'.'.join(keys)} is in an inline table")
    for start, end in reversed(_runs(text, statements)):
        text = _cut_lines(text, start, end)
    return _verified(text, expected)


def raw_at(text: str, keys: Keys) -> str | None:
    """Return the text of the value at `keys`, or None if no statement sets it by itself.

    Raises NotEditable.
    """
    parse(text)
    found = _statement_at(text, keys)
    return None if found is None else text[found.value_start : found.value_end]


def replace_at(text: str, keys: Keys, raw: str) -> str:
    """Return `text` with `raw` in place of the value at `keys`. Raises NotEditable."""
    expected = parse(text)
    found = _statement_at(text, keys)
    if found is None:
        raise NotEditable(f"{'.'.join(keys)} is not a plain value there")
    _reach(expected, keys[:-1])[keys[-1]] = _value(raw)
    return _verified(f"{text[: found.value_start]}{raw}{text[found.value_end :]}", expected)


def insert_beside(text: str, keys: Keys, name: str, value: Any) -> str:  # noqa: ANN401
    """Return `text` with the key `name` after the one at `keys`, in the same table.

    Raises NotEditable.
    """
    expected = deepcopy(parse(text))
    found = _statement_at(text, keys)
    if found is None:
        raise NotEditable(f"{'.'.join(keys)} is not a plain value there")
    _reach(expected, keys[:-1])[name] = value
    if found.is_inline:
        added = f", {name} = {literal(value)}"
        return _verified(text[: found.value_end] + added + text[found.value_end :], expected)
    indent = text[text.rfind("\n", 0, found.start) + 1 : found.start]
    # The key may be dotted, as in `server.command = "x"`. The new one then needs the same start.
    written = text[found.start : found.value_start].rpartition("=")[0].rstrip()
    *before, _ = list(_KEY_PART.finditer(written))
    prefix = written[: before[-1].end()] + "." if before else ""
    line = f"{indent}{prefix}{name} = {literal(value)}"
    newline = _newline(text)
    if text[: found.end].endswith("\n"):
        return _verified(f"{text[: found.end]}{line}{newline}{text[found.end :]}", expected)
    return _verified(f"{text[: found.end]}{newline}{line}", expected)


def remove_key(text: str, keys: Keys) -> str:
    """Return `text` without the value at `keys`, if a statement sets it. Raises NotEditable."""
    expected = parse(text)
    found = _statement_at(text, keys)
    if found is None:
        return text
    del _reach(expected, keys[:-1])[keys[-1]]
    if not found.is_inline:
        return _verified(_cut_lines(text, found.start, found.end), expected)
    before = text[: found.start].rstrip(" \t")
    if before.endswith(","):
        return _verified(before[:-1] + text[found.value_end :], expected)
    after = re.compile(r"[ \t]*,[ \t]*").match(text, found.value_end or 0)
    end = after.end() if after else found.value_end
    return _verified(text[: found.start] + text[end:], expected)


def without_first(raw: str, count: int) -> str:
    """Return the text of an array without its first `count` items. Raises NotEditable."""
    value = _value(raw)
    spans = list(_items(raw))
    if not isinstance(value, list) or len(spans) != len(value) or len(value) < count:
        raise NotEditable("it is not an array with these items")
    if count == len(spans):
        end = spans[-1][1]
        comma = _COMMA.match(raw, end)
        left = raw[: spans[0][0]] + raw[comma.end() if comma else end :]
    else:
        end = spans[count - 1][1]
        left = raw[: spans[0][0]] + raw[raw.index(",", _skip(raw, end)) + 1 :]
    if _value(left) != value[count:]:
        raise NotEditable("the edit would change other values")
    return left


def statements_in(text: str) -> list[Statement]:
    """Return the statements of a valid text, in order."""
    return list(_statements(text))


def literal(value: Any) -> str:  # noqa: ANN401 - a TOML value
    """Return a string, a number, a truth value, an array, or a table of these as TOML."""
    if isinstance(value, Mapping):
        pairs = (f"{_key_text(key)} = {literal(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    # JSON escapes all control characters but DEL, which TOML does not allow in a string.
    return _text(value).replace("\x7f", "\\u007f")


def _statements(text: str) -> Iterator[Statement]:
    at = len(_BOM) if text.startswith(_BOM) else 0
    table: Keys = ()
    is_repeated = False
    while (at := _skip(text, at)) < len(text):
        if text[at] == "[":
            is_repeated = text.startswith("[[", at)
            opened = at + (2 if is_repeated else 1)
            table, closed = _key(text, opened)
            end = _line_end(text, closed)
            yield Statement(table, at, end, is_repeated=is_repeated)
        else:
            path, value_start, value_end = _pair(text, at)
            end = _line_end(text, value_end)
            whole = (*table, *path)
            yield Statement(whole, at, end, value_start, value_end, is_repeated=is_repeated)
            yield from _inner(text, value_start, whole)
        at = end


def _inner(text: str, at: int, path: Keys) -> Iterator[Statement]:
    """Yield the keys of an inline table, and of those in it."""
    if text[at] != "{":
        return
    at = _skip(text, at + 1)
    while text[at] != "}":
        inner, value_start, value_end = _pair(text, at)
        whole = (*path, *inner)
        yield Statement(whole, at, value_end, value_start, value_end, is_inline=True)
        yield from _inner(text, value_start, whole)
        at = _skip(text, value_end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _pair(text: str, at: int) -> tuple[Keys, int, int]:
    """Return the key at `at`, and the start and the end of its value."""
    path, end = _key(text, at)
    start = _blank(text, text.index("=", end) + 1)
    return path, start, _value_end(text, start)


def _key(text: str, at: int) -> tuple[Keys, int]:
    """Return the dotted key at `at`, and its end."""
    parts = []
    while True:
        at = _blank(text, at)
        match = _KEY_PART.match(text, at)
        if match is None:
            raise NotEditable("a key has an unusual form")
        part = match[0]
        parts.append(next(iter(parse_toml(f"{part} = 0"))) if part[0] in "\"'" else part)
        at = match.end()
        dot = _blank(text, at)
        if text[dot : dot + 1] != ".":
            return tuple(parts), at
        at = dot + 1


def _value_end(text: str, at: int) -> int:
    for pattern in _STRINGS:
        if match := pattern.match(text, at):
            return match.end()
    if text[at] == "[":
        for _, end in _items(text, at):
            at = end
        return text.index("]", _after_comma(text, at if text[at] != "[" else at + 1)) + 1
    if text[at] == "{":
        at = _skip(text, at + 1)
        while text[at] != "}":
            _, _, end = _pair(text, at)
            at = _after_comma(text, end)
        return at + 1
    match = _ATOM.match(text, at)
    if match is None:
        raise NotEditable("a value has an unusual form")
    return match.end()


def _items(text: str, at: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the positions of the items of the array at `at`."""
    at = _skip(text, at + 1)
    while text[at : at + 1] not in ("]", ""):
        end = _value_end(text, at)
        yield at, end
        at = _after_comma(text, end)


def _after_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at : at + 1] == "," else at


def _skip(text: str, at: int) -> int:
    match = _IDLE.match(text, at)
    return match.end() if match else at


def _blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _statement_at(text: str, keys: Keys) -> Statement | None:
    found = [s for s in _statements(text) if s.path == keys and s.value_start is not None]
    return found[0] if len(found) == 1 and not found[0].is_repeated else None


def _runs(text: str, statements: Sequence[Statement]) -> list[tuple[int, int]]:
    """Return the ranges of these statements, joined where nothing else lies between them."""
    runs: list[tuple[int, int]] = []
    for statement in statements:
        if statement.is_inline:
            continue
        if runs and not text[runs[-1][1] : statement.start].strip():
            runs[-1] = (runs[-1][0], statement.end)
        else:
            runs.append((statement.start, statement.end))
    return runs


def _cut_lines(text: str, start: int, end: int) -> str:
    """Return `text` without these lines, and without the blank line before a header."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    start -= len(before) if not before.strip(" \t") else 0
    is_last_line = not text[:end].endswith("\n")
    is_header = text[start:].lstrip(" \t").startswith("[")
    for _ in range(int(is_last_line) + int(is_header)):
        lead = text[:start]
        if not lead.endswith("\n"):
            break
        shorter = lead.removesuffix("\n").removesuffix("\r")
        if not is_last_line and shorter and not shorter.endswith("\n"):
            break  # the line before is not blank
        start = len(shorter)
    return text[:start] + text[end:]


def _reach(tables: dict[str, Any], keys: Keys) -> dict[str, Any]:
    for key in keys:
        tables = tables.setdefault(key, {})
        if not isinstance(tables, dict):
            raise NotEditable(f"{key} is not a table")
    return tables


def _value(raw: str) -> Any:  # noqa: ANN401 - a TOML value
    return parse(f"x = {raw}")["x"]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _written_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else literal(key)


def _key_text(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _text(key)


def _text(value: Any) -> str:  # noqa: ANN401
    return json.dumps(value, ensure_ascii=False)


def _verified(text: str, expected: dict[str, Any]) -> str:
    if _without_empty(parse(text)) != _without_empty(expected):
        raise NotEditable("the edit would change other values")
    return text


def _without_empty(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the values without empty tables: a header may make the tables around it."""
    cleaned = {
        key: _without_empty(value) if isinstance(value, dict) else value
        for key, value in tables.items()
    }
    return {key: value for key, value in cleaned.items() if value != {}}
