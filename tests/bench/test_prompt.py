"""The cost of a shell prompt: `rootsd check` and `pending --count` compared with `python -c
pass`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from support.fake_daemon import FakeDaemon, a_status

ROUNDS = 30
MOST = 4.0
BASE = "python -c pass"
COMMANDS = {
    BASE: ("-c", "pass"),
    "rootsd check": ("-m", "rootsd", "check", "/src"),
    "rootsd pending --count": ("-m", "rootsd", "pending", "--count"),
}


def test_a_prompt_waits_at_most_four_times_as_long_as_for_an_empty_python(
    rootsd_dir: Path,
) -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with FakeDaemon(rootsd_dir) as daemon:
        daemon.answers["status"] = a_status()
        daemon.answers["check"] = {
            "published": True, "verdict": "approved", "root": "api", "access": "read-write",
        }  # fmt: skip
        for _ in range(ROUNDS):
            for name, words in COMMANDS.items():  # in turn, so that all see the same machine
                started = time.perf_counter()
                subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
                times[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    ratios = {name: median / medians[BASE] for name, median in medians.items()}
    for name, ratio in ratios.items():
        print(f"{name:<24} {medians[name] * 1000:6.1f} ms  {ratio:5.2f} x")
    assert max(ratios.values()) <= MOST
