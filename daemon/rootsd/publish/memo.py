"""Remembers what was computed from immutable values that many sessions share.

A hundred sessions hold the same published set, and each would serialise it and compare it with
the one before. Hashing a set of thousands of roots costs as much as the work that is saved, so
arguments are told apart by identity; the memo keeps them alive, so no id is ever used twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, TypeVarTuple

Args = TypeVarTuple("Args")
T = TypeVar("T")


def shared(size: int) -> Callable[[Callable[[*Args], T]], Callable[[*Args], T]]:
    """Decorate a pure function of immutable values to keep its `size` newest results."""

    def decorate(function: Callable[[*Args], T]) -> Callable[[*Args], T]:
        kept: dict[tuple[int, ...], tuple[tuple[*Args], T]] = {}

        @wraps(function)
        def ask(*args: *Args) -> T:
            key = tuple(map(id, args))
            if (found := kept.get(key)) is not None:
                return found[1]
            result = function(*args)
            kept[key] = (args, result)
            if len(kept) > size:
                del kept[next(iter(kept))]
            return result

        return ask

    return decorate
