"""How scan, start, memory, and answers grow with the number of repositories."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from bench.bench_memory import settle
from bench.bench_scan import C_WALK, FD, RESCAN, SCAN, Contest, others
from bench.bench_start import discovery
from bench.forest import Plan, make_forest
from bench.measuring import interleaved, memory, run_quietly, table
from bench.running import daemon
from support.sizes import Sizes

START = "rootsd: start to watching, all checks"


@dataclass(frozen=True, slots=True)
class Point:
    """The costs at one size, in wall milliseconds by contestant."""

    repositories: int
    folders: int
    looked_at: int
    wall_ms: dict[str, float]


def measure(folder: Path, repositories: int, rounds: int) -> Point:
    """Grow a lean forest and compete in it."""
    forest = make_forest(folder / "src", Plan(repositories, heavy=0))
    contest = Contest(forest, folder / "index")
    contest.settle()
    contest.check()
    commands = others(forest.top, folder)
    actions: dict[str, Callable[[], object]] = {
        SCAN: contest.scan,
        RESCAN: contest.rescan,
    }
    for name in (C_WALK, FD):
        if name in commands:
            actions[name] = partial(run_quietly, commands[name])
    costs = interleaved(actions, rounds)
    looked_at = len(contest.frontier) + len(forest.repositories)
    wall_ms = {name: cost.wall_ms for name, cost in costs.items()}
    starts = [discovery(forest).seconds * 1e3 for _ in range(rounds)]
    wall_ms[START] = statistics.median(starts)
    return Point(len(forest.repositories), forest.folders, looked_at, wall_ms)


@pytest.mark.needs("linux")
def test_cost_grows_with_the_frontier(tmp_path: Path, sizes: Sizes) -> None:
    counts = sizes.pick(
        test=(500, 1_000, 2_000), check=(500, 5_000, 20_000), soak=(500, 5_000, 20_000, 50_000)
    )
    points = []
    for count in counts:
        folder = tmp_path / str(count)
        folder.mkdir()
        points.append(measure(folder, count, rounds=5))
    names = list(points[0].wall_ms)
    table(
        "Growth, lean forests, wall ms (us for each folder looked at)",
        ("repositories", "folders", "looked at", *names),
        (
            (
                f"{point.repositories:,}",
                f"{point.folders:,}",
                f"{point.looked_at:,}",
                *(f"{ms:.1f} ({ms * 1e3 / point.looked_at:.1f})" for ms in point.wall_ms.values()),
            )
            for point in points
        ),
    )


@dataclass(frozen=True, slots=True)
class DaemonCosts:
    """The costs of a daemon with so many projects: memory in MB, and times of answers in ms."""

    projects: int
    pending_mb: float
    published_mb: float
    answers_ms: dict[str, float]


def daemon_costs(folder: Path, repositories: int, rounds: int) -> DaemonCosts:
    """Run a daemon on a lean forest, and ask it while all projects are pending, then published."""
    forest = make_forest(folder / "src", Plan(repositories, heavy=0))
    with daemon(Path(os.fsdecode(forest.top))) as running:
        settle(running.pid)
        pending_mb = memory(running.pid).rss_mb
        items = running.ask("projects", cwd="/", select="waiting")["items"]
        one = str(items[0]["id"])
        running.approve_forest(forest)
        settle(running.pid)
        orders: dict[str, Callable[[], object]] = {
            "status": partial(running.ask, "status"),
            "check": partial(running.ask, "check", path=str(items[0]["path"])),
            "ls": partial(running.ask, "projects", cwd="/", select="all"),
            "deny": partial(running.ask, "decide", verb="deny", cwd="/", refs=[one]),
            "approve": partial(running.ask, "decide", verb="approve", cwd="/", refs=[one]),
        }
        taken: dict[str, list[float]] = {name: [] for name in orders}
        for _ in range(rounds):
            for name, order in orders.items():
                begin = time.perf_counter()
                order()
                taken[name].append((time.perf_counter() - begin) * 1e3)
        answers = {name: statistics.median(ms) for name, ms in taken.items()}
        return DaemonCosts(len(items), pending_mb, memory(running.pid).rss_mb, answers)


@pytest.mark.needs("linux")
def test_memory_and_answers_grow_with_the_projects(tmp_path: Path, sizes: Sizes) -> None:
    counts = sizes.pick(test=(500, 2_000), check=(500, 5_000, 20_000), soak=(500, 5_000, 20_000))
    costs = []
    for count in counts:
        folder = tmp_path / str(count)
        folder.mkdir()
        os.environ["ROOTSD_DIR"] = str(folder / "rootsd")
        costs.append(daemon_costs(folder, count, rounds=11))
    table(
        "Growth of the daemon: memory in MB, and times of answers in ms",
        ("projects", "all pending", "all published", *costs[0].answers_ms),
        (
            (f"{each.projects:,}", each.pending_mb, each.published_mb, *each.answers_ms.values())
            for each in costs
        ),
    )
