"""Edit TOML text, and tell the line of each key, without a change to another byte.

A scanner finds the statements: the headers of tables, and the keys with the positions of their
values. It only has to know where strings, comments, and brackets end, because the text is parsed
by `tomllib` before.

Source: TOML 1.0 (https://toml.io/en/v1.0.0).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.settings.errors import NotEditable

KeyPath = tuple[str | int, ...]
"""The names of tables and keys from the outside in. A number is an index of an array, from 0. To
edit, the `name` that a table of an array has serves, too."""

_BOM = "\ufeff"
_COMMA = re.compile(r"[ \t]*,")
_BLANK = re.compile(r"[ \t]*")
_IDLE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*|\r)?\n")
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


class Statement(NamedTuple):
    """A header, or a value with its key, if it has one: an item of an array has none.

    `path` has all keys from the top. `value` is the place of the value; None for a header. What is
    inside an array or an inline table lies inside the statement of that value. `end` is the end of
    the line for a header and for a key with its own line, and else the end of the value.
    """

    path: KeyPath
    start: int
    end: int
    value: slice | None = None
    is_inline: bool = False


def parse(text: str) -> dict[str, Any]:
    """Return the values of `text`. Raises NotEditable."""
    try:
        return parse_toml(text.removeprefix(_BOM))
    except Unparsable as error:
        raise NotEditable(f"it is not TOML: {error}") from error


@lru_cache(maxsize=1)
def find_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line of each table, key, and item in the valid `text`, counted from 1."""
    lines: dict[KeyPath, int] = {}
    line, at = 1, 0
    for statement in _statements(text):
        line += text.count("\n", at, statement.start)
        at = statement.start
        for length in range(1, len(statement.path) + 1):
            lines.setdefault(statement.path[:length], line)
    return lines


