"""How soon an approval reaches each of many MCP sessions, and the cost of a session.

A real daemon has sessions of both eras in several processes. The time runs from before the order
is sent, through the saved decision, to the notification in the session's process. The round trips
of a ping in the same run show the speed of the machine at that moment. An approval is published
only when it is on the disk. So the table also says how long a store takes to save a decision, and
how long the disk takes to sync 4 KiB. A store syncs six times: SQLite four times, and each anchor
once.

Run: make bench ARGS='-k bench_publish'
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.measuring import cpu_seconds, memory, pause, percentile, table
from bench.running import HANG_GUARD_S, Client, Daemon, daemon
from rootsd.places.runtime_dir import find_runtime_dir
from support.repositories import fake_repository
from support.sample_decisions import after, numbered
from support.sizes import Sizes
from support.stores import opened

LISTENERS = Path(__file__).with_name("listeners.py")
PER_PROCESS = 50
EVERY_OTHER_IS_MODERN = 2
ROOM = "[sessions]\nmax_connections = 4096\n"
# Additions are held back for 50 ms after the last notice.
CALM_S = 0.1


class Sessions:
    """Many sessions, in processes of PER_PROCESS each."""

    def __init__(self, count: int) -> None:
        words = [sys.executable, str(LISTENERS), os.fsdecode(find_runtime_dir().mcp_socket)]
        pipe = subprocess.PIPE
        self._processes = [
            subprocess.Popen(
                [*words, str(min(PER_PROCESS, count - first)), str(EVERY_OTHER_IS_MODERN)],
                stdin=pipe,
                stdout=pipe,
                text=True,
            )
            for first in range(0, count, PER_PROCESS)
        ]
        for process in self._processes:
            assert _line(process) == "ready\n"

    def tell(self, words: str) -> None:
        """Give all processes an order."""
        for process in self._processes:
            assert process.stdin
            process.stdin.write(words + "\n")
            process.stdin.flush()

    def answers(self) -> list[int]:
        """What all of them answer."""
        return [each for process in self._processes for each in json.loads(_line(process))]

    def pings(self, count: int) -> list[float]:
        """Round trips of the first session, in milliseconds."""
        first = self._processes[0]
        assert first.stdin
        first.stdin.write(f"ping {count}\n")
        first.stdin.flush()
        return [each / 1e6 for each in json.loads(_line(first))]

    def close(self) -> None:
        """End them."""
        for process in self._processes:
            process.communicate(timeout=HANG_GUARD_S)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


@contextmanager
def sessions(count: int) -> Iterator[Sessions]:
    """Sessions that end with the block."""
    made = Sessions(count)
    try:
        yield made
    finally:
        made.close()


def approved(top: Path, count: int) -> Path:
    """A parent with so many repositories, and one more called `one`."""
    for number in range(count):
        fake_repository(top / f"g{number // 100:02}" / f"r{number:05}")
    fake_repository(top / "one")
    return top


def orders(running: Daemon, many: Sessions, rounds: int) -> tuple[dict[str, list[float]], float]:
    """From the order to each session, in ms, by verb; and the median of the pings between."""
    took: dict[str, list[float]] = {"approve": [], "deny": [], "ping": [], "save": [], "sync": []}
    for number in range(rounds):
        for verb in ("approve", "deny"):
            many.tell("told")
            pause(CALM_S)
            begin = time.monotonic_ns()
            running.ask("decide", verb=verb, cwd="/", refs=["one"])
            took[verb] += [(when - begin) / 1e6 for when in many.answers()]
        took["ping"] += many.pings(10)
        took["save"].append(a_save(number))
        took["sync"].append(a_sync())
    return took, statistics.median(took["ping"])


def a_save(number: int) -> float:
    """Milliseconds until a store, with one decision so far, has another one on the disk."""
    folder = tempfile.TemporaryDirectory(dir=os.environ["ROOTSD_DIR"])
    with folder as top, opened(Path(top) / "state") as store:
        store.append([numbered(number)], after(number))
        begin = time.perf_counter()
        store.append([numbered(number + 1)], after(number + 1))
        return (time.perf_counter() - begin) * 1e3


def a_sync() -> float:
    """Milliseconds until a page is on the disk that holds the store."""
    with tempfile.TemporaryFile(dir=os.environ["ROOTSD_DIR"], buffering=0) as file:
        file.write(bytes(4096))
        begin = time.perf_counter()
        os.fsync(file.fileno())
        return (time.perf_counter() - begin) * 1e3


@pytest.mark.needs("linux")
@pytest.mark.parametrize(("roots", "count"), [(100, 1), (100, 100), (5_000, 100), (100, 1_000)])
def test_an_order_reaches_every_session(
    tmp_path: Path, sizes: Sizes, roots: int, count: int
) -> None:
    rounds = sizes.pick(test=20, check=50, soak=300)
    with daemon(approved(tmp_path / "src", roots), more=ROOM) as running:
        running.approve_pending()
        running.ask("decide", verb="deny", cwd="/", refs=["one"])
        first = Client()  # the first one loads the SDK
        before = memory(running.pid)
        with sessions(count) as many:
            after = memory(running.pid)
            cpu_s = -cpu_seconds(running.pid)
            took, ping = orders(running, many, rounds)
            cpu_s += cpu_seconds(running.pid)
        first.close()
    memory_kb = (after.rss_mb - before.rss_mb) / count * 1e3
    # Orders and pings are in it, so the figure of many sessions tells most.
    cpu_us = cpu_s / len(took["approve"] + took["deny"]) * 1e6
    table(
        f"From the order to the notice, {count} sessions, {roots} roots, ms; a session takes"
        f" {memory_kb:.0f} kB, and a notice {cpu_us:.0f} us of the daemon's CPU",
        ("", "notices", "median", "p99", "max", "median in pings", "max in medians"),
        (
            (
                verb, len(ms), statistics.median(ms), percentile(ms, 0.99), max(ms),
                statistics.median(ms) / ping, max(ms) / statistics.median(ms),
            )
            for verb, ms in took.items()
        ),
    )  # fmt: skip


@pytest.mark.needs("linux")
def test_sessions_that_never_read_do_no_harm(tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=20, check=50, soak=300)
    with daemon(approved(tmp_path / "src", 1_000)) as running:
        running.approve_pending()
        running.ask("decide", verb="deny", cwd="/", refs=["one"])
        with sessions(100) as many:
            alone, ping = orders(running, many, rounds)
            deaf = [Client() for _ in range(20)]
            for client in deaf:
                client.ask_and_ignore("resources/read", {"uri": "roots://approved"}, times=50)
            beside, _ = orders(running, many, rounds)
            for client in deaf:
                client.close()
    table(
        f"From the order to the notice, 100 sessions, 1,000 roots, ms; a ping took {ping:.2f}",
        ("", "median", "p99", "max"),
        (
            (f"{name}: {verb}", statistics.median(ms), percentile(ms, 0.99), max(ms))
            for name, took in (("alone", alone), ("beside 20 that never read", beside))
            for verb, ms in took.items()
        ),
    )
