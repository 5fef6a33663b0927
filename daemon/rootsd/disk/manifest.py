"""Read a project's name from its manifest files.

This module does not use a general parser: a hostile file can make a parser for TOML or JSON take
gigabytes, or recurse without end. Instead it reads each file up to a cap, by line or by token,
with linear patterns. It ignores content that does not match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from rootsd.disk.reader import read_small

MANIFEST_CAP = 256 << 10
_MAX_NAME_LENGTH = 200
_MAX_TOKENS = 50_000
_MAX_DEPTH = 3

# `deno.jsonc` has comments. A comment or string without an end covers the rest of the text.
_JSON_TOKEN = re.compile(
    r'"((?:[^"\\]|\\.)*+)"|([{}\[\]:,])|//[^\n]*|/\*(?:.*?\*/|.*)|".*', re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_TOML_TABLE = re.compile(r"[ \t]*\[([^\[\]]{1,200})\][ \t]*(?:#.*)?$")
_TOML_STRING = re.compile(r"""[ \t]*([A-Za-z0-9_.-]+)[ \t]*=[ \t]*(?:"([^"\\]*)"|'([^']*)')""")

Lines = tuple[str, ...]


def read_lines(file: bytes) -> Lines:
    """Return the lines of a project file, up to a cap; none if it cannot be read."""
    text = read_small(file, MANIFEST_CAP) or b""
    return tuple(text.decode("utf-8", "replace").splitlines())


def declared_name(file: bytes) -> str | None:
    """Return the name that the project file declares, or None if none is found."""
    base = file.rpartition(b"/")[2]
    find = _NAME_READERS.get(base) or _NAME_READERS_BY_SUFFIX.get(base.rpartition(b".")[2])
    if find is None:
        return None
    name = find(read_lines(file))
    return name[:_MAX_NAME_LENGTH] if name else None


def json_strings(lines: Lines) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each string in a JSON text after the keys that lead to it: `(("name",), "api")`.

    Ignore deep levels, and stop after a maximum number of tokens.
    """
    stack: list[tuple[str, bool]] = []
    key: str | None = None
    tokens = _JSON_TOKEN.finditer("\n".join(lines))
    for _, token in zip(range(_MAX_TOKENS), tokens, strict=False):
        mark = token[2]
        if token[1] is None and mark is None:
            continue  # a comment, or a string without an end
        if mark is None:
            value = _ESCAPE.sub(_unescaped, token[1])
            if stack and stack[-1][1] and key is None:
                key = value
            elif len(stack) <= _MAX_DEPTH:
                outer = tuple(name for name, _ in stack[1:])
                yield (outer if key is None else (*outer, key)), value
        elif mark in "{[":
            stack.append((key or "", mark == "{"))
            key = None
        elif mark in "}]":
            if stack:
                stack.pop()
            key = None
        elif mark == ",":
            key = None


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is not None:
        return chr(int(found[1], 16))
    return _SHORT_ESCAPES.get(found[2], found[2])


def toml_values(lines: Lines) -> Iterator[tuple[str, str, str]]:
    """Yield the table, key, and value of each string in a line of its own."""
    table = ""
    for line in lines:
        if (head := _TOML_TABLE.match(line)) is not None:
            table = head[1].strip()
        elif (found := _TOML_STRING.match(line)) is not None:
            yield table, found[1], found[2] if found[2] is not None else found[3]


def _json_name(lines: Lines) -> str | None:
    return next((value for path, value in json_strings(lines) if path == ("name",)), None)


def _toml_name(*places: tuple[str, str]) -> Callable[[Lines], str | None]:
    def find(lines: Lines) -> str | None:
        values = toml_values(lines)
        return next((value for table, key, value in values if (table, key) in places), None)

    return find


def _pattern_name(pattern: str) -> Callable[[Lines], str | None]:
    compiled = re.compile(pattern)

    def find(lines: Lines) -> str | None:
        found = (compiled.match(line[:1_000]) for line in lines)
        return next((match[1].strip() for match in found if match is not None), None)

    return find


def _ini_name(lines: Lines) -> str | None:
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line.strip()
        elif section == "[metadata]" and (found := _INI_NAME.match(line)) is not None:
            return found[1].strip()
    return None


def _pom_name(lines: Lines) -> str | None:
    """Return the name of the project's own artifact, not of a parent, dependency, or plugin."""
    inside = 0
    for line in lines:
        for found in _POM_TAG.finditer(line):
            if found[2] is not None:
                inside += -1 if found[1] else 1
            elif not inside:
                return found[3].strip()
    return None


_INI_NAME = re.compile(r"name[ \t]*[=:][ \t]*(\S+)")
_POM_TAG = re.compile(
    r"<(/?)(parent|dependencies|dependencyManagement|build|profiles|modules)>"
    r"|<artifactId>([^<>]{1,200})</artifactId>"
)
_CALL = r"""[ \t]*{}[ \t]*\([ \t]*["']?([\w.+-]+)"""

_NAME_READERS: Mapping[bytes, Callable[[Lines], str | None]] = MappingProxyType(
    {
        b"package.json": _json_name,
        b"composer.json": _json_name,
        b"deno.json": _json_name,
        b"deno.jsonc": _json_name,
        b"pyproject.toml": _toml_name(("project", "name"), ("tool.poetry", "name")),
        b"Cargo.toml": _toml_name(("package", "name")),
        b"setup.cfg": _ini_name,
        b"setup.py": _pattern_name(r"""[ \t]*name[ \t]*=[ \t]*["']([^"']+)["']"""),
        b"go.mod": _pattern_name(r"module[ \t]+\"?([^\s\"]+)"),
        b"pom.xml": _pom_name,
        b"settings.gradle": _pattern_name(r"""rootProject\.name[ \t]*=[ \t]*["']([^"']+)["']"""),
        b"settings.gradle.kts": _pattern_name(r"""rootProject\.name[ \t]*=[ \t]*"([^"]+)\""""),
        b"mix.exs": _pattern_name(r"[ \t]*app:[ \t]*:(\w+)"),
        b"CMakeLists.txt": _pattern_name("(?i:" + _CALL.format("project") + ")"),
        b"meson.build": _pattern_name(_CALL.format("project")),
        b"Package.swift": _pattern_name(r'[ \t]*name:[ \t]*"([^"]+)"'),
        b"pubspec.yaml": _pattern_name(r"""name:[ \t]*["']?([^\s"'#]+)"""),
        b"dune-project": _pattern_name(r"[ \t]*\(name[ \t]+([^\s()]+)\)"),
    }
)
_NAME_READERS_BY_SUFFIX: Mapping[bytes, Callable[[Lines], str | None]] = MappingProxyType(
    {b"cabal": _pattern_name(r"(?i:name)[ \t]*:[ \t]*(\S+)")}
)