def line_at(text: str, keys: KeyPath) -> int:
    """Return the line of a key, a table, or an item, or of what there is of it."""
    lines = find_lines(text)
    return next((lines[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in lines), 1)


def insert_table(text: str, keys: KeyPath, values: Mapping[str, Any]) -> str:
    """Return `text` with a table at `keys` below everything else. Raises NotEditable."""
    expected = parse(text)
    target = _reach(expected, keys[:-1])
    if keys[-1] in target:
        raise NotEditable(f"{_shown(keys)} is there already")
    target[keys[-1]] = dict(values)
    return _verified(_with_block(text, f"[{_dotted(keys)}]", values), expected)


def append_table(text: str, keys: KeyPath, values: Mapping[str, Any]) -> str:
    """Return `text` with a table at the end of the array at `keys`. Raises NotEditable."""
    expected = parse(text)
    array = _reach(expected, keys[:-1]).setdefault(keys[-1], [])
    if not isinstance(array, list):
        raise NotEditable(f"{_shown(keys)} is not an array of tables")
    array.append(dict(values))
    inline = _statement_at(text, keys)
    if inline is None:
        return _verified(_with_block(text, f"[[{_dotted(keys)}]]", values), expected)
    items = [statement for statement in _statements(text) if statement.path[:-1] == keys]
    if not items:
        return replace_at(text, keys, f"[{literal(values)}]")
    return _verified(_with_item(text, items[-1], literal(values)), expected)


def set_value(text: str, keys: KeyPath, value: Any) -> str:  # noqa: ANN401 - a TOML value
    """Return `text` with `value` at `keys`, a key in a table. A missing table is added.

    A new key goes behind the others. Raises NotEditable.
    """
    if _statement_at(text, keys) is not None:
        return replace_at(text, keys, literal(value))
    expected = parse(text)
    table, name = keys[:-1], keys[-1]
    target = _reach(expected, table)
    if name in target:
        raise NotEditable(f"{_shown(keys)} is a table there")
    target[name] = value
    beside = [
        statement
        for statement in _statements(text)
        if statement.path == (table if statement.value is None else (*table, *statement.path[-1:]))
    ]
    if beside:
        return _verified(_with_key(text, beside[-1], str(name), value), expected)
    if _statement_at(text, table) is not None:  # an empty table, as in `server = {}`
        return _verified(replace_at(text, table, literal({name: value})), expected)
    return insert_table(text, table, {str(name): value})


def remove_member(text: str, keys: KeyPath) -> str:
    """Return `text` without the key or the table at `keys`, and without all that is in it.

    Comments between two tables stay. Raises NotEditable.
    """
    expected = parse(text)
    keys = _by_index(expected, keys)
    if _found(expected, keys) is None:
        return text
    container = _found(expected, keys[:-1])
    del container[keys[-1]]
    statements = [s for s in _statements(text) if s.path[: len(keys)] == keys]
    if statements and statements[0].path == keys and statements[0].is_inline:
        return _verified(_without_inline(text, statements[0]), expected)
    if container == []:  # no header makes the array any more
        del _found(expected, keys[:-2])[keys[-2]]
    for start, end in reversed(_runs(text, statements)):
        text = _cut_lines(text, start, end)
    return _verified(text, expected)


def raw_at(text: str, keys: KeyPath) -> str | None:
    """Return the text of the value at `keys`, or None if no statement sets it by itself.

    Raises NotEditable.
    """
    found = _statement_at(text, _by_index(parse(text), keys))
    return None if found is None or found.value is None else text[found.value]


def replace_at(text: str, keys: KeyPath, raw: str) -> str:
    """Return `text` with `raw` in place of the value at `keys`. Raises NotEditable."""
    expected = parse(text)
    keys = _by_index(expected, keys)
    found = _statement_at(text, keys)
    if found is None or found.value is None:
        raise NotEditable(f"{_shown(keys)} is not a plain value there")
    _found(expected, keys[:-1])[keys[-1]] = _value(raw)
    return _verified(f"{text[: found.value.start]}{raw}{text[found.value.stop :]}", expected)


def insert_beside(text: str, keys: KeyPath, name: str, value: Any) -> str:  # noqa: ANN401
    """Return `text` with the key `name` after the one at `keys`, in the same table.

    Raises NotEditable.
    """
    expected = parse(text)
    keys = _by_index(expected, keys)
    beside = _statement_at(text, keys)
    if beside is None:
        raise NotEditable(f"{_shown(keys)} is not a plain value there")
    _found(expected, keys[:-1])[name] = value
    return _verified(_with_key(text, beside, name, value), expected)


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


def literal(value: Any) -> str:  # noqa: ANN401 - a TOML value
    """Return a string, a number, a truth value, an array, or a table of these as TOML."""
    if isinstance(value, Mapping):
        pairs = (f"{_written_key(key)} = {literal(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    # JSON escapes all control characters but DEL, which TOML does not allow in a string.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a valid text, in order."""
    at = len(_BOM) if text.startswith(_BOM) else 0
    table: KeyPath = ()
    lengths: Counter[KeyPath] = Counter()  # of the arrays of tables
    while (at := _skip(text, at)) < len(text):
        if text[at] == "[":
            is_array = text.startswith("[[", at)
            keys, closed = _key(text, at + (2 if is_array else 1))
            if is_array:
                lengths[*_with_indexes(keys[:-1], lengths), keys[-1]] += 1
            table = _with_indexes(keys, lengths)
            end = _line_end(text, closed)
            yield Statement(table, at, end)
        else:
            keys, value = _pair(text, at)
            end = _line_end(text, value.stop)
            yield Statement((*table, *keys), at, end, value)
            yield from _inner(text, value.start, (*table, *keys))
        at = end


def _with_indexes(keys: Sequence[str], lengths: Mapping[KeyPath, int]) -> KeyPath:
    """Return the path of a table. A key of an array of tables means the last table in it."""
    path: KeyPath = ()
    for key in keys:
        path = (*path, key)
        if length := lengths.get(path, 0):
            path = (*path, length - 1)
    return path


def _inner(text: str, at: int, path: KeyPath) -> Iterator[Statement]:
    """Yield the items of an array and the keys of an inline table, and what is in these."""
    if text[at] == "[":
        for index, (start, end) in enumerate(_items(text, at)):
            yield Statement((*path, index), start, end, slice(start, end), is_inline=True)
            yield from _inner(text, start, (*path, index))
    elif text[at] == "{":
        at = _skip(text, at + 1)
        while text[at] != "}":
            keys, value = _pair(text, at)
            yield Statement((*path, *keys), at, value.stop, value, is_inline=True)
            yield from _inner(text, value.start, (*path, *keys))
            at = _after_comma(text, value.stop)


def _pair(text: str, at: int) -> tuple[Sequence[str], slice]:
    """Return the key at `at`, and the place of its value."""
    keys, end = _key(text, at)
    start = _blank(text, text.index("=", end) + 1)
    return keys, slice(start, _value_end(text, start))


def _key(text: str, at: int) -> tuple[Sequence[str], int]:
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
            return parts, at
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
            _, value = _pair(text, at)
            at = _after_comma(text, value.stop)
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


def _statement_at(text: str, keys: KeyPath) -> Statement | None:
    """Return the statement of the value at `keys`; None if a header makes it, or nothing."""
    return next((s for s in _statements(text) if s.path == keys and s.value is not None), None)


def _with_block(text: str, header: str, values: Mapping[str, Any]) -> str:
    """Return `text` with a table at its end. The text ends in a newline if it did before."""
    newline = _newline(text)
    lines = [header, *(f"{_written_key(key)} = {literal(value)}" for key, value in values.items())]
    block = newline.join(lines)
    if not text.removeprefix(_BOM):
        return f"{text}{block}{newline}"
    if text.endswith("\n"):
        return f"{text}{newline}{block}{newline}"
    return f"{text}{newline}{newline}{block}"


def _with_key(text: str, beside: Statement, name: str, value: Any) -> str:  # noqa: ANN401
    """Return `text` with a key behind another one, or behind the header of its table."""
    assignment = f"{_written_key(name)} = {literal(value)}"
    if beside.is_inline:
        return f"{text[: beside.end]}, {assignment}{text[beside.end :]}"
    prefix = ""
    if beside.value is not None:
        # The key may be dotted, as in `server.command = "x"`. The new one then has the same start.
        written = text[beside.start : beside.value.start].rpartition("=")[0].rstrip()
        *before, _ = list(_KEY_PART.finditer(written))
        prefix = written[: before[-1].end()] + "." if before else ""
    line = f"{_lead(text, beside)}{prefix}{assignment}"
    newline = _newline(text)
    if text[: beside.end].endswith("\n"):
        return f"{text[: beside.end]}{line}{newline}{text[beside.end :]}"
    return f"{text[: beside.end]}{newline}{line}"


def _with_item(text: str, last: Statement, raw: str) -> str:
    """Return `text` with an item behind the last one of an array, also in a line of its own."""
    end, line_end = _ends(text, last)
    if line_end is None:
        return f"{text[: last.end]}, {raw}{text[last.end :]}"
    line = f"{_lead(text, last)}{raw}{',' if end > last.end else ''}{_newline(text)}"
    return f"{text[: last.end]},{text[end:line_end]}{line}{text[line_end:]}"


def _without_inline(text: str, found: Statement) -> str:
    """Return `text` without an item or a key, and without one comma beside it."""
    end, line_end = _ends(text, found)
    if line_end is not None:
        return _cut_lines(text, found.start, line_end)
    before = text[: found.start].rstrip(" \t")
    if before.endswith(","):
        return before[:-1] + text[found.end :]
    return text[: found.start] + text[_blank(text, end) :]


def _ends(text: str, found: Statement) -> tuple[int, int | None]:
    """Return the end of an item or a key with its comma, and that of its lines.

    The second is None if others are in these lines.
    """
    comma = _COMMA.match(text, found.end)
    end = comma.end() if comma else found.end
    rest = None if _lead(text, found).strip(" \t") else _REST_OF_LINE.match(text, end)
    return end, rest.end() if rest else None


def _lead(text: str, found: Statement) -> str:
    """Return what is before a statement in its line."""
    return text[text.rfind("\n", 0, found.start) + 1 : found.start]


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


def _reach(tables: dict[str, Any], keys: KeyPath) -> Any:  # noqa: ANN401 - a TOML value
    """Return the table at `keys`, made if it is missing. Raises NotEditable."""
    found: Any = tables
    for key in keys:
        found = found.setdefault(key, {}) if isinstance(found, dict) else _found(found, (key,))
    if not isinstance(found, dict):
        raise NotEditable(f"{_shown(keys)} is not a table")
    return found


def _by_index(value: Any, keys: KeyPath) -> KeyPath:  # noqa: ANN401 - a TOML value
    """Return `keys` with the index of a table of an array in place of the `name` in the table.

    Raises NotEditable.
    """
    found: list[str | int] = []
    for key in keys:
        names = [_found(item, ("name",)) for item in value] if isinstance(value, list) else []
        if names.count(key) > 1:
            raise NotEditable(f"{key} is there twice")
        found.append(names.index(key) if key in names else key)
        value = _found(value, (found[-1],))
    return tuple(found)


def _found(value: Any, keys: KeyPath) -> Any:  # noqa: ANN401 - a TOML value
    """Return the value at `keys`, or None if there is none."""
    for key in keys:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return None
    return value


def _value(raw: str) -> Any:  # noqa: ANN401 - a TOML value
    return parse(f"x = {raw}")["x"]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _written_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else literal(key)


def _dotted(keys: KeyPath) -> str:
    return ".".join(_written_key(str(key)) for key in keys)


def _shown(keys: KeyPath) -> str:
    return ".".join(map(str, keys))


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
