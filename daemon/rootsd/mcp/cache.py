"""Cache results that many sessions compute from the same immutable objects.

A hundred sessions hold the same published set, and each would serialise it and compare it with
the one before. Hashing a set of thousands of roots costs as much as the work that is saved, so
arguments are told apart by identity; the memo keeps them alive, so no id is ever used twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeVar, TypeVarTuple

Args = TypeVarTuple("Args")
T = TypeVar("T")
Value = TypeVar("Value")


def cached_by_identity(size: int) -> Callable[[Callable[[*Args], T]], Callable[[*Args], T]]:
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


def cached_each_by_identity(
    size: int,
) -> Callable[[Callable[[Value], T]], Callable[[Sequence[Value]], list[T]]]:
    """Decorate a pure function of one immutable value to take a sequence of them.

    The results in its `size` newest answers are kept: where one of thousands of values has
    changed, only that one is worked out.
    """

    def decorate(function: Callable[[Value], T]) -> Callable[[Sequence[Value]], list[T]]:
        kept: deque[dict[int, tuple[Value, T]]] = deque(maxlen=size)

        @wraps(function)
        def ask(values: Sequence[Value]) -> list[T]:
            known: dict[int, tuple[Value, T]] = {}
            for earlier in kept:
                known |= earlier
            pairs = [known.get(id(value)) or (value, function(value)) for value in values]
            kept.append({id(pair[0]): pair for pair in pairs})
            return [result for _, result in pairs]

        return ask

    return decorate
