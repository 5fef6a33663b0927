"""Settings files as people and clients leave them: generated texts with all unusual features.

Each text comes with its values, which are known without a parser.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, Protocol

WORDS = (
    "npx", "-y", "@x/server", "/opt/a b/c", "é", "\u65e5\u672c", "//no", "/* no */", "# no", "'q'",
    'say "hi"', "back\\slash", "tab\there", "[x]", "}", "", "[mcp_servers.fake]", "\u2028",
)  # fmt: skip
KEYS = ("a", "b", "theme", "with space", "dotted.key", "é", "#hash", "mcp", "servers")
Shape = Callable[[dict[str, Any]], Any]
NAMES = ("files", "git hub", "x.y", "ünï", "db")


@dataclass(frozen=True, slots=True)
class SettingsText:
    """A text, its values, and the keys of the object that has the servers."""

    text: str
    values: dict[str, Any]
    keys: tuple[str, ...]


def servers(random: Random) -> dict[str, Any]:
    """Return server entries: most have a program, and some an address."""
    found: dict[str, Any] = {}
    for name in random.sample(NAMES, random.randrange(4)):
        entry: dict[str, Any] = {"command": random.choice(WORDS[:4])}
        if random.random() < 0.7:
            entry["args"] = random.choices(WORDS, k=random.randrange(4))
        if random.random() < 0.3:
            entry["env"] = {"KEY": random.choice(WORDS)}
        found[name] = entry if random.random() < 0.8 else {"url": "https://mcp.example.com"}
    return found


def scalar(random: Random) -> Any:  # noqa: ANN401 - a JSON value
    """Return a value that contains no others."""
    return random.choice([1, -2, True, False, 0.5, *random.choices(WORDS, k=3)])


def values(
    random: Random, keys: tuple[str, ...], shape: Shape = lambda servers: servers
) -> dict[str, Any]:
    """Return the values of a file, with or without the servers, as `shape` returns them."""
    found: dict[str, Any] = {}
    for key in random.sample(KEYS, random.randrange(4)):
        found[key] = random.choice([
            scalar(random), [scalar(random) for _ in range(random.randrange(3))],
            {"k": scalar(random)},
        ])  # fmt: skip
    if random.random() < 0.6:
        inner = shape(servers(random))
        for key in reversed(keys):
            inner = {key: inner}
        found.update(inner)
    pairs = list(found.items())
    random.shuffle(pairs)
    return dict(pairs)


def json_text(
    random: Random, keys: tuple[str, ...] = ("mcpServers",), shape: Shape = lambda servers: servers
) -> SettingsText:
    """Return JSON with comments, trailing commas, and the line ends of one system or mixed."""
    found = values(random, keys, shape)
    style = _JsonStyle(random)
    text = style.idle() + style.value(found, 0) + style.idle()
    if random.random() < 0.4:  # as programs write it
        indent = random.choice([None, 2, 4, "\t"])
        text = json.dumps(found, indent=indent, ensure_ascii=random.random() < 0.5)
        text += random.choice(["", "\n"])
    text = _with_line_ends(random, text)
    return SettingsText(random.choice(["", "", "\ufeff"]) + text, found, keys)


def _with_line_ends(random: Random, text: str) -> str:
    match random.randrange(4):
        case 0:
            return text.replace("\n", "\r\n")
        case 1:
            first, *rest = text.split("\n")
            return first + "".join(random.choice(["\n", "\r\n"]) + line for line in rest)
        case _:
            return text


class _JsonStyle:
    """How one file is written."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._has_comments = random.random() < 0.6
        self._is_wide = random.random() < 0.7
        self._unit = random.choice(["  ", "    ", "\t"])
        self._trailing = random.choice(["", "", ","])

    def idle(self) -> str:
        """Return blanks and comments."""
        if not self._has_comments or self._random.random() < 0.7:
            return self._random.choice(["", "", " "])
        return self._random.choice(
            [' // c, } ] "\n', "/* c */", "\n/* a\n b */\n", "\n\n", "\t", " /**/ ", "//\n"]
        )

    def value(self, value: object, level: int) -> str:
        """Return `value` as JSON."""
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=self._random.random() < 0.3)
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        names = iter(value) if isinstance(value, dict) else iter(())
        inner = [
            "".join(f"{json.dumps(key)}{self.idle()}:{self.idle()}" for key in islice(names, 1))
            + self.value(each, level + 1)
            for each in (value.values() if isinstance(value, dict) else value)
        ]
        if not inner:
            return opening + self.idle() + self._random.choice(["", "\n"]) + closing
        lead = "\n" + self._unit * (level + 1) if self._is_wide else ""
        end = "\n" + self._unit * level if self._is_wide else ""
        items = (f"{self.idle()}{lead}{each}{self.idle()}" for each in inner)
        return opening + ",".join(items) + self._trailing + self.idle() + end + closing


