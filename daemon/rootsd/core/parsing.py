"""Parse JSON and TOML that another program may have written or damaged.

The parsers of the standard library raise many different errors: for bad syntax, for text that is
not UTF-8, for deep nesting (RecursionError), for a number with thousands of digits (a plain
ValueError), or if there is not enough memory. Here all of these raise one error, Unparsable.
Parsed values have limited nesting and no infinite numbers, so other code need not check for these.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # importing typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

MAX_LEVELS = 64
# The time to parse a dotted TOML key grows with the square of the number of dots.
MAX_DOTS = 250
_TOO_DEEP = "it is nested too deeply"
_CONTAINERS = (dict, list)


class Unparsable(ValueError):
    """Text that is not valid. The message says why, as a clause."""


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - as json.loads
    """Return the value of the JSON `text`. Raises Unparsable."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_number)
    except RecursionError as error:
        raise Unparsable(_TOO_DEEP) from error
    except MemoryError as error:
        raise Unparsable("it is too large") from error
    except UnicodeDecodeError as error:
        raise Unparsable("it is not UTF-8") from error
    except ValueError as error:
        raise Unparsable(f"it is not JSON: {error}") from error
    if _brackets(text) > MAX_LEVELS:
        check_levels(value)
    return value


def json_value_at(
    text: str, at: int, of_pairs: Callable[[list[tuple[str, Any]]], Any]
) -> tuple[Any, int]:
    """Return the JSON value that starts at `at` in `text`, and the position of its end.

    `of_pairs` creates an object from its members, and may raise ValueError. The caller must check
    the nesting with `check_levels`. Raises Unparsable.
    """
    decoder = json.JSONDecoder(
        object_pairs_hook=of_pairs, parse_constant=_refuse, parse_float=_number
    )
    try:
        return decoder.raw_decode(text, at)
    except RecursionError as error:
        raise Unparsable(_TOO_DEEP) from error
    except MemoryError as error:
        raise Unparsable("it is too large") from error
    except ValueError as error:
        raise Unparsable(f"it is not JSON: {error}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of the TOML `text`.

    Raises Unparsable. For a syntax error, its `__cause__` is a tomllib.TOMLDecodeError.
    """
    import tomllib  # noqa: PLC0415  # the lean programs read no TOML

    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS:
            raise Unparsable(f"line {number} has more than {MAX_DOTS} dots")
    try:
        tables = tomllib.loads(text)
    except RecursionError as error:
        raise Unparsable(_TOO_DEEP) from error
    except MemoryError as error:
        raise Unparsable("it is too large") from error
    except ValueError as error:
        raise Unparsable(str(error)) from error
    check_levels(tables)
    return tables


def _brackets(text: str | bytes) -> int:
    """Return an upper bound for the number of objects and lists in `text`."""
    if isinstance(text, str):
        return text.count("[") + text.count("{")
    return text.count(b"[") + text.count(b"{")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


def _number(text: str) -> float:
    """Return `text` as a float. Raises ValueError for a number such as 1e999."""
    number = float(text)
    if number - number != 0:  # infinity minus infinity is not a number
        raise ValueError("a number is too large")
    return number


def check_levels(value: object) -> None:
    """Raise Unparsable if `value` has more than MAX_LEVELS levels."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MAX_LEVELS):
        if not level:
            return
        # Most values hold no others, and a listing has half a million of them.
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _CONTAINERS)
        ]
    if level:
        raise Unparsable(_TOO_DEEP)
