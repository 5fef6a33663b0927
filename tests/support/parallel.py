"""Run the same work in as many processes as there are processors."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

_WORTH_A_PROCESS = 100


def in_parallel(
    work: Callable[[Part], Result], parts: Iterable[Part], processes: int | None = None
) -> list[Result]:
    """Return the result of `work`, a module's function, for each part. Raises if one raises.

    There is a process for each processor unless `processes` says how many. Each starts fresh, with
    one thread, so `work` may fork. One process is this one, because to start another costs more
    than little work.
    """
    if processes == 1:
        return [work(part) for part in parts]
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=spawned) as pool:
        return list(pool.map(work, parts))


def shares(whole: int, most: int) -> list[int]:
    """Return `whole` in equal parts of at most `most`, for `in_parallel`. A small whole stays one
    part.
    """
    count = max(-(-whole // most), min(os.cpu_count() or 1, whole // _WORTH_A_PROCESS), 1)
    return [whole // count + (number < whole % count) for number in range(count)]
