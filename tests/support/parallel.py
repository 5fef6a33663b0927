"""The same work many times over, in as many processes as there are processors."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

_WORTH_A_PROCESS = 100


def in_parallel(work: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """What `work`, a function of a module, gives for each part. Where one raises, this does.

    Each process starts anew, with one thread: work may fork.
    """
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawned) as pool:
        return list(pool.map(work, parts))


def shares(whole: int, most: int) -> list[int]:
    """`whole` in equal parts for `in_parallel`, of `most` at most; small wholes stay one."""
    count = max(-(-whole // most), min(os.cpu_count() or 1, whole // _WORTH_A_PROCESS), 1)
    return [whole // count + (number < whole % count) for number in range(count)]
