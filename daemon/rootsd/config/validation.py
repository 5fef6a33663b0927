"""Validate the tables of a configuration file against their structs, and report every problem.

The files are `config.toml` and the machine's policy.

`msgspec.convert` stops at the first problem, so this module converts each key separately. A key
with a problem keeps its default, so it does not hide another problem.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard, TypeVar

import msgspec
from msgspec import Struct, inspect

from rootsd.core.errors import BadConfig
from rootsd.core.labels import safe_label
from rootsd.core.parsing import Unparsable
from rootsd.core.suggestions import did_you_mean, nearest
from rootsd.settings.toml_spans import KeyPath, find_lines

MAX_PROBLEMS = 20
"""How many problems of a file one error lists."""

Table = TypeVar("Table", bound=Struct)


class ConfigProblem(Struct, frozen=True):
    """A problem of one key. `text` completes the line "key KEY: …"."""

    key: KeyPath
    text: str


class TableValidator:
    """Converts tables to structs, and collects the problems."""

    def __init__(self) -> None:
        self.problems: list[ConfigProblem] = []

    def convert(
        self, table: Mapping[str, object], shape: type[Table], at: KeyPath
    ) -> Table | None:
        """Return `table` as a struct, or None if a required key is missing or has a problem."""
        fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
        values: dict[str, object] = {}
        misspelled = set()
        for name, raw in table.items():
            if name not in fields:
                misspelled.add(self._report_unknown(name, list(fields), at))
                continue
            value = self._value(raw, fields[name].type, (*at, name))
            if value is not None:
                values[name] = value
        missing = {name for name, field in fields.items() if field.required} - values.keys()
        for name in sorted(missing - table.keys() - misspelled):
            self._add((*at, name), "this key is required")
        return None if missing else shape(**values)

    def _value(self, raw: object, annotation: object, at: KeyPath) -> object:
        """Return the value of a key, or None after adding its problems."""
        kind = inspect.type_info(annotation)
        expected = ""
        if isinstance(kind, inspect.Metadata):
            expected = (kind.extra or {})["expected"]
            kind = kind.type
        match kind:
            case inspect.StructType(cls=shape) if isinstance(raw, dict):
                return self.convert(raw, shape, at)
            case inspect.ListType(item_type=inspect.StructType(cls=shape)) if _is_tables(raw):
                # A table with a problem stays as None, so that the others keep their index.
                return [self.convert(item, shape, (*at, i)) for i, item in enumerate(raw)]
        try:
            return msgspec.convert(raw, annotation)
        except msgspec.ValidationError:
            self._add(at, f"expected {expected}")
            return None

    def _report_unknown(self, name: str, known: list[str], at: KeyPath) -> str | None:
        """Add the problem of an unknown key. Return the known key with a similar name, or None."""
        similar = nearest(name, known, likeness=0.5)
        hint = did_you_mean(similar) or f"; known keys: {', '.join(known)}"
        self._add((*at, name), f"there is no such key{hint}")
        return similar[0] if similar else None

    def _add(self, key: KeyPath, text: str) -> None:
        self.problems.append(ConfigProblem(key, text))


def _is_tables(raw: object) -> TypeGuard[list[dict[str, object]]]:
    return isinstance(raw, list) and all(isinstance(item, dict) for item in raw)


def invalid_file(
    file: bytes, text: str, problems: Sequence[ConfigProblem], remedy: str
) -> BadConfig:
    """Return one error with all problems of `text`, in the order of their lines."""
    lines = find_lines(text)
    found = sorted(
        ((line_of(problem.key, lines), problem) for problem in problems), key=lambda item: item[0]
    )
    shown = [
        f"line {line}, key {_shown_key(problem.key)}: {problem.text}" for line, problem in found
    ]
    if len(shown) == 1:
        return BadConfig(f"{safe_label(file, limit=None)}, {shown[0]}", remedy)
    if len(shown) > MAX_PROBLEMS:
        shown[MAX_PROBLEMS:] = [f"and {len(shown) - MAX_PROBLEMS} more"]
    headline = f"{safe_label(file, limit=None)} has {len(found)} errors:"
    return BadConfig("\n  ".join([headline, *shown]), remedy)


def line_of(key: KeyPath, lines: Mapping[KeyPath, int]) -> int:
    """Return the line of `key`, or of the nearest table around it."""
    while key and key not in lines:
        key = key[:-1]
    return lines.get(key, 1)


def _shown_key(key: KeyPath) -> str:
    """Return a key as `parent[0].path`, safe for a terminal."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{safe_label(part)}" for part in key)
    return "".join(parts).removeprefix(".")


def syntax_error(file: bytes, error: Unparsable, remedy: str) -> BadConfig:
    """Return the error for a file that is not TOML, with the line if it is known."""
    place = re.search(r" \((?:at (line \d+), column \d+|at (end of document))\)$", str(error))
    if place is None:
        return BadConfig(f"{safe_label(file, limit=None)}: {error}", remedy)
    what = str(error)[: place.start()]
    return BadConfig(f"{safe_label(file, limit=None)}, {place[1] or place[2]}: {what}", remedy)
