"""Cache results that many sessions compute from the same immutable objects.

A hundred sessions hold the same published set. Without a cache, each of them would serialize it
and compare it with the previous one. To hash a set of thousands of roots would cost as much as
that work. So the caches compare arguments by identity. A cache keeps its arguments alive, so
Python does not reuse the id of an argument while that id is a key.
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
    """Decorate a pure function of immutable values to keep its newest `size` results."""

    def decorate(function: Callable[[*Args], T]) -> Callable[[*Args], T]:
        cache: dict[tuple[int, ...], tuple[tuple[*Args], T]] = {}

        @wraps(function)
        def call(*args: *Args) -> T:
            key = tuple(map(id, args))
            if (found := cache.get(key)) is not None:
                return found[1]
            result = function(*args)
            cache[key] = (args, result)
            if len(cache) > size:
                del cache[next(iter(cache))]
            return result

        return call

    return decorate


def cached_each_by_identity(
    size: int,
) -> Callable[[Callable[[Value], T]], Callable[[Sequence[Value]], list[T]]]:
    """Decorate a pure function of one immutable value to take a sequence of values.

    The results of the newest `size` calls are kept. If one of thousands of values has changed,
    only that one is computed.
    """

    def decorate(function: Callable[[Value], T]) -> Callable[[Sequence[Value]], list[T]]:
        cache: deque[dict[int, tuple[Value, T]]] = deque(maxlen=size)

        @wraps(function)
        def call(values: Sequence[Value]) -> list[T]:
            known: dict[int, tuple[Value, T]] = {}
            for earlier in cache:
                known |= earlier
            pairs = [known.get(id(value)) or (value, function(value)) for value in values]
            cache.append({id(pair[0]): pair for pair in pairs})
            return [result for _, result in pairs]

        return call

    return decorate
