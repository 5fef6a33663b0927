"""The wall: how soon a running program sees a change, the cost of the start, and many roots.

Run: make bench ARGS='-k bench_confine'
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from bench.measuring import table
from rootsd.confine.orders import OrderKind
from rootsd.core.view import ConfinedRoot, MountAccess
from support.roots_publisher import RootsPublisher
from support.sizes import Sizes
from support.walls import Wall

pytestmark = pytest.mark.needs("wall")

# Prints the time of each appearance and disappearance of a path.
_WATCHER = """
import os, sys, time
seen = False
print("ready", flush=True)
while True:
    now = os.path.exists(sys.argv[1])
    if now != seen:
        seen = now
        print(time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def test_the_figures(
    tmp_path: Path, home: Path, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [*_changes(tmp_path, home, sizes), *_many(tmp_path, home, sizes)]
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "rootsd"))
    rows += _start(tmp_path, home, sizes)
    table("The wall", ("what", "median", "p99"), rows)


def _changes(tmp_path: Path, home: Path, sizes: Sizes) -> list[tuple[str, str, str]]:
    root = _root(tmp_path / "root")
    grants: list[float] = []
    revokes: list[float] = []
    orders: list[float] = []
    with Wall(tmp_path / "state", home) as wall:
        path = os.fsdecode(root.path)
        wall.run(
            "W = subprocess.Popen([sys.executable, '-c', "
            f"{_WATCHER!r}, {path!r}], stdout=subprocess.PIPE, text=True); W.stdout.readline()"
        )
        for _ in range(sizes.pick(test=50, check=1_000, soak=100_000)):
            for seen, roots in ((grants, [root]), (revokes, [])):
                begin = time.clock_gettime(time.CLOCK_MONOTONIC)
                wall.order(OrderKind.SET, *roots)
                orders.append(time.clock_gettime(time.CLOCK_MONOTONIC) - begin)
                at = float(wall.run("result = W.stdout.readline()"))
                seen.append(at - begin)
        memory = psutil.Process(wall.warden_pid).memory_full_info().uss / 1e6
    return [
        _row("grant: order to seen by a program", grants),
        _row("revoke: order to gone for a program", revokes),
        _row("order to report", orders),
        ("private memory of the warden", f"{memory:.1f} MB", ""),
    ]


def _many(tmp_path: Path, home: Path, sizes: Sizes) -> list[tuple[str, str, str]]:
    rows = []
    count = sizes.pick(test=100, check=1_000, soak=5_000)
    for kind, number in (("protected", 100), ("plain", count)):
        roots = [_root(tmp_path / kind / str(each)) for each in range(number)]
        if kind == "protected":
            for root in roots:
                subprocess.run(["git", "init", "-q", os.fsdecode(root.path)], check=True)
        with Wall(tmp_path / "state", home) as wall:
            begin = time.perf_counter()
            report = wall.order(OrderKind.SET, *roots)
            spent = time.perf_counter() - begin
        assert report.shown == number
        rows.append((f"{number} {kind} roots at once", f"{spent * 1e3:.0f} ms", ""))
    return rows


def _start(tmp_path: Path, home: Path, sizes: Sizes) -> list[tuple[str, str, str]]:
    command = [sys.executable, "-m", "rootsd"]
    with RootsPublisher(tmp_path / "rootsd"):
        alone: list[float] = []
        behind: list[float] = []
        for _ in range(sizes.pick(test=5, check=30, soak=200)):
            for times, words in (
                (alone, [*command, "check", "/"]),
                (behind, [*command, "confine", "--", "true"]),
            ):
                begin = time.perf_counter()
                subprocess.run(words, check=False, capture_output=True, cwd=home)
                times.append(time.perf_counter() - begin)
    return [
        _row("rootsd confine -- true", behind),
        _row("for comparison: rootsd check", alone),
    ]


def _root(path: Path) -> ConfinedRoot:
    path.mkdir(parents=True)
    return ConfinedRoot(os.fsencode(path), MountAccess.READ_WRITE)


def _row(name: str, seconds: Sequence[float]) -> tuple[str, str, str]:
    ordered = sorted(seconds)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return name, f"{statistics.median(ordered) * 1e3:.2f} ms", f"{high * 1e3:.2f} ms"
