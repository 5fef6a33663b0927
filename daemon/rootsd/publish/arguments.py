"""What a tool was called with, checked; what is wrong is told to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rootsd.core.labels import safe_label
from rootsd.core.paths import bytes_of


class BadArguments(Exception):
    """The model can put this right by itself: the message tells how."""


def expect(arguments: Mapping[str, Any], *allowed: str) -> None:
    """Raises BadArguments where there is any but the allowed ones."""
    if unknown := sorted(arguments.keys() - set(allowed)):
        takes = ", ".join(allowed) or "none"
        raise BadArguments(f"unknown argument {safe_label(unknown[0])}; this tool takes {takes}")


def text(arguments: Mapping[str, Any], name: str) -> str:
    """A string that must be there and not be empty."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise BadArguments(f"give {name}, as a string that is not empty")
    return value


def path(arguments: Mapping[str, Any]) -> bytes:
    """The absolute path called `path`, not yet canonical."""
    value = text(arguments, "path")
    if not value.startswith("/") or "\0" in value:
        raise BadArguments("give path as an absolute path, without NUL")
    return bytes_of(value)


def seconds(arguments: Mapping[str, Any], name: str, usual: float, longest: int) -> float:
    """A whole number of seconds from 0 to `longest`, or `usual` where it is left out."""
    value = arguments.get(name)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= longest:
        raise BadArguments(f"give {name} as a whole number from 0 to {longest}")
    return value
