"""Read a project's name and its workspace members from its manifest files.

This module does not use a general parser: a hostile file can make a parser for TOML or JSON take
gigabytes, or recurse without end. Instead it reads each file up to a cap, by line or by token,
with linear patterns. It ignores content that does not match.

Workspace members come from npm, yarn, pnpm, uv, Cargo, and Go. They are path patterns relative to
the folder that declares them. This module ignores patterns that lead out of that folder. Sources:
package.json "workspaces", pnpm-workspace.yaml, pyproject.toml [tool.uv.workspace], Cargo.toml
[workspace], go.work "use".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct

from rootsd.disk.reader import read_small

MANIFEST_CAP = 256 << 10
_MAX_NAME_LENGTH = 200
_MAX_TOKENS = 50_000
_MAX_MEMBERS = 1_000
_MAX_DEPTH = 3

_JSON_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\]:,])')
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_TOML_TABLE = re.compile(r"[ \t]*\[([^\[\]]{1,200})\][ \t]*(?:#.*)?$")
_TOML_STRING = re.compile(r"""[ \t]*([A-Za-z0-9_.-]+)[ \t]*=[ \t]*(?:"([^"\\]*)"|'([^']*)')""")
_TOML_LIST = re.compile(r"[ \t]*([A-Za-z0-9_.-]+)[ \t]*=[ \t]*\[(.*)$")
_QUOTED = re.compile(r"""#.*|"([^"\\]*)"|'([^']*)'""")

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
    """Yield the table, key, and value of each string, and of each string in a list."""
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
            for _ in range(_MAX_MEMBERS):
                for quoted in _QUOTED.finditer(rest):
                    if (value := quoted[1] if quoted[1] is not None else quoted[2]) is not None:
                        yield table, opened[1], value
                if "]" in _QUOTED.sub("", rest) or at >= len(lines):
                    break
                rest = lines[at]
                at += 1


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


_MAX_PATTERNS = 500
_MAX_COMPONENTS = 16
_ANY_DEPTH = "**"
_MAX_ANY_DEPTH = 2
_YAML_ITEM = re.compile(r"""[ \t]*-[ \t]+["']?([^"'#\s]+)""")
_YAML_KEY = re.compile(r"([\w-]+)[ \t]*:")
_GO_USE = re.compile(r"[ \t]*use[ \t]+([^\s()]+)")
_GO_ITEM = re.compile(r"[ \t]*([^\s()/][^\s()]*|/\S+)")

MemberPattern = tuple[str, ...]


class WorkspaceMembers(Struct, frozen=True):
    """The members of the workspace at `top`: folders that match `wanted` and not `unwanted`."""

    top: bytes
    wanted: tuple[MemberPattern, ...]
    unwanted: tuple[MemberPattern, ...]

    def __contains__(self, path: bytes) -> bool:
        """Return whether the folder at `path` is a member."""
        parts = tuple(os.fsdecode(path[len(self.top) :]).strip("/").split("/"))
        return _matches_any(self.wanted, parts) and not _matches_any(self.unwanted, parts)


def read_workspace_members(top: bytes, names: set[bytes]) -> WorkspaceMembers | None:
    """Return the members that the files in the folder `top` declare, or None.

    `names` are the names in that folder.
    """
    wanted, unwanted = list[MemberPattern](), list[MemberPattern]()
    for name in sorted(names & _MEMBER_READERS.keys()):
        for text in _MEMBER_READERS[name](read_lines(top + b"/" + name)):
            is_unwanted = text.startswith("!")
            pattern = _parse_pattern(text.removeprefix("!"))
            if pattern is not None:
                (unwanted if is_unwanted else wanted).append(pattern)
    if not wanted:
        return None
    return WorkspaceMembers(top, tuple(wanted[:_MAX_PATTERNS]), tuple(unwanted[:_MAX_PATTERNS]))


def _parse_pattern(text: str) -> MemberPattern | None:
    """Return the components of a pattern, or None if it leads out or is too long."""
    if text.startswith("/") or "\0" in text:
        return None
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if not parts or ".." in parts or len(parts) > _MAX_COMPONENTS:
        return None
    return parts if parts.count(_ANY_DEPTH) <= _MAX_ANY_DEPTH else None


def _matches_any(patterns: tuple[MemberPattern, ...], parts: MemberPattern) -> bool:
    return any(_matches(pattern, parts) for pattern in patterns)


def _matches(pattern: MemberPattern, parts: MemberPattern) -> bool:
    for number, part in enumerate(pattern):
        if part == _ANY_DEPTH:
            rest = pattern[number + 1 :]
            return any(_matches(rest, parts[at:]) for at in range(number, len(parts) + 1))
        if number >= len(parts) or not _compile_component(part).match(parts[number]):
            return False
    return len(pattern) == len(parts)


@lru_cache(maxsize=1_024)
def _compile_component(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))


def _package_json_members(lines: Lines) -> Iterator[str]:
    places = (("workspaces",), ("workspaces", "packages"))
    return (value for path, value in json_strings(lines) if path in places)


def _pnpm_members(lines: Lines) -> Iterator[str]:
    key = ""
    for line in lines:
        if (found := _YAML_KEY.match(line)) is not None:
            key = found[1]
        elif key == "packages" and (item := _YAML_ITEM.match(line)) is not None:
            yield item[1]


def _toml_members(table: str) -> Callable[[Lines], Iterator[str]]:
    def find(lines: Lines) -> Iterator[str]:
        for its_table, key, value in toml_values(lines):
            if its_table == table and key in ("members", "exclude"):
                yield f"!{value}" if key == "exclude" else value

    return find


def _go_work_members(lines: Lines) -> Iterator[str]:
    is_open = False
    for line in lines:
        bare = line.partition("//")[0].strip()
        if bare.replace(" ", "") == "use(":
            is_open = True
        elif bare == ")":
            is_open = False
        elif found := (_GO_ITEM if is_open else _GO_USE).match(bare):
            yield found[1].strip('"')


_MEMBER_READERS: Mapping[bytes, Callable[[Lines], Iterator[str]]] = MappingProxyType(
    {
        b"package.json": _package_json_members,
        b"pnpm-workspace.yaml": _pnpm_members,
        b"pyproject.toml": _toml_members("tool.uv.workspace"),
        b"Cargo.toml": _toml_members("workspace"),
        b"go.work": _go_work_members,
    }
)
