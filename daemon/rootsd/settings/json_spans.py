"""Insert values into JSON text and remove them, without a change to any other byte.

The text may have comments and trailing commas (JSONC), as the settings of many clients do. A
removal is the exact inverse of an insertion: the text is then as it was before. Each edit parses
its own result, and fails if the values are not the expected ones. So an edit loses nothing, even
if this module has a bug.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rootsd.core.parsing import MAX_LEVELS, Unparsable, check_levels, json_value_at, parse_json
from rootsd.settings.errors import NotEditable

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_BOM = "\ufeff"

Keys = tuple[str, ...]


class Node:
    """A value in the text, from `start` to `end`."""

    __slots__ = ("_children", "_parser", "end", "level", "start", "value")

    def __init__(self, parser: _Parser, start: int, end: int, value: Any, level: int) -> None:  # noqa: ANN401
        self._parser = parser
        self._children: list[Child] | None = None
        self.start, self.end, self.value, self.level = start, end, value, level

    @property
    def is_container(self) -> bool:
        """Whether this is an array or an object."""
        return isinstance(self.value, list | dict)

    @property
    def children(self) -> list[Child]:
        """The items of an array or the members of an object, in order."""
        if self._children is None:
            is_found = self.is_container
            self._children = self._parser.children(self.start, self.level)[0] if is_found else []
        return self._children


@dataclass(slots=True)
class Child:
    """An item of an array, or a member of an object, which begins at its `key`.

    `comma` is the position of the comma after it, or None.
    """

    start: int
    node: Node
    key: str | None
    comma: int | None = None


def parse(text: str) -> Node:
    """Return the value of `text` with its positions. Raises NotEditable."""
    parser = _Parser(text)
    start = parser.skip(len(_BOM) if text.startswith(_BOM) else 0)
    node = parser.value(start, 0)
    if parser.skip(node.end) != len(text):
        raise NotEditable("there is text after the end of the value")
    try:
        check_levels(node.value)
    except Unparsable as error:
        raise NotEditable(str(error)) from error
    return node


class _Parser:
    """Finds the positions of values.

    The files of some clients have many megabytes. So a value without comments is parsed by the
    standard library, and the positions in it are found only where somebody asks for its children.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def skip(self, at: int) -> int:
        match = _TRIVIA.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, level: int) -> Node:
        if level > MAX_LEVELS:
            raise NotEditable("it is nested too deeply")
        if self.text[at : at + 1] in ("{", "["):
            return self._container(at, level)
        match = _STRING.match(self.text, at) or _ATOM.match(self.text, at)
        if match is None:
            raise self._error(at)
        try:
            return Node(self, at, match.end(), parse_json(match[0]), level)
        except ValueError:
            raise self._error(at) from None

    def _container(self, at: int, level: int) -> Node:
        try:
            value, end = json_value_at(self.text, at, _unique)
        except Unparsable:  # it has comments, or is wrong
            children, end = self.children(at, level)
            value = _value_of(children, is_object=self.text[at] == "{")
        return Node(self, at, end, value, level)

    def children(self, start: int, level: int) -> tuple[list[Child], int]:
        """Return the children of the array or object at `start`, and its end."""
        is_object = self.text[start] == "{"
        closing = "}" if is_object else "]"
        found: list[Child] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != closing:
            if found and found[-1].comma is None:
                raise self._error(at)
            child = (
                self._member(at, level)
                if is_object
                else Child(at, self.value(at, level + 1), None)
            )
            found.append(child)
            at = self.skip(child.node.end)
            if self.text[at : at + 1] == ",":
                child.comma = at
                at = self.skip(at + 1)
        return found, at + 1

    def _member(self, at: int, level: int) -> Child:
        match = _STRING.match(self.text, at)
        if match is None:
            raise self._error(at)
        colon = self.skip(match.end())
        if self.text[colon : colon + 1] != ":":
            raise self._error(colon)
        try:
            key = parse_json(match[0])
        except ValueError:
            raise self._error(at) from None
        return Child(at, self.value(self.skip(colon + 1), level + 1), key)

    def _error(self, at: int) -> NotEditable:
        return NotEditable(f"it is not JSON: line {self.text.count(chr(10), 0, at) + 1}")


