"""The forms of single values in control requests. Each raises ValueError for what has another."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


def text(raw: object) -> str:
    """A string."""
    if not isinstance(raw, str):
        raise ValueError("not a string")  # noqa: TRY004 - one class for all forms
    return raw


def number(raw: object) -> int:
    """A whole number, which a bool is not."""
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise ValueError("not a whole number")  # noqa: TRY004 - one class for all forms
    return raw


def truth(raw: object) -> bool:
    """True or false."""
    if not isinstance(raw, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004 - one class for all forms
    return raw


def texts(raw: object) -> tuple[str, ...]:
    """A list of strings."""
    if not isinstance(raw, list):
        raise ValueError("not a list")  # noqa: TRY004 - one class for all forms
    return tuple(text(item) for item in raw)


def word(enum: type[StrEnum]) -> Callable[[object], StrEnum]:
    """What reads a member of `enum` by its value."""
    return lambda raw: enum(text(raw))


def optional(form: Callable[[object], object]) -> Callable[[object], object]:
    """What reads null as None, and all else as `form` does."""
    return lambda raw: None if raw is None else form(raw)
