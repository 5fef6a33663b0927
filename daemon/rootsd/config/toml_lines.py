"""Find the line of each key in a TOML text.

Python's TOML parsers report no positions. This module reads a text that they have accepted, so it
needs to recognize only comments, strings, brackets, and line ends. It finds tables, arrays of
tables, and their keys. A key inside an inline table gets the line of the key that holds the inline
table.

Source: TOML 1.0 (https://toml.io/en/v1.0.0), sections Keys, Table, and Array of Tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

KeyPath = tuple[str | int, ...]
"""The names of tables and keys from the outside in. A number is an index of an array, from 0."""

# Strings come before single characters, so a quote never ends inside another string.
_SYMBOL = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[\[\]{}=.\n]"
    r"|[^\s\[\]{}=.\#\"']+",
    re.DOTALL,
)
_OPENING, _CLOSING = "[{", "]}"
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_ESCAPED_CHARACTERS = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def find_key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line of each table and key in the valid TOML `text`, counted from 1."""
    lines: dict[KeyPath, int] = {}
    array_lengths: Counter[KeyPath] = Counter()
    table: KeyPath = ()
    for line, symbols in _statements(text):
        if symbols[0] == "[":
            is_array = symbols[1] == "["
            table = _with_indexes(_names(symbols[2 if is_array else 1 :]), array_lengths)
            if is_array:
                lines.setdefault(table, line)
                table = (*table, array_lengths[table])
                array_lengths[table[:-1]] += 1
            lines.setdefault(table, line)
        else:
            key = (*table, *_names(symbols))
            for length in range(len(table) + 1, len(key) + 1):
                lines.setdefault(key[:length], line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each header and each assignment as its line and symbols, without comments."""
    line, first_line, depth, symbols = 1, 1, 0, list[str]()
    for match in _SYMBOL.finditer(text + "\n"):
        symbol = match[0]
        if symbol == "\n" and depth == 0:
            if symbols:
                yield first_line, symbols
            symbols = []
        elif not symbol.startswith(("#", "\n")):
            first_line = first_line if symbols else line
            symbols.append(symbol)
            depth += (symbol in _OPENING) - (symbol in _CLOSING)
        line += symbol.count("\n")


def _names(symbols: list[str]) -> tuple[str, ...]:
    """Return the names of a dotted key, which ends at `=` or `]`."""
    names = []
    for symbol in symbols:
        if symbol in ("=", "]"):
            break
        if symbol != ".":
            names.append(_unquoted(symbol))
    return tuple(names)


def _unquoted(symbol: str) -> str:
    if symbol.startswith("'"):
        return symbol[1:-1]
    if symbol.startswith('"'):
        return _ESCAPE.sub(_character, symbol[1:-1])
    return symbol


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    return _ESCAPED_CHARACTERS[code] if len(code) == 1 else chr(int(code[1:], 16))


def _with_indexes(names: tuple[str, ...], array_lengths: Mapping[KeyPath, int]) -> KeyPath:
    """Return the path of a table. Below an array of tables, it is in the array's last element."""
    path: KeyPath = ()
    for name in names[:-1]:
        path = (*path, name)
        if length := array_lengths.get(path, 0):
            path = (*path, length - 1)
    return (*path, *names[-1:])
