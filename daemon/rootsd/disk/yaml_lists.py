"""Read one list of strings at the top of a YAML file, such as the `packages` of pnpm.

A parser for all of YAML is large, and a hostile file can make it slow. So this reads a subset, in
linear time: block and flow lists, plain and quoted strings, comments, and any other keys around
them. It refuses what it does not read for certain: anchors, aliases, and tags in the list, several
documents, strings of several lines, and a key that is there twice. From a valid text, it never
returns another list than a YAML parser does. Source: YAML 1.2, chapters 7 and 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType


class UnreadYaml(ValueError):
    """The text is not in the subset that is read here."""


_MAX_DEPTH = 8
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_OTHER_BREAKS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]")
_QUOTED = re.compile(r"""'((?:[^']|'')*)'|"((?:[^"\\]|\\.)*)\"""")
_KEY = re.compile(
    r"""([A-Za-z_][\w.@/$-]*|'(?:[^']|'')*'|"(?:[^"\\]|\\.)*")[ ]*:(?=\s|$)[ \t]*(.*)"""
)
_ITEM = re.compile(r"( *)-(?:[ \t]+(.*)|)$")
_REST = re.compile(r"[ \t]*(?:$|[ \t]#|(?<=^)#)")
_MARKER = re.compile(r"(?:---|\.\.\.)(?=\s|$)")
_BLOCK_SCALAR = re.compile(r"(?:^|[:\-][ \t]+)[|>][-+\d]{0,2}[ \t]*(?:#.*)?$")
# A plain string starts with none of the indicators, and `-`, `?`, and `:` need a sign after them.
_PLAIN_START = re.compile(r"[^\s,\[\]{}#&*!|>'\"%@`?:-]|[?:-](?=[^\s,\[\]{}])")
_PLAIN_FLOW = re.compile(
    r"(?:[^\s,\[\]{}:#]|:(?=[^\s,\[\]{}])|(?<=\S)#|[ \t]+(?=[^\s,\[\]{}:#]))*"
)
# Where a string or a collection begins in a line that is only skipped.
_SKIPPED = re.compile(r"""(?:(?<=^)|(?<=[\s\[{,]))(?:(["'])|#.*)|([\[{])|([\]}])""")
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.))")
_ESCAPED: Mapping[str, str] = MappingProxyType(
    {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "/": "/", " ": " ", "0": "\0"}
)

_Flow = str | list["_Flow"] | dict[str, "_Flow"]


def yaml_list(text: str, key: str) -> list[str]:
    """Return the strings of the list `key` at the top; none if it is absent or no list.

    Raises UnreadYaml.
    """
    text = text.removeprefix("\ufeff")
    if _OTHER_BREAKS.search(text):
        raise UnreadYaml("control characters")
    lines = _body(_LINE_BREAK.split(text))
    first = next((line for line in lines if not _is_blank(line)), "")
    if first.startswith("{"):
        flow = _FlowReader("\n".join(lines).lstrip())
        found = flow.value(0)
        flow.end()
        return _strings(found.get(key, [])) if isinstance(found, dict) else []
    values = [value for name, value in _entries(lines) if name == key]
    if len(values) > 1:
        raise UnreadYaml("a key is there twice")
    return _list_value(values[0]) if values else []


def _body(lines: list[str]) -> list[str]:
    """Return the lines of the only document."""
    start, at = 0, 0
    while at < len(lines) and (_is_blank(lines[at]) or lines[at].startswith("%")):
        at += 1
    if at < len(lines) and lines[at].startswith("---") and _MARKER.match(lines[at]):
        if not _REST.match(lines[at][3:]):
            raise UnreadYaml("text after ---")
        start = at + 1
    elif any(line.startswith("%") for line in lines[:at]):
        raise UnreadYaml("a directive without a document")
    for at in range(start, len(lines)):
        if _MARKER.match(lines[at]):
            if lines[at].startswith("...") and all(map(_is_blank, lines[at + 1 :])):
                return lines[start:at]
            raise UnreadYaml("several documents")
    return lines[start:]


def _is_blank(line: str) -> bool:
    bare = line.lstrip(" \t")
    return not bare or bare.startswith("#")


