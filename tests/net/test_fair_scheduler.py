"""Turns between processes: when a process gets one, and how long it is."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import anyio
import pytest

from rootsd.net.fair_scheduler import (
    MOST_FREE_ITERATIONS,
    SHORT_TURN_S,
    FairScheduler,
)

HANG_GUARD_S = 60


async def test_a_single_process_does_not_wait() -> None:
    turns = FairScheduler()
    waiting = turns.take(1)
    try:
        waiting.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")


async def test_a_process_that_comes_last_waits_for_one_line_of_each_other() -> None:
    turns, had = FairScheduler(), list[int]()

    async def line(process: int) -> None:
        await turns.take(process)
        had.append(process)

    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            for process in (1, 2, 3):
                for _ in range(50):
                    group.start_soon(line, process)
            group.start_soon(line, 4)
    assert had.index(4) <= 4
    assert [had.count(process) for process in (1, 2, 3, 4)] == [50, 50, 50, 1]


async def test_a_connection_that_ends_while_waiting_uses_no_turn() -> None:
    turns, had = FairScheduler(), list[str]()

    async def line(name: str, process: int) -> None:
        await turns.take(process)
        had.append(name)

    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(line, "first", 1)
            async with anyio.create_task_group() as ended:
                for _ in range(10):
                    ended.start_soon(line, "ended", 1)
                await anyio.lowlevel.checkpoint()
                ended.cancel_scope.cancel()
            group.start_soon(line, "last", 1)
    assert had[0] == "first"
    assert had[-1] == "last"
    assert had.count("ended") <= 1


async def test_after_a_long_turn_other_tasks_get_iterations_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns, loop = FairScheduler(), asyncio.get_running_loop()
    now, iteration, had = 0.0, 0, list[int]()
    monkeypatch.setattr(loop, "time", lambda: now)

    def count() -> None:
        nonlocal iteration
        iteration += 1
        if len(had) < 7:
            loop.call_soon(count)

    async def line(seconds: float) -> None:
        nonlocal now
        await turns.take(1)
        had.append(iteration)
        now += seconds

    loop.call_soon(count)
    async with anyio.create_task_group() as group:
        for turn in (0.0, 0.0, 0.0005, 1.5 * SHORT_TURN_S, 4.5 * SHORT_TURN_S, 100.0, 0.0):
            group.start_soon(line, turn)
    waited = [later - before for before, later in pairwise(had)]
    assert waited[1:] == [1, 1, 2, 5, 1 + MOST_FREE_ITERATIONS]
