"""How scan, start, memory, and answers grow with the number of repositories."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
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
from bench.measuring import cpu_seconds, interleaved, memory, run_quietly, table
from bench.running import Daemon, daemon
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
    """The costs of a daemon with so many projects: memory in MB, and times of answers in ms.

    `approve_cpu_ms` is the daemon's CPU for an approval while all others are pending, and
    `beside_ls_ms` the slowest `status` of another client during an `ls`, pending and published.
    """

    projects: int
    pending_mb: float
    published_mb: float
    approve_cpu_ms: float
    beside_ls_ms: tuple[float, float]
    answers_ms: dict[str, float]


def daemon_costs(folder: Path, repositories: int, rounds: int) -> DaemonCosts:
    """Run a daemon on a lean forest, and ask it while all projects are pending, then published."""
    forest = make_forest(folder / "src", Plan(repositories, heavy=0))
    with daemon(Path(os.fsdecode(forest.top))) as running:
        settle(running.pid)
        pending_mb = memory(running.pid).rss_mb
        items = running.ask("projects", cwd="/", select="waiting")["items"]
        one = str(items[0]["id"])
        approve_cpu_ms = cpu_of_an_approval(running, one, rounds)
        pending_status_ms = slowest_status_beside_ls(running)
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
        published_mb = memory(running.pid).rss_mb
        return DaemonCosts(
            len(items),
            pending_mb,
            published_mb,
            approve_cpu_ms,
            (pending_status_ms, slowest_status_beside_ls(running)),
            {name: statistics.median(ms) for name, ms in taken.items()},
        )


def cpu_of_an_approval(running: Daemon, one: str, rounds: int) -> float:
    """Return the CPU milliseconds of the daemon for the approval of a project, as a median."""
    spent = []
    for _ in range(rounds):
        before = cpu_seconds(running.pid)
        running.ask("decide", verb="approve", cwd="/", refs=[one])
        spent.append((cpu_seconds(running.pid) - before) * 1e3)
        running.ask("undo")
    return statistics.median(spent)


def slowest_status_beside_ls(running: Daemon) -> float:
    """Return the milliseconds of the slowest `status` while another client lists everything."""
    slowest = 0.0
    command = [sys.executable, "-m", "rootsd", "ls"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as listing:
        while listing.poll() is None:
            begin = time.perf_counter()
            running.ask("status")
            slowest = max(slowest, time.perf_counter() - begin)
    return slowest * 1e3


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
    few = costs[0]
    table(
        f"For each project beyond {few.projects:,}, and beside many projects",
        (
            "projects", "pending, kB", "published, kB", "approve among the pending, ms of CPU",
            "slowest status beside ls, pending, ms", "published, ms",
        ),
        (
            (
                f"{each.projects:,}",
                (each.pending_mb - few.pending_mb) * 1e3 / (each.projects - few.projects or 1),
                (each.published_mb - few.published_mb) * 1e3 / (each.projects - few.projects or 1),
                each.approve_cpu_ms,
                *each.beside_ls_ms,
            )
            for each in costs
        ),
    )  # fmt: skip
