"""Measurements for all benchmarks: the cost of a call and of a process, medians, tables, and
versions.
"""

from __future__ import annotations

import importlib.metadata
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import NamedTuple

import psutil

NOT_HERE = "not installed"
_WORD_OF_VERSION = 1


class Cost(NamedTuple):
    """Wall and CPU milliseconds of one call, processes that it started and waited for included."""

    wall_ms: float
    cpu_ms: float


def timed(action: Callable[[], object]) -> Cost:
    """What one call costs."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before = [resource.getrusage(who) for who in whose]
    begin = time.perf_counter()
    action()
    wall = time.perf_counter() - begin
    after = [resource.getrusage(who) for who in whose]
    cpu = sum(
        b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime
        for a, b in zip(before, after, strict=True)
    )
    return Cost(wall * 1e3, cpu * 1e3)


def interleaved(actions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Cost]:
    """The median cost of each action. All take turns, so that what disturbs one disturbs all.

    Each round has an order of its own: who always comes after the one that looks at most would
    find the caches full of that.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in actions}
    order, shuffled = list(actions.items()), random.Random(7)  # noqa: S311 - the same each time
    for number in range(rounds + 1):
        shuffled.shuffle(order)
        for name, action in order:
            cost = timed(action)
            # The first round only warms the caches.
            if number:
                costs[name].append(cost)
    return {name: median_cost(each) for name, each in costs.items()}


def median_cost(costs: Sequence[Cost]) -> Cost:
    """The medians of wall and of CPU time."""
    return Cost(
        statistics.median(cost.wall_ms for cost in costs),
        statistics.median(cost.cpu_ms for cost in costs),
    )


def run_quietly(command: Sequence[str]) -> None:
    """Run a program to its end; that some folder is unreadable is no failure."""
    quiet = subprocess.DEVNULL
    subprocess.run(command, stdout=quiet, stderr=quiet, check=False)


def percentile(values: Iterable[float], share: float) -> float:
    """The value that `share` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown, and how busy the machine is: above its cores, latencies lie."""
    busy = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"\n{title} ({busy})\n")
    print("| " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * (len(columns) - 1))
    for row in rows:
        print("| " + " | ".join(_shown(cell) for cell in row) + " |")


def _shown(cell: object) -> str:
    if not isinstance(cell, float):
        return str(cell)
    if abs(cell) >= 100:
        return f"{cell:,.0f}"
    return f"{cell:.1f}" if abs(cell) >= 10 else f"{cell:.2f}"


def times(numerator: float, denominator: float) -> str:
    """A ratio for people; `-` where there is nothing to divide by."""
    return f"{numerator / denominator:.1f} x" if denominator > 0 else "-"


def cpu_seconds(pid: int) -> float:
    """CPU seconds that the living threads of a process took, to the nanosecond on Linux."""
    if sys.platform != "linux":
        spent = psutil.Process(pid).cpu_times()
        return spent.user + spent.system
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


def wakeups(pid: int) -> int:
    """How often the living threads of a process went to sleep, which is how often they woke."""
    tasks = Path(f"/proc/{pid}/task")
    word = "voluntary_ctxt_switches:"
    return sum(_number_after(word, (task / "status").read_text()) for task in tasks.iterdir())


class Memory(NamedTuple):
    """Megabytes (10^6 bytes) that a process holds, and of those its share alone (PSS)."""

    rss_mb: float
    pss_mb: float


def memory(pid: int) -> Memory:
    """What a process holds now, from /proc."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return Memory(*(_number_after(word, text) * 1024 / 1e6 for word in ("Rss:", "Pss:")))


def watches(pid: int) -> tuple[int, int]:
    """How many inotify watches a process holds, and in how many instances."""
    held = instances = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(descriptor) != "anon_inode:inotify":
                continue
            text = Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text()
        except FileNotFoundError:
            # It was closed meanwhile.
            continue
        instances += 1
        held += text.count("inotify wd:")
    return held, instances


def _number_after(word: str, text: str) -> int:
    line = next(line for line in text.splitlines() if line.startswith(word))
    return int(line.split()[1])


def pause(seconds: float) -> None:
    """Let time pass: here the passing of time is what is measured."""
    Event().wait(seconds)


def wait_until_calm(pid: int, window: float = 0.5) -> None:
    """Return once a process took no CPU worth mentioning for `window` seconds."""
    before = cpu_seconds(pid)
    for _ in range(int(120 / window)):
        pause(window)
        now = cpu_seconds(pid)
        if now - before < 0.01 * window:
            return
        before = now
    raise TimeoutError(f"process {pid} was never calm")


def fd_program() -> str | None:
    """The first fd on PATH, whatever this system calls it."""
    return shutil.which("fd") or shutil.which("fdfind")


def version_of(command: str) -> str:
    """What a program says when asked for its version."""
    asked = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    words = asked.stdout.split() or ["?"]
    return words[_WORD_OF_VERSION] if len(words) > _WORD_OF_VERSION else words[0]


def package_version(name: str) -> str | None:
    """The version of an installed Python package; None where there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
