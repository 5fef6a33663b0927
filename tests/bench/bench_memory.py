"""Memory of the daemon with 5,000 projects, with and without an MCP session, and its CPU time and
wakeups while idle, compared with watchman on the same folders.

Run: make bench ARGS='-k bench_memory'
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.forest import Forest
from bench.measuring import (
    NOT_HERE,
    Memory,
    cpu_seconds,
    memory,
    pause,
    table,
    wait_until_calm,
    wakeups,
)
from bench.peers import has_watchman, watchman
from bench.running import Client, daemon
from support.sizes import Sizes

SETTLING_S = 15
INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


@pytest.mark.needs("linux")
def test_memory_and_idling(forest: Forest, tmp_path: Path, sizes: Sizes) -> None:
    idle_s = sizes.pick(test=30, check=130, soak=600)
    src = Path(forest.top.decode())
    held: list[tuple[str, Memory]] = []
    idle: list[tuple[object, ...]] = []
    with daemon(src) as running:
        settle(running.pid)
        held.append(("rootsd: all pending", memory(running.pid)))
        count = running.approve_forest(forest)
        settle(running.pid)
        held.append((f"rootsd: {count:,} roots, no MCP session", memory(running.pid)))
        idle.append(("rootsd, no MCP session", *idling(running.pid, idle_s)))
        client = Client()
        assert len(client.roots()) == count
        settle(running.pid)
        held.append((f"rootsd: {count:,} roots, one MCP session", memory(running.pid)))
        idle.append(("rootsd, one MCP session", *idling(running.pid, idle_s)))
        client.close()
    note = ""
    if not has_watchman():
        note = f"watchman: {NOT_HERE}"
    elif int(INOTIFY_LIMIT.read_text()) < forest.folders * 1.02:
        note = f"watchman: {forest.folders:,} folders are more than max_user_watches"
    else:
        with watchman(src, tmp_path / "watchman") as peer:
            wait_until_calm(peer.peer.pid)
            held.append(("watchman", memory(peer.peer.pid)))
    table(
        f"Memory: {len(forest.repositories):,} repositories, {forest.folders:,} folders",
        ("", "RSS MB", "PSS MB"),
        ((name, *each) for name, each in held),
    )
    table(f"Idle for {idle_s} s", ("", "CPU %", "CPU ms", "wake-ups"), idle)
    print(note)


def settle(pid: int) -> None:
    """Return once the process has nothing left to do."""
    # A repository that was just made is looked at for some seconds, what work needed is given back
    # after five, and a worker thread without work ends after ten.
    pause(SETTLING_S)
    wait_until_calm(pid)


def idling(pid: int, seconds: float) -> tuple[float, float, int]:
    """CPU in percent and in milliseconds, and wake-ups, while nothing happens."""
    cpu, woken = cpu_seconds(pid), wakeups(pid)
    pause(seconds)
    spent = cpu_seconds(pid) - cpu
    return 100 * spent / seconds, spent * 1e3, wakeups(pid) - woken
