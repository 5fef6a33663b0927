"""The CPU time of a watcher while 24,000 files are written inside one repository, and of the
daemon while they are written beside the repositories, into watched folders.

Run: make bench ARGS='-k bench_storm'
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.forest import Forest
from bench.measuring import NOT_HERE, cpu_seconds, package_version, table, wait_until_calm
from bench.peers import bearable, has_watchman, library_peer, watchman
from bench.running import daemon
from support.sizes import Sizes

FILES = 24_000


def storm(repository: Path, number: int) -> float:
    """Write the files, 200 to a folder; seconds it took."""
    begin = time.perf_counter()
    for folder in range(FILES // 200):
        inside = repository / f"storm{number}" / f"d{folder}"
        inside.mkdir(parents=True)
        for file in range(200):
            (inside / f"f{file}").write_bytes(b"x")
    return time.perf_counter() - begin


@pytest.mark.needs("linux")
def test_a_storm_inside_a_repository(small_forest: Forest, tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=1, check=3, soak=5)
    src = Path(small_forest.top.decode())
    repository = src / "flat" / "r400"
    assert repository.is_dir()
    bearable(src)
    rows: list[tuple[object, ...]] = []
    with ExitStack() as stack:
        ours = stack.enter_context(daemon(src))
        assert ours.approve_forest(small_forest) >= 490
        pids = {"rootsd": ours.pid}
        for name in ("watchdog", "watchfiles"):
            if version := package_version(name):
                peer = stack.enter_context(library_peer(name, src))
                pids[f"{name} {version}"] = peer.pid
        if has_watchman():
            pids["watchman"] = stack.enter_context(watchman(src, tmp_path / "wm")).peer.pid
        spent = dict.fromkeys(pids, 0.0)
        wrote = 0.0
        for number in range(rounds):
            for pid in pids.values():
                wait_until_calm(pid)
            before = {name: cpu_seconds(pid) for name, pid in pids.items()}
            wrote += storm(repository, number)
            for name, pid in pids.items():
                wait_until_calm(pid)
                spent[name] += cpu_seconds(pid) - before[name]
        assert ours.published(repository)
        rows += [(name, seconds / rounds) for name, seconds in spent.items()]
    table(
        f"{FILES:,} files written in a repository in {wrote / rounds:.1f} s, all watching at once",
        ("", "CPU s"),
        rows,
    )
    if not has_watchman():
        print(f"watchman: {NOT_HERE}")


@pytest.mark.needs("linux")
def test_a_storm_below_a_parent(small_forest: Forest, sizes: Sizes) -> None:
    rounds = sizes.pick(test=1, check=3, soak=5)
    src = Path(small_forest.top.decode())
    spent = wrote = 0.0
    with daemon(src) as ours:
        for number in range(rounds):
            wait_until_calm(ours.pid)
            before = cpu_seconds(ours.pid)
            wrote += storm(src / "docs", number)
            wait_until_calm(ours.pid)
            spent += cpu_seconds(ours.pid) - before
    table(
        f"{FILES:,} files written in 120 folders below a parent in {wrote / rounds:.1f} s",
        ("", "CPU s", "us for each file"),
        [("rootsd", spent / rounds, 1e6 * spent / rounds / FILES)],
    )
