"""A person, and a client, who edit settings files, and parsers that read the result.

Nothing here uses the code of rootsd. An edit is a function of a text. So a test can make the same
edit on the file of a client and on a copy in which rootsd never wrote.
"""

from __future__ import annotations

import json
import re
import tomllib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from io import StringIO
from random import Random
from typing import Any, Protocol

from ruamel.yaml import YAML

Keys = tuple[str, ...]
Edit = Callable[[str], str]
Values = dict[str, Any]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_BOM = "\ufeff"


class CannotEdit(Exception):
    """The edit has no place in this text."""


class Language(Protocol):
    """What a person knows about the language of a file."""

    comment: str

    @abstractmethod
    def read(self, text: str) -> Values:
        """Return the values of a text."""

    @abstractmethod
    def write(self, values: Values, random: Random) -> str:
        """Return the values as a client writes them: without comments."""

    @abstractmethod
    def add_member(self, text: str, name: str) -> str:
        """Return the text with the member `name` at the top."""

    @abstractmethod
    def add_server(self, text: str, keys: Keys, name: str, entry: Values) -> str:
        """Return the text with a server. Raises CannotEdit."""


class Jsonc(Language):
    """JSON with comments."""

    comment = "//"

    def read(self, text: str) -> Values:
        """Cut the comments and the last commas, and read the rest."""
        plain = _TOKEN.sub(
            lambda found: found[0] if found[0].startswith('"') else " ", text.removeprefix(_BOM)
        )
        if not plain.strip():
            return {}
        plain = re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', lambda found: found[1] or "", plain)
        values: Values = json.loads(plain)
        return values

    def write(self, values: Values, random: Random) -> str:
        """Write it as Node.js programs do, sometimes in the order of the alphabet."""
        indent = random.choice([2, 4])
        return json.dumps(values, indent=indent, sort_keys=random.random() < 0.3) + "\n"

    def add_member(self, text: str, name: str) -> str:
        """Insert after the first brace."""
        if not self.read(text) and "{" not in text:
            return f'{text}\n{{"{name}": 1}}\n'
        return self._into(text, text.index("{") + 1, self.read(text), f'"{name}": 1')

    def add_server(self, text: str, keys: Keys, name: str, entry: Values) -> str:
        """Insert at the start of the object of servers."""
        servers: Any = self.read(text)
        for key in keys:
            servers = servers.get(key)
        found = list(re.finditer(rf'"{re.escape(keys[-1])}"\s*:\s*\{{', text))
        if not isinstance(servers, dict) or len(found) != 1:
            raise CannotEdit
        return self._into(text, found[0].end(), servers, f'"{name}": {json.dumps(entry)}')

    def _into(self, text: str, at: int, members: Mapping[str, Any], member: str) -> str:
        return f"{text[:at]}\n  {member}{',' if members else ''}{text[at:]}"


class Toml(Language):
    """TOML."""

    comment = "#"

    def read(self, text: str) -> Values:
        """Read it with the standard library."""
        return tomllib.loads(text.removeprefix(_BOM))

    def write(self, values: Values, random: Random) -> str:
        """Write the tables of servers as tables, and all other values in one line."""
        servers = values.get("mcp_servers", {})
        tables = (
            [(f"[mcp_servers.{json.dumps(name)}]", entry) for name, entry in servers.items()]
            if isinstance(servers, dict)
            else [("[[mcp_servers]]", entry) for entry in servers]
        )
        lines = [
            f"{json.dumps(key)} = {self._inline(value)}"
            for key, value in values.items()
            if key != "mcp_servers" or value == []
        ]
        for head, entry in tables:
            lines.append(head)
            lines += [f"{json.dumps(key)} = {self._inline(each)}" for key, each in entry.items()]
        return "\n".join(lines) + "\n"

    def add_member(self, text: str, name: str) -> str:
        """Insert above all tables."""
        mark = _BOM if text.startswith(_BOM) else ""
        return f"{mark}{name} = 1\n{text.removeprefix(_BOM)}"

    def add_server(self, text: str, keys: Keys, name: str, entry: Values) -> str:
        """Append a table."""
        servers = self.read(text).get(keys[0], {})
        if servers == []:  # it is written in one line
            raise CannotEdit
        members = "".join(f"{key} = {self._inline(value)}\n" for key, value in entry.items())
        if isinstance(servers, list):
            return f'{text}\n[[{keys[0]}]]\nname = "{name}"\n{members}'
        return f"{text}\n[{keys[0]}.{name}]\n{members}"

    def _inline(self, value: object) -> str:
        match value:
            case dict():
                inner = (
                    f"{json.dumps(key)} = {self._inline(each)}" for key, each in value.items()
                )
                return f"{{{', '.join(inner)}}}"
            case list():
                return f"[{', '.join(map(self._inline, value))}]"
            case _:
                return json.dumps(value, ensure_ascii=False)


