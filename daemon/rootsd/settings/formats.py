"""One interface to edit JSON, TOML, and YAML.

Every method raises NotEditable if the text cannot be read or edited. `keys` lead from the top of
the text to a value. A raw text is a value as it is written in a file.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rootsd.settings import json_spans, toml_spans, yaml_spans
from rootsd.settings.errors import NotEditable

Keys = tuple[str, ...]
KeyPath = toml_spans.KeyPath

_JSON_IDLE = re.compile(r"\ufeff?(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WHOLE: Keys = ()


class _Spans(Protocol):
    """The edits that the module of each language has."""

    def raw_at(self, text: str, keys: Keys) -> str | None: ...
    def line_at(self, text: str, keys: KeyPath) -> int: ...
    def replace_at(self, text: str, keys: Keys, raw: str) -> str: ...
    def remove_member(self, text: str, keys: Keys) -> str: ...
    def without_first(self, raw: str, count: int) -> str: ...
    def insert_beside(self, text: str, keys: Keys, name: str, value: Sequence[str]) -> str: ...
    def literal(self, value: str | Sequence[str]) -> str: ...


class SettingsFormat(ABC):
    """A language of settings files."""

    new_file: str
    """The text of a new file, before anything is inserted."""
    edits_every_value: bool = False
    """Whether a value can be edited in whatever notation it is."""
    _spans: _Spans

    @abstractmethod
    def values(self, text: str) -> dict[str, Any]:
        """Return all values."""

    @abstractmethod
    def insert(
        self, text: str, keys: Keys, name: str, value: Mapping[str, Any]
    ) -> tuple[str, list[Keys]]:
        """Return the text with `value` as the member `name` of the container at `keys`.

        Also returns the keys of the containers that are new.
        """

    @abstractmethod
    def remove(self, text: str, keys: Keys, made: Sequence[Keys]) -> str:
        """Return the text without the member at `keys`, and without those of `made` that are
        empty then.
        """

    @abstractmethod
    def snippet(self, keys: Keys, name: str, value: Mapping[str, Any]) -> str:
        """Return the lines that a person can paste for the member `name`."""

    @abstractmethod
    def prepend(self, raw: str, items: Sequence[str]) -> str:
        """Return the raw text of an array with `items` before the others."""

    def insert_item(
        self, text: str, keys: Keys, value: Mapping[str, Any]
    ) -> tuple[str, list[Keys]]:
        """Return the text with `value` as an item of the list at `keys`.

        Also returns the keys of the list if it is new. `remove` takes it back by its `name`.
        """
        del text, value
        raise NotEditable(f"{'.'.join(keys)} is a list")

    def raw(self, text: str, keys: Keys) -> str | None:
        """Return the raw text of the value at `keys`, or None if there is none."""
        return self._spans.raw_at(text, keys)

    def line(self, text: str, keys: KeyPath) -> int:
        """Return the line of the value at `keys`, or of what there is of it. Counted from 1."""
        return self._spans.line_at(text, keys)

    def replace(self, text: str, keys: Keys, raw: str) -> str:
        """Return the text with `raw` in place of the value at `keys`."""
        return self._spans.replace_at(text, keys, raw)

    def insert_beside(self, text: str, keys: Keys, name: str, value: Sequence[str]) -> str:
        """Return the text with the array `value` as the member `name` beside that at `keys`."""
        return self._spans.insert_beside(text, keys, name, list(value))

    def remove_beside(self, text: str, keys: Keys) -> str:
        """Return the text without the member at `keys`, which `insert_beside` inserted."""
        return self._spans.remove_member(text, keys)

    def literal(self, value: str | Sequence[str]) -> str:
        """Return a string or an array of strings as raw text."""
        return self._spans.literal(value)

    def without_first(self, raw: str, count: int) -> str:
        """Return the raw text of an array without its first `count` items."""
        return self._spans.without_first(raw, count)

    def lay_out(self, text: str) -> str:
        """Return the text of a new file, which nobody else wrote, in the usual layout."""
        return text


def _prepend(raw: str, items: Sequence[str], *, is_empty: bool) -> str:
    if not raw.startswith("["):
        raise NotEditable("a list of arguments has an unusual form")
    added = ", ".join(json.dumps(item, ensure_ascii=False) for item in items)
    return f"[{added}{'' if is_empty else ','}{raw[1:]}"


class JsonFormat(SettingsFormat):
    """JSON with comments and trailing commas. A file that has none of these gets none."""

    new_file = "{}\n"
    edits_every_value = True
    _spans: _Spans = json_spans

    def values(self, text: str) -> dict[str, Any]:
        """Return all values. A text without any value is an empty object."""
        if self._is_blank(text):
            return {}
        value = json_spans.parse(text).value
        if not isinstance(value, dict):
            raise NotEditable("the file is not an object")
        return value

    def insert(
        self, text: str, keys: Keys, name: str, value: Mapping[str, Any]
    ) -> tuple[str, list[Keys]]:
        """Insert a member at the end of its object."""
        text, made = self.with_object(text)
        after, new = json_spans.insert(text, json_spans.Items(keys, {name: dict(value)}))
        return after, made + new

    def remove(self, text: str, keys: Keys, made: Sequence[Keys]) -> str:
        """Remove a member, and containers of ours."""
        if self._is_blank(text):
            return text
        return self.without_made(json_spans.remove_member(text, keys), made)

    def with_object(self, text: str) -> tuple[str, list[Keys]]:
        """Return a text that has an object, and the keys of the object if it is new."""
        if not self._is_blank(text):
            return text, []
        newline = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not text.removeprefix("\ufeff") or text.endswith("\n") else newline
        return f"{text}{gap}{{}}{newline}", [_WHOLE]

    def without_made(self, text: str, made: Sequence[Keys]) -> str:
        """Return the text without those of our containers `made` that are empty."""
        text, _ = json_spans.remove_empty(text, [each for each in made if each])
        if _WHOLE in made and json_spans.parse(text).value == {}:
            start = json_spans.parse(text).start
            return text[:start] if not text[start + 2 :].strip() else text
        return text

    def raw(self, text: str, keys: Keys) -> str | None:
        """Return the raw text at `keys`."""
        return None if self._is_blank(text) else json_spans.raw_at(text, keys)

    def prepend(self, raw: str, items: Sequence[str]) -> str:
        """Insert `items` after the bracket."""
        return _prepend(raw, items, is_empty=not json_spans.parse(raw).value)

    def snippet(self, keys: Keys, name: str, value: Mapping[str, Any]) -> str:
        """Return an object with nothing but this member."""
        whole: dict[str, Any] = {name: dict(value)}
        for key in reversed(keys):
            whole = {key: whole}
        return json.dumps(whole, indent=2, ensure_ascii=False)

    def lay_out(self, text: str) -> str:
        """Return an object with each member on its own line."""
        return json.dumps(self.values(text), indent=2, ensure_ascii=False) + "\n"

    def _is_blank(self, text: str) -> bool:
        match = _JSON_IDLE.match(text)  # fullmatch would extend one comment over everything
        return match is not None and match.end() == len(text)


class TomlFormat(SettingsFormat):
    """TOML, in which each member is its own table."""

    new_file = ""
    _spans: _Spans = toml_spans

    def values(self, text: str) -> dict[str, Any]:
        """Return all values."""
        return toml_spans.parse(text)

    def insert(
        self, text: str, keys: Keys, name: str, value: Mapping[str, Any]
    ) -> tuple[str, list[Keys]]:
        """Insert a table at the end. Its header makes the tables around it."""
        return toml_spans.insert_table(text, (*keys, name), value), []

    def remove(self, text: str, keys: Keys, made: Sequence[Keys]) -> str:
        """Remove a table with the tables in it."""
        del made
        return toml_spans.remove_member(text, keys)

    def insert_item(
        self, text: str, keys: Keys, value: Mapping[str, Any]
    ) -> tuple[str, list[Keys]]:
        """Insert a table at the end of the array. Its header makes the array."""
        return toml_spans.append_table(text, keys, value), []

    def prepend(self, raw: str, items: Sequence[str]) -> str:
        """Insert `items` after the bracket."""
        return _prepend(raw, items, is_empty=not toml_spans.parse(f"x = {raw}")["x"])

    def snippet(self, keys: Keys, name: str, value: Mapping[str, Any]) -> str:
        """Return the table."""
        return toml_spans.insert_table("", (*keys, name), value).rstrip("\n")


class YamlFormat(SettingsFormat):
    """YAML in block style. Lists of strings may be in flow style."""

    new_file = ""
    _spans: _Spans = yaml_spans

    def values(self, text: str) -> dict[str, Any]:
        """Return all values."""
        return yaml_spans.parse(text)

    def insert(
        self, text: str, keys: Keys, name: str, value: Mapping[str, Any]
    ) -> tuple[str, list[Keys]]:
        """Insert a member directly below the key of the mapping."""
        after, is_new = yaml_spans.insert_member(text, keys, name, value)
        return after, [keys] if is_new else []

    def remove(self, text: str, keys: Keys, made: Sequence[Keys]) -> str:
        """Remove the lines of a member, or of an item."""
        text = yaml_spans.remove_item(text, keys[:-1], keys[-1])
        text = yaml_spans.remove_member(text, keys)
        for each in made:
            text = yaml_spans.remove_empty(text, each)
        return text

    def insert_item(
        self, text: str, keys: Keys, value: Mapping[str, Any]
    ) -> tuple[str, list[Keys]]:
        """Insert an item at the start of the sequence."""
        after, is_new = yaml_spans.insert_item(text, keys, value)
        return after, [keys] if is_new else []

    def snippet(self, keys: Keys, name: str, value: Mapping[str, Any]) -> str:
        """Return the member below its key."""
        return yaml_spans.insert_member("", keys, name, value)[0].rstrip("\n")

    def prepend(self, raw: str, items: Sequence[str]) -> str:
        """Insert `items` after the bracket, or as lines."""
        if raw.startswith("["):
            return _prepend(raw, items, is_empty=not yaml_spans.parse(f"x: {raw}")["x"])
        return yaml_spans.prepend(raw, items)
