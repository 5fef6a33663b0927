"""Read which folders a workspace declares as its members.

npm, yarn, Lerna, pnpm, Deno, uv, Cargo, and Go have such declarations. They are path patterns
relative to the folder that declares them. This module ignores patterns that lead out of that
folder, and a file that it cannot read for certain. Sources: package.json "workspaces", lerna.json
"packages", pnpm-workspace.yaml, deno.json "workspace", pyproject.toml [tool.uv.workspace],
Cargo.toml [workspace], go.work "use".

Every file is hostile. JSON is read by token, and YAML by line. For TOML, the standard library has
a parser; it takes 300 bytes of memory for each byte, and squared time for a long dotted key. So
the cap for a TOML file is low, and a file with a key of many parts is ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.disk.manifest import MANIFEST_CAP, Lines, json_strings, read_lines
from rootsd.disk.reader import read_small
from rootsd.disk.yaml_lists import UnreadYaml, yaml_list

_TOML_CAP = 64 << 10
_MAX_KEY_DOTS = 16
_TOML_STRING = re.compile(r"""\"[^"\n]*"|'[^'\n]*'""")

_MAX_PATTERNS = 500
_MAX_PATTERN_LENGTH = 1_000
_MAX_BRACES = 8
_MAX_COMPONENTS = 16
_ANY_DEPTH = "**"
_MAX_ANY_DEPTH = 2
# The first pair of braces without braces inside, such as `{apps,packages}`.
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
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
        for text in _MEMBER_READERS[name](top + b"/" + name):
            patterns = unwanted if text.startswith("!") else wanted
            for plain in _expand_braces(text.removeprefix("!")):
                if (pattern := _parse_pattern(plain)) is not None:
                    patterns.append(pattern)
            if len(patterns) >= _MAX_PATTERNS:
                break
    if not wanted:
        return None
    return WorkspaceMembers(top, tuple(wanted[:_MAX_PATTERNS]), tuple(unwanted[:_MAX_PATTERNS]))


def _expand_braces(text: str) -> list[str]:
    """Return the patterns that a pattern with braces stands for, at most `_MAX_PATTERNS`."""
    if len(text) > _MAX_PATTERN_LENGTH:
        return []
    patterns = [text]
    for _ in range(_MAX_BRACES):
        expanded = []
        for pattern in patterns:
            found = _BRACES.search(pattern)
            if found is None:
                expanded.append(pattern)
            else:
                before, after = pattern[: found.start()], pattern[found.end() :]
                expanded += [before + choice + after for choice in found[1].split(",")]
        if expanded == patterns:
            break
        patterns = expanded[:_MAX_PATTERNS]
    return patterns


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


def _json_members(*places: tuple[str, ...]) -> Callable[[bytes], Iterator[str]]:
    def find(file: bytes) -> Iterator[str]:
        return (value for path, value in json_strings(read_lines(file)) if path in places)

    return find


def _pnpm_members(file: bytes) -> list[str]:
    text = read_small(file, MANIFEST_CAP) or b""
    try:
        return yaml_list(text.decode(), "packages")
    except (UnicodeDecodeError, UnreadYaml):
        return []


def _read_toml(file: bytes) -> dict[str, Any]:
    """Return the content of a TOML file; nothing if it cannot be read within bounds."""
    data = read_small(file, _TOML_CAP) or b""
    try:
        text = data.decode()
        keys = _TOML_STRING.sub("", text).split("\n")
        if max(line.count(".") for line in keys) > _MAX_KEY_DOTS:
            return {}
        return parse_toml(text)
    except (UnicodeDecodeError, Unparsable):
        return {}


def _toml_members(*tables: str, exclude_below: str = "") -> Callable[[bytes], Iterator[str]]:
    """Return a reader of `members` and `exclude` in the table that these keys lead to.

    An excluded path also excludes what it and `exclude_below` match.
    """

    def find(file: bytes) -> Iterator[str]:
        table: Any = _read_toml(file)
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            return
        yield from _strings(table.get("members"))
        for path in _strings(table.get("exclude")):
            yield f"!{path}"
            if exclude_below:
                yield f"!{path}/{exclude_below}"

    return find


def _strings(found: object) -> list[str]:
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _go_work_members(file: bytes) -> Iterator[str]:
    return _go_uses(read_lines(file))


def _go_uses(lines: Lines) -> Iterator[str]:
    is_open = False
    for line in lines:
        bare = line.partition("//")[0].strip()
        if bare.replace(" ", "") == "use(":
            is_open = True
        elif bare == ")":
            is_open = False
        elif found := (_GO_ITEM if is_open else _GO_USE).match(bare):
            yield found[1].strip('"`')


_MEMBER_READERS: Mapping[bytes, Callable[[bytes], Iterator[str] | list[str]]] = MappingProxyType(
    {
        b"package.json": _json_members(("workspaces",), ("workspaces", "packages")),
        b"lerna.json": _json_members(("packages",)),
        b"pnpm-workspace.yaml": _pnpm_members,
        b"deno.json": _json_members(("workspace",), ("workspace", "members")),
        b"deno.jsonc": _json_members(("workspace",), ("workspace", "members")),
        b"pyproject.toml": _toml_members("tool", "uv", "workspace"),
        # Cargo excludes a folder with everything below it.
        b"Cargo.toml": _toml_members("workspace", exclude_below=_ANY_DEPTH),
        b"go.work": _go_work_members,
    }
)