class Yaml(Language):
    """YAML in block style."""

    comment = "#"

    def read(self, text: str) -> Values:
        """Read it with the compiled parser, which has no positions."""
        values: Values = YAML(typ="safe").load(text.removeprefix(_BOM)) or {}
        return values

    def write(self, values: Values, random: Random) -> str:
        """Write it in block style."""
        if not values:
            return ""
        yaml, stream = YAML(), StringIO()
        offset = random.choice([0, 2])
        yaml.indent(mapping=2, sequence=2 + offset, offset=offset)
        yaml.dump(values, stream)
        return stream.getvalue()

    def add_member(self, text: str, name: str) -> str:
        """Insert above all other members."""
        head = self._head(text)
        return f"{text[:head]}{name}: 1\n{text[head:]}"

    def add_server(self, text: str, keys: Keys, name: str, entry: Values) -> str:
        """Insert above the other servers, indented as they are."""
        found = re.search(
            rf"^[\"']?{keys[0]}[\"']?[ ]*:[^\S\n]*(#[^\n]*)?\r?\n", text, re.MULTILINE
        )
        servers = self.read(text).get(keys[0])
        if found is None or not servers:
            raise CannotEdit
        child = re.compile(r"(?:[ ]*(?:#[^\n]*)?\r?\n)*([ ]*)[^ #\r\n]").match(text, found.end())
        if child is None:
            raise CannotEdit
        lines = [f"{key}: {json.dumps(value)}" for key, value in entry.items()]
        if isinstance(servers, list):
            lines = [f"- name: {name}", *(f"  {line}" for line in lines)]
        else:
            lines = [f"{name}:", *(f"  {line}" for line in lines)]
        block = "".join(f"{child[1]}{line}\n" for line in lines)
        return text[: found.end()] + block + text[found.end() :]

    def _head(self, text: str) -> int:
        marker = re.search(r"^---[^\n]*\n", text, re.MULTILINE)
        if marker is None and "---" in text:
            raise CannotEdit
        return marker.end() if marker else len(_BOM) if text.startswith(_BOM) else 0


def add_comment_above(language: Language, mark: str) -> Edit:
    """Return an edit that writes a comment in the first line."""

    def edit(text: str) -> str:
        bom = _BOM if text.startswith(_BOM) else ""
        return f"{bom}{language.comment} {mark}\n{text.removeprefix(_BOM)}"

    return edit


def add_comment_below(language: Language, mark: str) -> Edit:
    """Return an edit that writes a comment in the last line."""
    return lambda text: f"{text}\n{language.comment} {mark}\n"


def rename(old: str, new: str) -> Edit:
    """Return an edit that writes `new` for each `old`."""
    return lambda text: re.sub(rf"\b{old}\b", new, text)


def rewrite(language: Language, seed: int) -> Edit:
    """Return the edit of a client that writes its whole file."""
    return lambda text: language.write(language.read(text), Random(seed))  # noqa: S311


def delete_server(language: Language, keys: Keys, name: str) -> Edit:
    """Return the edit of a client that writes its whole file without one server."""

    def edit(text: str) -> str:
        values = language.read(text)
        servers: Any = values
        for key in keys:
            servers = servers.get(key) if isinstance(servers, dict) else None
        if isinstance(servers, dict):
            servers.pop(name, None)
        elif isinstance(servers, list):
            servers[:] = [each for each in servers if each != {**_members(each), "name": name}]
        return language.write(values, Random(0))  # noqa: S311 - the same each time

    return edit


def _members(value: object) -> Values:
    return value if isinstance(value, dict) else {}


def add_argument(argument: str, new: str) -> Edit:
    """Return an edit that inserts an argument after another one, in a list of either style."""

    def edit(text: str) -> str:
        line = re.search(rf"^([ ]*- )[\"']?{argument}[\"']?[^\n]*(\r?\n|$)", text, re.MULTILINE)
        if line is not None:
            added = f"{line[1]}{new}"
            whole = line[0] if line[0].endswith("\n") else f"{line[0]}\n"
            return f"{text[: line.start()]}{whole}{added}{line[2]}{text[line.end() :]}"
        return re.sub(rf"([\"']?){argument}\1", rf"\g<0>, \g<1>{new}\g<1>", text)

    return edit
