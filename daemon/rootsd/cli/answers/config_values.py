"""Read the values of config.toml, and convert them from and to the words that people type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import click

from rootsd.cli.answers import config_edit
from rootsd.cli.text.phrases import shorten_home
from rootsd.config.configuration import parse_config
from rootsd.config.reference import KeyReference, settable_keys
from rootsd.core.parsing import Unparsable, parse_toml
from rootsd.core.paths import text_of

_TRUTH = {"true": True, "false": False}


class KeyValue(NamedTuple):
    """The value of a key, which the file or the default gives, as `set_in` says."""

    name: str
    value: Any
    set_in: str


def values_in(file: bytes) -> Iterator[KeyValue]:
    """Yield each key that is not of a parent, in the order of the documentation.

    Raises BadConfig.
    """
    text = config_edit.read_text(file)
    parse_config(text, file)
    given = parse_toml(text)
    for key in settable_keys():
        yield _value_in(given.get(key.table, {}), key.full_name, key.name, key.default)


def parent_values_in(file: bytes) -> Iterator[KeyValue]:
    """Yield each key of each parent, as `parent PATH KEY`. Raises BadConfig."""
    text = config_edit.read_text(file)
    config = parse_config(text, file)
    for parent, entry in zip(config.parents, parse_toml(text).get("parent", []), strict=True):
        path = shorten_home(text_of(parent.path))
        values = {
            "depth": parent.depth,
            "skip": [text_of(glob) for glob in parent.skip],
            "project_files": [text_of(name) for name in parent.project_files],
            "nested": parent.nested.value,
            "mounts": parent.mounts.value,
        }
        for key, value in values.items():
            yield KeyValue(f"parent {path} {key}", value, "file" if key in entry else "default")


def value_text(value: object) -> str:
    """Return a value as it is typed: a string without quotes, and true or false as in TOML."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed_value(key: KeyReference, words: Sequence[str]) -> object:
    """Return the value that the words mean, or the word itself if it is none of the key's type.

    Raises click.UsageError if the key takes one value and there are several.
    """
    first = words[0]
    if key.is_list:
        if len(words) == 1 and first.startswith("["):
            try:
                value = parse_toml(f"value = {first}")
            except Unparsable as error:
                raise click.UsageError(f"the list cannot be read: {error}") from error
            if len(value) > 1:
                raise click.UsageError("the list cannot be read: there is text behind it")
            return value["value"]
        return list(words)
    if len(words) > 1:
        raise click.UsageError(f"{key.full_name} takes one value")
    if isinstance(key.default, bool):
        return _TRUTH.get(first, first)
    if isinstance(key.default, int):
        return int(first) if first.isascii() and first.isdigit() else first
    return first


def _value_in(table: dict[str, Any], full_name: str, name: str, default: object) -> KeyValue:
    return KeyValue(full_name, table.get(name, default), "file" if name in table else "default")