def _value_of(children: Sequence[Child], *, is_object: bool) -> Any:  # noqa: ANN401
    if is_object:
        return _unique([(child.key or "", child.node.value) for child in children])
    return [child.node.value for child in children]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with these members. Raises NotEditable if a key is there twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise NotEditable(f"the key {json.dumps(twice)} is there twice")
    return found


def _copied(value: Any, keys: Keys) -> Any:  # noqa: ANN401 - a JSON value
    """Return a copy of `value` in which everything on the way of `keys` is copied, too."""
    copy = value.copy() if isinstance(value, dict | list) else value
    if keys and isinstance(copy, dict) and keys[0] in copy:
        copy[keys[0]] = _copied(copy[keys[0]], keys[1:])
    return copy


@dataclass(frozen=True, slots=True)
class Items:
    """Entries of one container: values of the array, or members of the object, at `keys`."""

    keys: Keys
    values: Sequence[Any] | Mapping[str, Any]

    @property
    def is_mapping(self) -> bool:
        """Whether the container is an object."""
        return isinstance(self.values, Mapping)


def contents(text: str, keys: Keys, *, is_mapping: bool) -> list[Any] | dict[str, Any]:
    """Return the array or the object at `keys`, empty if it is missing.

    Raises NotEditable if another kind of value is there.
    """
    node, missing = _find(parse(text), keys)
    if missing:
        return {} if is_mapping else []
    return _checked(node, keys, is_mapping=is_mapping).value  # type: ignore[no-any-return]


def insert(text: str, items: Items) -> tuple[str, list[Keys]]:
    """Return `text` with `items` at the end of their container, and the containers that are new.

    The entries must not be there yet. Raises NotEditable.
    """
    root = parse(text)
    node, missing = _find(root, items.keys)
    existing = items.keys[: len(items.keys) - len(missing)]
    container = _checked(node, existing, is_mapping=items.is_mapping or bool(missing))
    expected = _copied(root.value, items.keys)
    made = [items.keys[: len(existing) + count + 1] for count in range(len(missing))]
    target = _reach(expected, items.keys, is_mapping=items.is_mapping)
    if isinstance(items.values, Mapping):
        target.update(items.values)
        pieces = [_member(text, container, *member) for member in items.values.items()]
    else:
        target.extend(items.values)
        pieces = [_text(value) for value in items.values]
    if missing:
        value = expected
        for key in items.keys[: len(existing) + 1]:
            value = value[key]
        pieces = [_member(text, container, items.keys[len(existing)], value)]
    return _verified(_appended(text, container, pieces), expected), made


def remove(text: str, items: Items) -> str:
    """Return `text` without `items`.

    Entries that are missing or have another value are left alone. Raises NotEditable.
    """
    values = items.values
    for name in values:
        node, missing = _find(parse(text), items.keys)
        if missing:
            break
        container = _checked(node, items.keys, is_mapping=items.is_mapping)
        at = _index(container, name, values[name] if isinstance(values, Mapping) else None)
        if at is not None:
            text = _without(text, items.keys, at)
    return text


def remove_empty(text: str, made: Sequence[Keys]) -> tuple[str, list[Keys]]:
    """Return `text` without those containers in `made` that are empty, and the others of `made`
    that are there. Raises NotEditable.
    """
    left = []
    for keys in sorted(made, key=len, reverse=True):
        node, missing = _find(parse(text), keys)
        if missing:
            continue
        has_comment = bool(text[node.start + 1 : node.end - 1].strip())
        if not node.is_container or node.value or has_comment:
            left.append(keys)
            continue
        parent, _ = _find(parse(text), keys[:-1])
        at = next(n for n, child in enumerate(parent.children) if child.key == keys[-1])
        text = _without(text, keys[:-1], at)
    return text, left


