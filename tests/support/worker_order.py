"""The order of the tests of a run with several workers: slow ones first, in every worker.

pytest-xdist (`--dist=worksteal`) gives each worker an equal part of the list. A worker that has
finished takes over tests from the end of another one's part. So the end of each part has to be
quick: otherwise, the last minutes are a few slow tests of one worker, and the others are idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Protocol, TypeVar

SLOW_FOLDERS = frozenset({"e2e", "faults", "trust", "wall", "watching"})


class HasPlace(Protocol):
    """A test, which knows its file."""

    @property
    def path(self) -> PurePath: ...


Test = TypeVar("Test", bound=HasPlace)


def slow_first(tests: Sequence[Test], workers: int) -> list[Test]:
    """Return the tests in an order in which each worker's part starts with slow files.

    The tests of a file stay together, because they share fixtures.
    """
    slow = [test for test in tests if _is_slow(test)]
    quick = iter([test for test in tests if not _is_slow(test)])
    parts: list[list[Test]] = [[] for _ in range(workers)]
    for _, file in groupby(slow, lambda test: test.path):
        min(parts, key=len).extend(file)
    left = len(tests)
    for number, part in enumerate(parts):
        size = left // (workers - number)  # as pytest-xdist cuts the list
        part += [test for _, test in zip(range(size - len(part)), quick, strict=False)]
        left -= size
    return [*(test for part in parts for test in part), *quick]


def _is_slow(test: HasPlace) -> bool:
    return not SLOW_FOLDERS.isdisjoint(test.path.parts)
