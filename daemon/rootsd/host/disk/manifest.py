"""Reads a project file line by line, or token by token, for the name it declares and its members.

No general parser: one for TOML or JSON can be made to take gigabytes or to recurse. Here each
file is read up to a cap, each pattern is linear, and what looks wrong is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from rootsd.host.disk.reader import read_small

MANIFEST_CAP = 256 << 10
_LONGEST_NAME = 200
_MOST_TOKENS = 50_000
_MOST_MEMBERS = 1_000
_DEEPEST = 3

_JSON_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\]:,])')
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_TOML_TABLE = re.compile(r"[ \t]*\[([^\[\]]{1,200})\][ \t]*(?:#.*)?$")
_TOML_STRING = re.compile(r"""[ \t]*([A-Za-z0-9_.-]+)[ \t]*=[ \t]*(?:"([^"\\]*)"|'([^']*)')""")
_TOML_LIST = re.compile(r"[ \t]*([A-Za-z0-9_.-]+)[ \t]*=[ \t]*\[(.*)$")
_QUOTED = re.compile(r"""#.*|"([^"\\]*)"|'([^']*)'""")

Lines = tuple[str, ...]


def lines_of(file: bytes) -> Lines:
    """The lines of a project file, up to a cap; none if it cannot be read."""
    text = read_small(file, MANIFEST_CAP) or b""
    return tuple(text.decode("utf-8", "replace").splitlines())


def name_in(file: bytes) -> str | None:
    """The name that the project file declares; None if it declares none that is found."""
    base = file.rpartition(b"/")[2]
    find = _READERS.get(base) or _BY_ENDING.get(base.rpartition(b".")[2])
    if find is None:
        return None
    name = find(lines_of(file))
    return name[:_LONGEST_NAME] if name else None


def json_strings(lines: Lines) -> Iterator[tuple[tuple[str, ...], str]]:
    """The strings of a JSON text with the keys that lead to them: `(("name",), "api")`.

    Only of the outer levels; what is deeper is passed over, and so is all behind the last token
    that is looked at.
    """
    stack: list[tuple[str, bool]] = []
    key: str | None = None
    tokens = _JSON_TOKEN.finditer("\n".join(lines))
    for _, token in zip(range(_MOST_TOKENS), tokens, strict=False):
        mark = token[2]
        if mark is None:
            value = _ESCAPE.sub(_unescaped, token[1])
            if stack and stack[-1][1] and key is None:
                key = value
            elif len(stack) <= _DEEPEST:
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
    """Table, key and value of each string, and of each string in a list."""
    table, at = "", 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if (head := _TOML_TABLE.match(line)) is not None:
            table = head[1].strip()
        elif (found := _TOML_STRING.match(line)) is not None:
            yield table, found[1], found[2] if found[2] is not None else found[3]
        elif (opened := _TOML_LIST.match(line)) is not None:
            rest = opened[2]
            for _ in range(_MOST_MEMBERS):
                for quoted in _QUOTED.finditer(rest):
                    if (value := quoted[1] if quoted[1] is not None else quoted[2]) is not None:
                        yield table, opened[1], value
                if "]" in _QUOTED.sub("", rest) or at >= len(lines):
                    break
                rest = lines[at]
                at += 1


def _in_json(lines: Lines) -> str | None:
    return next((value for path, value in json_strings(lines) if path == ("name",)), None)


def _in_toml(*places: tuple[str, str]) -> Callable[[Lines], str | None]:
    def find(lines: Lines) -> str | None:
        values = toml_values(lines)
        return next((value for table, key, value in values if (table, key) in places), None)

    return find


def _by_pattern(pattern: str) -> Callable[[Lines], str | None]:
    compiled = re.compile(pattern)

    def find(lines: Lines) -> str | None:
        found = (compiled.match(line[:1_000]) for line in lines)
        return next((match[1].strip() for match in found if match is not None), None)

    return find


def _in_ini(lines: Lines) -> str | None:
    section = ""
    for line in lines:
        if line.startswith("["):
            section = line.strip()
        elif section == "[metadata]" and (found := _INI_NAME.match(line)) is not None:
            return found[1].strip()
    return None


def _in_pom(lines: Lines) -> str | None:
    """The project's own artifact: neither its parent's nor that of a dependency or a plugin."""
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

_READERS: Mapping[bytes, Callable[[Lines], str | None]] = MappingProxyType(
    {
        b"package.json": _in_json,
        b"composer.json": _in_json,
        b"deno.json": _in_json,
        b"deno.jsonc": _in_json,
        b"pyproject.toml": _in_toml(("project", "name"), ("tool.poetry", "name")),
        b"Cargo.toml": _in_toml(("package", "name")),
        b"setup.cfg": _in_ini,
        b"setup.py": _by_pattern(r"""[ \t]*name[ \t]*=[ \t]*["']([^"']+)["']"""),
        b"go.mod": _by_pattern(r"module[ \t]+\"?([^\s\"]+)"),
        b"pom.xml": _in_pom,
        b"settings.gradle": _by_pattern(r"""rootProject\.name[ \t]*=[ \t]*["']([^"']+)["']"""),
        b"settings.gradle.kts": _by_pattern(r"""rootProject\.name[ \t]*=[ \t]*"([^"]+)\""""),
        b"mix.exs": _by_pattern(r"[ \t]*app:[ \t]*:(\w+)"),
        b"CMakeLists.txt": _by_pattern("(?i:" + _CALL.format("project") + ")"),
        b"meson.build": _by_pattern(_CALL.format("project")),
        b"Package.swift": _by_pattern(r'[ \t]*name:[ \t]*"([^"]+)"'),
        b"pubspec.yaml": _by_pattern(r"""name:[ \t]*["']?([^\s"'#]+)"""),
        b"dune-project": _by_pattern(r"[ \t]*\(name[ \t]+([^\s()]+)\)"),
    }
)
_BY_ENDING: Mapping[bytes, Callable[[Lines], str | None]] = MappingProxyType(
    {b"cabal": _by_pattern(r"(?i:name)[ \t]*:[ \t]*(\S+)")}
)