def remove_member(text: str, keys: Keys) -> str:
    """Return `text` without the member at `keys`, if it is there. Raises NotEditable."""
    container, missing = _find(parse(text), keys[:-1])
    if missing or not isinstance(container.value, dict):
        return text
    for at, child in enumerate(container.children):
        if child.key == keys[-1]:
            return _without(text, keys[:-1], at)
    return text


def raw_at(text: str, keys: Keys) -> str | None:
    """Return the text of the value at `keys`, or None if there is none. Raises NotEditable."""
    node, missing = _find(parse(text), keys)
    return None if missing else text[node.start : node.end]


def line_at(text: str, keys: Sequence[str | int]) -> int:
    """Return the line of the value at `keys`, or of what there is of it. Raises NotEditable."""
    at = 0
    for depth, key in enumerate(keys):
        found = _members(text, tuple(keys[:depth])).get(key)
        if found is None:
            break
        at = found.start
    return bisect_left(_line_ends(text), at) + 1


@lru_cache(maxsize=1)
def _line_ends(text: str) -> list[int]:
    return [found.start() for found in re.finditer("\n", text)]


@lru_cache(maxsize=8)
def _members(text: str, keys: tuple[str | int, ...]) -> Mapping[str | int, Child]:
    """Return what is in the container at `keys`. A report asks for it once for each line."""
    node = _members(text, keys[:-1])[keys[-1]].node if keys else parse(text)
    return {n if child.key is None else child.key: child for n, child in enumerate(node.children)}


def replace_at(text: str, keys: Keys, raw: str) -> str:
    """Return `text` with `raw` in place of the value at `keys`. Raises NotEditable."""
    root = parse(text)
    node, missing = _find(root, keys)
    if missing or not keys:
        raise NotEditable(f"{'.'.join(keys)} is not there")
    expected = _copied(root.value, keys)
    target = expected
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = parse(raw).value
    return _verified(text[: node.start] + raw + text[node.end :], expected)


def insert_beside(text: str, keys: Keys, name: str, value: Sequence[str]) -> str:
    """Return `text` with the member `name` at the end of the object that has `keys`.

    Raises NotEditable.
    """
    return insert(text, Items(keys[:-1], {name: list(value)}))[0]


def literal(value: str | Sequence[str]) -> str:
    """Return a string, or an array of strings, as JSON."""
    return json.dumps(value, ensure_ascii=False)


def without_first(raw: str, count: int) -> str:
    """Return the text of an array without its first `count` items. Raises NotEditable."""
    node = parse(raw)
    if not isinstance(node.value, list) or len(node.value) < count:
        raise NotEditable("it is not an array with these items")
    last = node.children[count - 1]
    end = last.node.end if last.comma is None else last.comma + 1
    return _verified(raw[: node.children[0].start] + raw[end:], node.value[count:])


def _find(root: Node, keys: Keys) -> tuple[Node, Keys]:
    """Return the node at the longest prefix of `keys`, and the other keys."""
    node = root
    for depth, key in enumerate(keys):
        if not isinstance(node.value, dict):
            raise NotEditable(f"{'.'.join(keys[:depth]) or 'the file'} is not an object")
        found = next((child.node for child in node.children if child.key == key), None)
        if found is None:
            return node, keys[depth:]
        node = found
    return node, ()


def _checked(node: Node, keys: Keys, *, is_mapping: bool) -> Node:
    if not isinstance(node.value, dict if is_mapping else list):
        kind = "an object" if is_mapping else "an array"
        raise NotEditable(f"{'.'.join(keys) or 'the file'} is not {kind}")
    return node