def _entries(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each key at the top with the lines of its value. The first is the rest of its line."""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if _is_blank(line):
            continue
        found = _KEY.match(line)
        if found is None:
            raise UnreadYaml("no key at the top")
        value = [found[2]]
        skip = _Skipper()
        skip.line(found[2], 0)
        while at < len(lines) and (skip.is_open or _belongs(lines[at], value)):
            skip.line(lines[at], _indent(lines[at]))
            value.append(lines[at])
            at += 1
        if skip.is_open:
            raise UnreadYaml("a collection without an end")
        yield _unquote(found[1]), value


def _belongs(line: str, value: list[str]) -> bool:
    """Return whether a line belongs to the value before it and not to the next key."""
    if _is_blank(line) or line[0] in " \t":
        return True
    return _ITEM.match(line) is not None and not value[0].partition("#")[0].strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


class _Skipper:
    """Follows the lines of a value, to know whether a flow collection is still open."""

    def __init__(self) -> None:
        self._depth = 0
        self._literal: int | None = None

    @property
    def is_open(self) -> bool:
        return self._depth > 0

    def line(self, line: str, indent: int) -> None:
        """Read one line. Raises UnreadYaml for a string of several lines."""
        if self._literal is not None and (not line.strip() or indent > self._literal):
            return
        self._literal = None
        at, first = 0, len(line) - len(line.lstrip(" \t"))
        while (found := _SKIPPED.search(line, at)) is not None:
            at = found.end()
            if found[1] is not None:
                if not self._depth and not _starts_node(line, found.start(), first):
                    continue
                quoted = _QUOTED.match(line, found.start())
                if quoted is None:
                    raise UnreadYaml("a string of several lines")
                at = quoted.end()
            elif found[2] is not None:
                # In a block, a bracket in the middle of a string is a usual character.
                self._depth += bool(self._depth or _starts_node(line, found.start(), first))
            elif found[3] is not None:
                self._depth -= bool(self._depth)
            else:
                break  # a comment
        if not self._depth and _BLOCK_SCALAR.search(line):
            self._literal = indent


_BEFORE_NODE = re.compile(r"(?:^|[:?-][ \t]+|[&!]\S*[ \t]+)[ \t]*$")


def _starts_node(line: str, at: int, first: int) -> bool:
    """Return whether a node may start at a position of a line in a block.

    `first` is the position of the first sign that is not blank.
    """
    return at <= first or _BEFORE_NODE.search(line, max(0, at - 64), at) is not None


def _list_value(value: list[str]) -> list[str]:
    first, rest = value[0], value[1:]
    if first.startswith("["):
        flow = _FlowReader("\n".join(value))
        found = flow.value(0)
        flow.end()
        return _strings(found)
    if _REST.match(first):
        return list(_block_items(rest))
    if first[0] in "&*!|>":
        raise UnreadYaml("an anchor, an alias, a tag, or a text of several lines")
    return []


def _block_items(lines: list[str]) -> Iterator[str]:
    indent: int | None = None
    for line in lines:
        if _is_blank(line):
            continue
        found = _ITEM.match(line)
        if found is None:
            if indent is None:
                return  # a mapping, and no list
            raise UnreadYaml("no item of the list")
        if indent is not None and len(found[1]) != indent:
            raise UnreadYaml("a list in the list")
        indent = len(found[1])
        yield _block_string(found[2] or "")


def _block_string(text: str) -> str:
    """Return the string of one line in a block list."""
    if text[:1] in ("'", '"'):
        quoted = _QUOTED.match(text)
        if quoted is None or not _REST.match(text[quoted.end() :]):
            raise UnreadYaml("a string of several lines, or a key")
        return _unquote(quoted[0])
    bare = re.split(r"(?:(?<=^)|(?<=[ \t]))#", text, maxsplit=1)[0].rstrip(" \t")
    if not _PLAIN_START.match(bare) or re.search(r":(?:\s|$)", bare):
        raise UnreadYaml("no string")
    return bare


def _strings(found: _Flow) -> list[str]:
    if not isinstance(found, list):
        return []
    strings = [each for each in found if isinstance(each, str)]
    if len(strings) < len(found):
        raise UnreadYaml("no string")
    return strings


def _unquote(text: str) -> str:
    """Return the string that a quoted text, or a plain one, stands for."""
    if text.startswith("'"):
        text = text[1:-1].replace("''", "'")
    elif text.startswith('"'):
        text = _ESCAPE.sub(_unescape, text[1:-1])
    if "\n" in text:
        raise UnreadYaml("a string of several lines")
    return text


def _unescape(found: re.Match[str]) -> str:
    if (code := found[1] or found[2]) is not None:
        return chr(int(code, 16))
    if found[3] not in _ESCAPED:
        raise UnreadYaml("an escape")
    return _ESCAPED[found[3]]


class _FlowReader:
    """Reads a flow collection: lists and mappings of strings in brackets."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def end(self) -> None:
        """Raise UnreadYaml if anything but comments follows."""
        rest = self._text[self._at :].split("\n")
        if not _REST.match(rest[0]) or not all(map(_is_blank, rest[1:])):
            raise UnreadYaml("text after a collection")

    def value(self, depth: int) -> _Flow:
        """Read the next value. Raises UnreadYaml."""
        self._skip_blanks()
        sign = self._text[self._at : self._at + 1]
        if depth > _MAX_DEPTH:
            raise UnreadYaml("too deep")
        if sign == "[":
            return self._sequence(depth)
        if sign == "{":
            return self._mapping(depth)
        if sign in ("'", '"'):
            quoted = _QUOTED.match(self._text, self._at)
            if quoted is None:
                raise UnreadYaml("a string without an end")
            self._at = quoted.end()
            return _unquote(quoted[0])
        if not _PLAIN_START.match(self._text, self._at):
            raise UnreadYaml("no string")
        plain = _PLAIN_FLOW.match(self._text, self._at)
        end = plain.end() if plain is not None else self._at
        text, self._at = self._text[self._at : end], end
        if not text:
            raise UnreadYaml("no string")
        return text

    def _sequence(self, depth: int) -> list[_Flow]:
        found: list[_Flow] = []
        self._at += 1
        while not self._takes("]"):
            found.append(self.value(depth + 1))
            if not self._takes(","):
                self._need("]")
                break
        return found

    def _mapping(self, depth: int) -> dict[str, _Flow]:
        found: dict[str, _Flow] = {}
        self._at += 1
        while not self._takes("}"):
            key = self.value(depth + 1)
            if not isinstance(key, str) or key in found or not self._takes(":"):
                raise UnreadYaml("no key")
            found[key] = self.value(depth + 1)
            if not self._takes(","):
                self._need("}")
                break
        return found

    def _takes(self, sign: str) -> bool:
        self._skip_blanks()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += 1
        return True

    def _need(self, sign: str) -> None:
        if not self._takes(sign):
            raise UnreadYaml(f"no {sign}")

    def _skip_blanks(self) -> None:
        found = _BLANKS.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at


_BLANKS = re.compile(r"(?:[ \t\n]|(?:(?<=\s)|(?<=^))#[^\n]*)*")
