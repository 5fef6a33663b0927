"""Recovery after the kernel's event queue overflows with 5,000 repositories.

A signal stops the daemon, the queue overflows, the set changes without events, and the daemon
continues.

Run: make bench ARGS='-k bench_overflow'
"""

from __future__ import annotations

import shutil
import signal
import statistics
import time
from pathlib import Path

import pytest

from bench.forest import Plan, make_forest
from bench.measuring import pause, table, wait_until_calm
from bench.running import HANG_GUARD_S, Daemon, daemon
from support.sizes import Sizes

MADE, REMOVED, RENAMED = 50, 20, 10
QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


def change_much(src: Path, number: int) -> dict[Path, str | None]:
    """Overflow the queue and change the set; what each path has to be afterwards."""
    # In a folder that is watched, and first, so that nothing of what follows is told.
    noise = src / "noise"
    for _ in range(int(QUEUE.read_text())):
        noise.touch()
        noise.unlink()
    expected: dict[Path, str | None] = {}
    template = src / "flat" / f"r{_flat(0)}"
    for new in range(MADE):
        path = src / "late" / f"n{number}" / f"p{new}"
        shutil.copytree(template / ".git", path / ".git")
        shutil.copy2(template / "README.md", path)
        expected[path] = "pending"
    for old in range(REMOVED):
        path = src / "flat" / f"r{_flat(1 + number * REMOVED + old)}"
        shutil.rmtree(path)
        expected[path] = None
    for old in range(RENAMED):
        path = src / "flat" / f"r{_flat(500 + number * RENAMED + old)}"
        path.rename(path.with_name(path.name + "-new"))
        expected[path] = None
        expected[path.with_name(path.name + "-new")] = "pending"
    return expected


def _flat(number: int) -> int:
    """The number of a flat repository that is git's and no more than that."""
    return 3_000 + number // 90 * 100 + number % 90


def until_right(running: Daemon, expected: dict[Path, str | None]) -> float:
    """Milliseconds until the last path became what it has to be; all are asked about.

    A path that is right when it is first asked about adds nothing: there are 90, and each question
    takes half a millisecond, from the daemon's own time as well. So there are 5 ms between two.
    """
    begin = right = time.perf_counter()
    running.process.send_signal(signal.SIGCONT)
    for path, verdict in expected.items():
        while running.verdict(path) != verdict:
            right = time.perf_counter()
            assert right < begin + HANG_GUARD_S, f"{path} never became {verdict}"
            pause(0.005)
    return (right - begin) * 1e3


@pytest.mark.needs("linux")
def test_all_is_right_after_an_overflow(tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=3, check=9, soak=9)
    forest = make_forest(
        tmp_path / "src", Plan(5_000, heavy=sizes.pick(test=5, check=60, soak=60))
    )
    src = Path(forest.top.decode())
    took = []
    with daemon(src) as running:
        for number in range(rounds):
            # What is at rest is the usual case; a young forest is looked at again and again.
            pause(3)
            wait_until_calm(running.pid)
            running.process.send_signal(signal.SIGSTOP)
            expected = change_much(src, number)
            took.append(until_right(running, expected))
        assert running.scan()["items"] == []
    table(
        f"Queue overflow, 5,000 repositories; {MADE} made, {REMOVED} removed, {RENAMED} renamed",
        ("", "runs", "median ms", "max ms"),
        [("woken to all right", len(took), statistics.median(took), max(took))],
    )
