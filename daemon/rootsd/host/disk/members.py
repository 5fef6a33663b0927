"""Reads which folders a workspace declares as its members.

npm, yarn and pnpm, uv, Cargo and Go: patterns of paths, relative to the folder that declares them.
What leads out of it is not followed. Sources: package.json "workspaces", pnpm-workspace.yaml,
pyproject.toml [tool.uv.workspace], Cargo.toml [workspace], go.work "use".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from types import MappingProxyType

from rootsd.host.disk.manifest import Lines, json_strings, lines_of, toml_values

_MOST_PATTERNS = 500
_MOST_PARTS = 16
_ANY_DEPTH = "**"
_MOST_ANY_DEPTH = 2
_YAML_ITEM = re.compile(r"""[ \t]*-[ \t]+["']?([^"'#\s]+)""")
_YAML_KEY = re.compile(r"([\w-]+)[ \t]*:")
_GO_USE = re.compile(r"[ \t]*use[ \t]+([^\s()]+)")
_GO_ITEM = re.compile(r"[ \t]*([^\s()/][^\s()]*|/\S+)")

Pattern = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Members:
    """The members of the workspace at `top`: what `wanted` matches and `unwanted` does not."""

    top: bytes
    wanted: tuple[Pattern, ...]
    unwanted: tuple[Pattern, ...]

    def __contains__(self, path: bytes) -> bool:
        """Whether the folder at `path` is a member."""
        parts = tuple(os.fsdecode(path[len(self.top) :]).strip("/").split("/"))
        return _is_among(self.wanted, parts) and not _is_among(self.unwanted, parts)


def members_of(top: bytes, names: set[bytes]) -> Members | None:
    """What the files of a folder, which holds `names`, declare; None if they declare nothing."""
    wanted, unwanted = list[Pattern](), list[Pattern]()
    for name in sorted(names & _READERS.keys()):
        for text in _READERS[name](lines_of(top + b"/" + name)):
            is_unwanted = text.startswith("!")
            pattern = _pattern(text.removeprefix("!"))
            if pattern is not None:
                (unwanted if is_unwanted else wanted).append(pattern)
    if not wanted:
        return None
    return Members(top, tuple(wanted[:_MOST_PATTERNS]), tuple(unwanted[:_MOST_PATTERNS]))


def _pattern(text: str) -> Pattern | None:
    """The components of a pattern; None for one that leads out, or is beyond all measure."""
    if text.startswith("/") or "\0" in text:
        return None
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if not parts or ".." in parts or len(parts) > _MOST_PARTS:
        return None
    return parts if parts.count(_ANY_DEPTH) <= _MOST_ANY_DEPTH else None


def _is_among(patterns: tuple[Pattern, ...], parts: Pattern) -> bool:
    return any(_fits(pattern, parts) for pattern in patterns)


def _fits(pattern: Pattern, parts: Pattern) -> bool:
    for number, part in enumerate(pattern):
        if part == _ANY_DEPTH:
            rest = pattern[number + 1 :]
            return any(_fits(rest, parts[at:]) for at in range(number, len(parts) + 1))
        if number >= len(parts) or not _component(part).match(parts[number]):
            return False
    return len(pattern) == len(parts)


@lru_cache(maxsize=1_024)
def _component(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))


def _in_package_json(lines: Lines) -> Iterator[str]:
    places = (("workspaces",), ("workspaces", "packages"))
    return (value for path, value in json_strings(lines) if path in places)


def _in_pnpm(lines: Lines) -> Iterator[str]:
    key = ""
    for line in lines:
        if (found := _YAML_KEY.match(line)) is not None:
            key = found[1]
        elif key == "packages" and (item := _YAML_ITEM.match(line)) is not None:
            yield item[1]


def _in_toml(table: str) -> Callable[[Lines], Iterator[str]]:
    def find(lines: Lines) -> Iterator[str]:
        for its_table, key, value in toml_values(lines):
            if its_table == table and key in ("members", "exclude"):
                yield f"!{value}" if key == "exclude" else value

    return find


def _in_go_work(lines: Lines) -> Iterator[str]:
    is_open = False
    for line in lines:
        bare = line.partition("//")[0].strip()
        if bare.replace(" ", "") == "use(":
            is_open = True
        elif bare == ")":
            is_open = False
        elif found := (_GO_ITEM if is_open else _GO_USE).match(bare):
            yield found[1].strip('"')


_READERS: Mapping[bytes, Callable[[Lines], Iterator[str]]] = MappingProxyType(
    {
        b"package.json": _in_package_json,
        b"pnpm-workspace.yaml": _in_pnpm,
        b"pyproject.toml": _in_toml("tool.uv.workspace"),
        b"Cargo.toml": _in_toml("workspace"),
        b"go.work": _in_go_work,
    }
)