def toml_text(
    random: Random,
    keys: tuple[str, ...] = ("mcp_servers",),
    shape: Shape = lambda servers: servers,
) -> SettingsText:
    """Return TOML with comments, all kinds of strings, inline tables, and either line end."""
    found = values(random, keys, shape)
    servers = found.get(keys[0], {})
    in_tables = {*keys} if servers != [] else set[str]()
    lines: list[str] = []
    for key, value in found.items():
        if key not in in_tables:
            lines += [*_toml_idle(random), f"{_toml_key(random, key)} = {_toml(random, value)}"]
    if isinstance(servers, list):
        for entry in servers:
            lines += [*_toml_idle(random), f"[[{keys[0]}]]"]
            lines += [f"{key} = {_toml(random, value)}" for key, value in entry.items()]
    else:
        if keys[0] in found and (not servers or random.random() < 0.3):
            lines += [*_toml_idle(random), f"[{keys[0]}]"]
        for name, entry in servers.items():
            lines += [*_toml_idle(random), *_toml_server(random, keys[0], name, entry)]
    lines += _toml_idle(random)
    text = "\n".join(lines) + random.choice(["", "\n"]) if lines else ""
    if random.random() < 0.3:
        text = text.replace("\n", "\r\n")
    return SettingsText(random.choice(["", "", "\ufeff"]) + text, found, keys)


def _toml_idle(random: Random) -> list[str]:
    if random.random() < 0.6:
        return []
    return [random.choice(["", "# c", "  # [fake]", "", "#"])]


def _toml_key(random: Random, key: str) -> str:
    if key.isascii() and key.isalnum() and random.random() < 0.8:
        return key
    return json.dumps(key, ensure_ascii=False)


def _toml(random: Random, value: object) -> str:
    match value:
        case bool() | int() | float():
            return json.dumps(value)
        case str():
            if "'" not in value and "\t" not in value and random.random() < 0.4:
                return random.choice([f"'{value}'", f"'''{value}'''", f"'''\n{value}'''"])
            quoted = json.dumps(value, ensure_ascii=False)
            return random.choice([quoted, f'""{quoted}""', f'""{quoted[0]}\\\n  {quoted[1:]}""'])
        case list():
            items = ", ".join(_toml(random, each) for each in value)
            wide = ",".join(f"\n  {_toml(random, each)} # ]\n" for each in value)
            trailing = random.choice(["", ","]) if value else ""
            return random.choice([f"[{items}]", f"[ {items}{trailing} ]", f"[{wide}]"])
        case dict():
            inner = ", ".join(
                f"{_toml_key(random, key)} = {_one_line(each)}" for key, each in value.items()
            )
            return f"{{ {inner} }}"
        case _:
            raise TypeError(value)


