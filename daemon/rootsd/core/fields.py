"""One JSON object, read key by key with the type of each value checked."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from rootsd.core.parsing import Unparsable, parse_json

Value = TypeVar("Value")
Member = TypeVar("Member", bound=StrEnum)


class BadRecord(Exception):
    """A stored text does not say what it must; the message names the key."""


class Fields:
    """A JSON object. Every reader takes a key, and raises BadRecord where the key is missing or
    its value is not what the reader gives. Keys that nobody asks for are ignored."""

    __slots__ = ("_fields",)

    def __init__(self, value: object, what: str) -> None:
        if not isinstance(value, dict):
            raise BadRecord(f"{what} is not an object")
        self._fields = value

    @classmethod
    def parse(cls, text: str) -> Fields:
        """The object that `text` holds."""
        try:
            return cls(parse_json(text), "the record")
        except Unparsable as error:
            raise BadRecord(str(error)) from error

    def maybe(self, key: str, reader: Callable[[str], Value]) -> Value | None:
        """What `reader` makes of `key`, or None where the key is absent."""
        return reader(key) if key in self._fields else None

    def inner(self, key: str) -> Fields:
        """The object below `key`."""
        return Fields(self._required(key), key)

    def text(self, key: str) -> str:
        """The string below `key`."""
        return _text(self._required(key), key)

    def number(self, key: str) -> int:
        """The whole number below `key`."""
        value = self._required(key)
        if not isinstance(value, int) or isinstance(value, bool):  # a bool is an int to Python
            raise BadRecord(f"{key} is not a whole number")
        return value

    def hexed(self, key: str) -> bytes:
        """The bytes that the plain hex text below `key` stands for."""
        text = self.text(key)
        try:
            value = bytes.fromhex(text)
        except ValueError as error:
            raise BadRecord(f"{key} is not hex") from error
        if value.hex() != text:  # fromhex takes spaces and capitals: two texts for one value
            raise BadRecord(f"{key} is not plain hex")
        return value

    def member(self, key: str, enum: type[Member]) -> Member:
        """The member of `enum` whose value stands below `key`."""
        text = self.text(key)
        try:
            return enum(text)
        except ValueError as error:
            raise BadRecord(f"{key} is none of {', '.join(enum)}") from error

    def objects(self, key: str) -> list[Fields]:
        """The objects in the list below `key`; none where the key is absent."""
        return [Fields(item, key) for item in self._items(key)]

    def texts(self, key: str) -> tuple[str, ...]:
        """The strings in the list below `key`; none where the key is absent."""
        return tuple(_text(item, key) for item in self._items(key))

    def _items(self, key: str) -> list[object]:
        value = self._fields.get(key, [])
        if not isinstance(value, list):
            raise BadRecord(f"{key} is not a list")
        return value

    def _required(self, key: str) -> object:
        if key not in self._fields:
            raise BadRecord(f"{key} is missing")
        return self._fields[key]


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise BadRecord(f"{what} is not text")
    return value
