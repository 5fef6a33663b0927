"""Remembers what was computed from immutable values that many sessions share.

A hundred sessions hold the same published set, and each would serialise it and compare it with
the one before. Hashing a set of thousands of roots costs as much as the work that is saved, so
arguments are told apart by identity; the memo keeps them alive, so no id is ever used twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, TypeVarTuple

Args = TypeVarTuple("Args")
T = TypeVar("T")


class _Itself:
    """Equal only where it stands for the very same object."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value: Any = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value


def shared(size: int) -> Callable[[Callable[[*Args], T]], Callable[[*Args], T]]:
    """Decorate a pure function of immutable values to keep its `size` newest results."""

    def decorate(function: Callable[[*Args], T]) -> Callable[[*Args], T]:
        @lru_cache(maxsize=size)
        def remembered(*keys: _Itself) -> T:
            return function(*(key.value for key in keys))

        @wraps(function)
        def ask(*args: *Args) -> T:
            return remembered(*map(_Itself, args))

        return ask

    return decorate