def _one_line(value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {_one_line(each)}" for key, each in value.items())
        return f"{{{inner}}}"
    return json.dumps(value, ensure_ascii=False)


def _toml_server(random: Random, table: str, name: str, entry: dict[str, Any]) -> list[str]:
    path = f"{table}.{_toml_key(random, name)}"
    spaced = path if random.random() < 0.8 else path.replace(".", " . ", 1)
    lines = [f"{random.choice(['', '  '])}[{spaced}]{random.choice(['', ' # c'])}"]
    for key, value in entry.items():
        if key == "env" and random.random() < 0.5:
            continue
        comment = random.choice(["", "", " # c"])
        lines += [*_toml_idle(random), f"{key} = {_toml(random, value)}{comment}"]
    written = "\n".join(lines)
    if "env" in entry and "env = " not in written:
        lines += [f"[{path}.env]", f"KEY = {_toml(random, entry['env']['KEY'])}"]
    return lines


def yaml_text(
    random: Random, keys: tuple[str, ...] = ("extensions",), shape: Shape = lambda servers: servers
) -> SettingsText:
    """Return YAML in block and flow style, with all kinds of scalars, comments, and line ends."""
    found = values(random, keys, shape)
    style = _YamlStyle(random)
    lines = [*style.idle(0), *(["---"] if random.random() < 0.2 else [])]
    for key, value in found.items():
        lines += [*style.idle(0), *style.member(key, value, 0)]
    lines += style.idle(0)
    text = "\n".join(lines) + random.choice(["", "\n"]) if lines else ""
    if random.random() < 0.3:
        text = text.replace("\n", "\r\n")
    return SettingsText(random.choice(["", "", "\ufeff"]) + text, found, keys)


class _YamlStyle:
    """How one file is written."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._unit = random.choice([2, 2, 4])
        self._sequence_indent = random.choice([0, self._unit])

    def idle(self, column: int) -> list[str]:
        """Return blank lines and comments."""
        if self._random.random() < 0.6:
            return []
        return [self._random.choice(["", "# c", " " * column + "# - [fake]", "  ", "#"])]

    def member(self, key: str, value: object, column: int) -> list[str]:
        """Return the lines of a member of a mapping in block style."""
        indent = " " * column
        name = f"{indent}{self._scalar(key)}{self._random.choice(['', '', ' '])}:"
        comment = self._random.choice(["", "", " # c: 'd'"])
        if isinstance(value, dict | list) and value and self._random.random() < 0.7:
            return [f"{name}{comment}", *self._inner(value, column)]
        if isinstance(value, str) and value.isalpha() and self._random.random() < 0.3:
            mark, inner = self._random.choice("|>"), " " * (column + self._unit)
            chomping = self._random.choice(["-", "2-"]) if self._unit == 2 else "-"
            return [f"{name} {mark}{chomping}{comment}", f"{inner}{value}"]
        return [f"{name} {self._flow(value)}{comment}"]

    def _inner(self, value: dict[str, Any] | list[Any], column: int) -> list[str]:
        lines: list[str] = []
        if isinstance(value, dict):
            return self._members(value, column + self._unit)
        column += self._sequence_indent
        for each in value:
            comment = self._random.choice(["", "", " # c"])
            lines += self.idle(column)
            if isinstance(each, dict) and each and self._random.random() < 0.8:
                first, *others = self._members(each, column + 2)
                lines += [f"{' ' * column}- {first.lstrip(' ')}", *others]
                continue
            lines.append(f"{' ' * column}- {self._flow(each)}{comment}")
        return lines

    def _members(self, value: dict[str, Any], column: int) -> list[str]:
        lines: list[str] = []
        for key, each in value.items():
            idle = self.idle(column) if lines else []  # the first one may stand after a dash
            lines += [*idle, *self.member(key, each, column)]
        return lines

    def _flow(self, value: object) -> str:
        match value:
            case dict():
                inner = [f"{self._scalar(key)}: {self._flow(each)}" for key, each in value.items()]
                opening, closing = "{}"
            case list():
                inner = [self._flow(each) for each in value]
                opening, closing = "[]"
            case _:
                return self._scalar(value)
        blank = self._random.choice(["", " "])
        trailing = self._random.choice(["", ","]) if inner else ""
        return opening + blank + ", ".join(inner) + trailing + blank + closing

    def _scalar(self, value: object) -> str:
        if not isinstance(value, str):
            return json.dumps(value)
        ways = [json.dumps(value)]
        if value.isprintable() and value:
            ways += [
                json.dumps(value, ensure_ascii=False),
                f"'{value.replace(chr(39), chr(39) * 2)}'",
            ]
        if value.isascii() and value.replace("/", "").isalnum():
            ways.append(value)
        return self._random.choice(ways)


def make(language: str, seed: int) -> SettingsText:
    """Return the text number `seed` in a language of `MAKERS`."""
    return MAKERS[language](Random(seed))  # noqa: S311 - the same each time


class Maker(Protocol):
    """Makes a text in one language."""

    def __call__(
        self, random: Random, keys: tuple[str, ...] = ..., shape: Shape = ...
    ) -> SettingsText:
        """Return a text with servers at `keys`, if it has any, as `shape` returns them."""


MAKERS: dict[str, Maker] = {
    "json": json_text, "toml": toml_text, "yaml": yaml_text,
}  # fmt: skip
