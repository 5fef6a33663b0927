"""How soon a root that was removed, renamed, or closed by chmod is withdrawn, and clients are
notified.

The time runs from the end of the system call. "Told" is the notification at an MCP client,
"checked" the first answer of `check` that it is no root, and "listed" the first list at an MCP
client without it.

Run: make bench ARGS='-k bench_withdraw'
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.forest import Forest
from bench.measuring import percentile, table
from bench.running import HANG_GUARD_S, Client, Daemon, daemon
from support.sizes import Sizes
from support.subprocesses import UNPRIVILEGED

Deed = Callable[[Path], object]
TOLD, CHECKED, LISTED = "client told", "checked", "listed"


def remove_clone(path: Path) -> None:
    shutil.rmtree(path)


def rename(path: Path) -> None:
    path.rename(path.with_name(path.name + "-gone"))


def close(path: Path) -> None:
    path.chmod(0)


DEEDS: dict[str, Deed] = {"rm -rf": remove_clone, "mv": rename, "chmod 0": close}


def await_withdrawn(victim: Path, what: str, running: Daemon, client: Client) -> None:
    """Return once it is known in that way."""
    deadline = time.perf_counter() + HANG_GUARD_S
    if what == TOLD:
        client.next_notice()
    elif what == CHECKED:
        while running.published(victim):
            assert time.perf_counter() < deadline
    else:
        while victim.as_uri() in client.roots():
            assert time.perf_counter() < deadline


@pytest.mark.needs("linux", "setpriv")
def test_what_is_gone_is_withdrawn(small_forest: Forest, sizes: Sizes) -> None:
    rounds = sizes.pick(test=20, check=45, soak=45)
    src = Path(small_forest.top.decode())
    victims = (path.parent for path in sorted(src.glob("ghq/*/*/r*/.git")))
    took: dict[tuple[str, str], list[float]] = {}
    # To root nothing is closed, so the daemon runs without root's powers.
    with daemon(src, within=UNPRIVILEGED) as running:
        assert running.approve_forest(small_forest) >= 490
        client = Client()
        for name, deed in DEEDS.items():
            for number in range(3 * rounds):
                victim, what = next(victims), (TOLD, CHECKED, LISTED)[number % 3]
                assert victim.as_uri() in client.roots()
                client.drain()
                deed(victim)
                begin = time.perf_counter()
                await_withdrawn(victim, what, running, client)
                spent = time.perf_counter() - begin
                took.setdefault((name, what), []).append(spent * 1e3)
                assert victim.as_uri() not in client.roots()
        client.close()
    table(
        "From the event to withdrawn, 500 roots, ms",
        ("", "runs", "median", "p99", "max"),
        (
            (f"{name}: {what}", len(ms), statistics.median(ms), percentile(ms, 0.99), max(ms))
            for (name, what), ms in took.items()
        ),
    )