def _reach(value: Any, keys: Keys, *, is_mapping: bool) -> Any:  # noqa: ANN401 - a JSON value
    """Return the container at `keys` of `value`, made if it is missing."""
    for key in keys[:-1]:
        value = value.setdefault(key, {})
    return value.setdefault(keys[-1], {} if is_mapping else [])


def _index(container: Node, name: Any, value: str | None) -> int | None:  # noqa: ANN401
    for at, child in enumerate(container.children):
        wanted = name if value is None else value
        if child.key == (None if value is None else name) and child.node.value == wanted:
            return at
    return None


def _member(text: str, container: Node, key: str, value: Any) -> str:  # noqa: ANN401
    """Return the text of a new member. An object has several lines if the container has."""
    base = _indent_of(text, container.children[-1].start) if container.children else None
    if base is None or not isinstance(value, dict):
        return f"{_text(key)}: {_text(value)}"
    unit = "\t" if base.startswith("\t") else "  "
    lines = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{base}")
    return f"{_text(key)}: {lines}".replace("\n", _newline(text))


def _appended(text: str, container: Node, pieces: Sequence[str]) -> str:
    """Return `text` with `pieces` after the last child of `container`."""
    if not container.children:
        at = container.start + 1
        return text[:at] + ", ".join(pieces) + text[at:]
    last = container.children[-1]
    indent = _indent_of(text, last.start)
    lead = " " if indent is None else f"{_newline(text)}{indent}"
    added = ",".join(f"{lead}{piece}" for piece in pieces)
    if last.comma is not None:
        at = (
            _line_end(text, last.comma + 1, container.end - 1)
            if indent is not None
            else last.comma + 1
        )
        return f"{text[:at]}{added},{text[at:]}"
    end = last.node.end
    at = _line_end(text, end, container.end - 1) if indent is not None else end
    return f"{text[:end]},{text[end:at]}{added}{text[at:]}"


def _without(text: str, keys: Keys, at: int) -> str:
    """Return `text` without child `at` of the container at `keys`."""
    root = parse(text)
    container, _ = _find(root, keys)
    child = container.children[at]
    expected = _copied(root.value, keys)
    target = expected
    for key in keys:
        target = target[key]
    del target[at if child.key is None else child.key]
    before = container.children[at - 1] if at else None
    start, end = _blank_start(text, child.start), child.node.end
    if child.comma is not None:
        end = child.comma + 1
        if at == 0 and start == child.start:  # the next item of the same line moves up
            rest = len(text[end:]) - len(text[end:].lstrip(" \t"))
            end += rest
        return _verified(text[:start] + text[end:], expected)
    if before is not None and before.comma is not None:
        comma = before.comma
        text = text[:comma] + text[comma + 1 : start] + text[end:]
    else:
        text = text[:start] + text[end:]
    return _verified(text, expected)


def _blank_start(text: str, at: int) -> int:
    """Return the start of the blanks before `at`, with one line end."""
    start = len(text[:at].rstrip(" \t"))
    if text[:start].endswith("\n"):
        start -= 1
        return start - 1 if text[:start].endswith("\r") else start
    return start if text[:start].endswith((",", "/")) else at


def _line_end(text: str, at: int, limit: int) -> int:
    """Return where the comment ends that follows on the same line, or `at` if none does."""
    match = re.compile(r"[ \t]*(//[^\r\n]*|(/\*((?!\*/)[^\r\n])*\*/)+)").match(text, at, limit)
    return match.end() if match else at


def _indent_of(text: str, at: int) -> str | None:
    """Return the blanks before `at` if they begin its line, else None."""
    line = text.rfind("\n", 0, at) + 1
    blanks = text[line:at]
    return blanks if line and not blanks.strip(" \t") else None


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _text(value: Any) -> str:  # noqa: ANN401 - a JSON value
    return json.dumps(value, ensure_ascii=False)


def _verified(text: str, expected: object) -> str:
    if parse(text).value != expected:
        raise NotEditable("the edit would change other values")
    return text
