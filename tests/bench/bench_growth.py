"""How scan, rescan, and start grow with the number of repositories, with a plot.

Run: make bench ARGS='-k bench_growth --sizes=check --plot=docs/growth.svg'
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from bench.bench_scan import C_WALK, FD, RESCAN, SCAN, Contest, others
from bench.bench_start import discovery
from bench.forest import Plan, make_forest
from bench.measuring import interleaved, run_quietly, table
from bench.plot import Curve, plot
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
def test_cost_grows_with_the_frontier(
    tmp_path: Path, sizes: Sizes, request: pytest.FixtureRequest
) -> None:
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
    target = request.config.getoption("--plot")
    if target is not None:
        curves = [
            Curve(name, [(point.looked_at, point.wall_ms[name]) for point in points])
            for name in names
        ]
        text = plot(curves, "folders to look at (frontier and repository roots)", "ms")
        target.write_text(text, encoding="utf-8")
