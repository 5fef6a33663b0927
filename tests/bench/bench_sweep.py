"""The cost of a sweep of 5,000 approved repositories, with warm and with cold caches, and per day.

A sweep checks what no watch covers. Cold means that the kernel has dropped its caches of names and
blocks, so that each folder has to come from the disk again. Dropping them needs root.

Run: make bench ARGS='-k bench_sweep'
"""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.forest import Forest
from bench.measuring import table
from rootsd.core.model import Parent
from rootsd.discovery.engine import DiscoveryEngine
from rootsd.discovery.periodic import ROOTS_POLL_CPU_SHARE, ROOTS_POLL_INTERVAL_S
from rootsd.processes.activity import folders_of_tools
from rootsd.watch.backend import best_watcher
from support.sizes import Sizes
from support.system_parts import folder_safety

DAY_S = 86_400
CACHES = Path("/proc/sys/vm/drop_caches")
NAMES_AND_BLOCKS = "3"  # proc_sys_vm(5), "drop_caches"


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one sweep took. `wake_ups` is how often the thread waited for the disk."""

    wall_s: float
    cpu_s: float
    wake_ups: int

    @property
    def per_day(self) -> float:
        """How many of them the pace of `PollScheduler` allows in a day."""
        pause = max(ROOTS_POLL_INTERVAL_S, self.wall_s / ROOTS_POLL_CPU_SHARE)
        return DAY_S / (self.wall_s + pause)


def measured(sweep: Callable[[], object]) -> Sweep:
    """Sweep once, in this thread."""
    before = resource.getrusage(resource.RUSAGE_THREAD)
    wall, cpu = time.perf_counter(), time.thread_time()
    sweep()
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    after = resource.getrusage(resource.RUSAGE_THREAD)
    return Sweep(wall, cpu, after.ru_nvcsw - before.ru_nvcsw)


def drop_caches() -> None:
    """Make the kernel forget names and blocks."""
    os.sync()
    CACHES.write_text(NAMES_AND_BLOCKS)


def row(name: str, sweeps: list[Sweep]) -> tuple[object, ...]:
    """The medians of the sweeps, and what the median one costs in a day."""
    median = sorted(sweeps, key=lambda each: each.wall_s)[len(sweeps) // 2]
    return (
        name,
        statistics.median(each.wall_s for each in sweeps) * 1e3,
        statistics.median(each.cpu_s for each in sweeps) * 1e3,
        statistics.median(each.wake_ups for each in sweeps),
        median.per_day,
        median.per_day * median.cpu_s,
        median.per_day * median.wake_ups,
    )


@pytest.mark.needs("linux", "root")
def test_a_sweep_with_warm_and_with_cold_caches(forest: Forest, sizes: Sizes) -> None:
    rounds = sizes.pick(test=5, check=11, soak=21)
    watcher = best_watcher(lambda _: None)
    watcher.start()
    safety = folder_safety()
    it = DiscoveryEngine(watcher, safety, lambda _: frozenset(), time.monotonic, folders_of_tools)
    for tree in it.set_parents([Parent(forest.top)]):
        it.explore(tree)
    it.set_roots(frozenset(forest.repositories), {})
    it.take()
    it.sweep()
    warm = [measured(it.sweep) for _ in range(rounds)]
    cold = []
    for _ in range(rounds):
        drop_caches()
        cold.append(measured(it.sweep))
    assert not it.take()
    watcher.stop()
    table(
        f"A sweep of {len(forest.repositories):,} roots",
        ("", "wall ms", "CPU ms", "wake-ups", "sweeps a day", "CPU s a day", "wake-ups a day"),
        [row("warm caches", warm), row("cold caches", cold)],
    )
