"""The time from the start until everything is watched, with all checks, and the number of watches.

Compared with watchdog (recursive, with a filter), watchfiles, watchman, and libraries of Node; a
restart from the saved snapshot compared with fd; and how soon the daemon answers while it scans.

Run: make bench ARGS='-k bench_start'
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from bench.forest import Forest, Plan, make_forest
from bench.measuring import (
    NOT_HERE,
    fd_program,
    memory,
    package_version,
    pause,
    percentile,
    run_quietly,
    table,
    timed,
    times,
    watches,
)
from bench.peers import (
    NODE_LIBRARIES,
    bearable,
    has_watchman,
    library_peer,
    node_version,
    watchman,
)
from bench.running import await_state, daemon, start
from rootsd.core.inputs import Observation, ProjectObserved
from rootsd.core.model import Parent
from rootsd.discovery.service import Discovery
from rootsd.discovery.status import ParentReport, ParentState
from support.sizes import Sizes
from support.system_parts import this_system

HANG_GUARD_S = 120
# inotify instances: one each follows config.toml, the policy, and the names of the sockets.
BESIDE_THE_PARENTS = 3
OURS = "rootsd: discovery, all checks"
PROCESS = "rootsd: the daemon, from its start"
RESTARTED = "rootsd: the daemon, from its restart"


@dataclass(frozen=True, slots=True)
class Started:
    """What one start took and holds; None where it is not known."""

    seconds: float
    watches: int
    instances: int
    rss_mb: float | None


def discovery(forest: Forest, index: Path | None = None) -> Started:
    """Our scan, watches and checks in this process; asserts that everything was found.

    With an `index` that an earlier start left the trees are taken from there, and compared with
    the disk.
    """
    seen: set[bytes] = set()
    watching = Event()
    held: list[int] = []

    def report(observations: Iterable[Observation]) -> None:
        seen.update(item.path for item in observations if isinstance(item, ProjectObserved))

    def note(status: tuple[ParentReport, ...]) -> None:
        if any(parent.state is ParentState.WATCHED for parent in status):
            held.append(ours.watches())
            watching.set()

    begin = time.perf_counter()
    ours = Discovery(
        report=report,
        on_status=note,
        on_death=lambda: None,
        dependencies=this_system(),
        index=index,
    )
    ours.start([Parent(forest.top)], {})
    assert watching.wait(HANG_GUARD_S)
    took = time.perf_counter() - begin
    # An order is carried out after what came before it: then all is reported.
    ours.scan(None).result(HANG_GUARD_S)
    ours.stop()
    assert seen >= whole(forest)
    return Started(took, held[0], 1, None)


def whole(forest: Forest) -> set[bytes]:
    """What has to be proposed at once: those of other VCS have to be seen at rest first."""
    git = {
        path
        for path in forest.repositories
        if os.path.exists(path + b"/.git") or os.path.isfile(path + b"/HEAD")
    }
    return git | forest.loose


def process(forest: Forest, *, again: bool) -> Started:
    """The whole daemon: interpreter, imports, store, sockets, scan, as if for the first time, or
    `again`, with what the last one left."""
    if not again:
        shutil.rmtree(os.environ["ROOTSD_DIR"], ignore_errors=True)
    begin = time.perf_counter()
    running = start(Path(forest.top.decode()))
    try:
        await_state(running, "watched")
        took = time.perf_counter() - begin
        held, instances = watches(running.pid)
        return Started(took, held, instances, memory(running.pid).rss_mb)
    finally:
        running.close()


def library(name: str, forest: Forest) -> Started:
    """A library that watches each folder."""
    with library_peer(name, Path(forest.top.decode())) as peer:
        return Started(peer.start_s, *watches(peer.pid), memory(peer.pid).rss_mb)


def with_watchman(forest: Forest, state: Path) -> Started:
    """watchman; a state folder of its own for each start."""
    with watchman(Path(forest.top.decode()), state / f"{time.monotonic_ns()}") as running:
        peer = running.peer
        return Started(peer.start_s, *watches(peer.pid), memory(peer.pid).rss_mb)


@pytest.mark.needs("linux")
def test_start_to_watching(tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=3, check=5, soak=9)
    # As many folders as the forest S of the budgets, from `check` on.
    forest = make_forest(tmp_path / "src", Plan(500, sizes.pick(test=60, check=345, soak=345)))
    bearable(Path(forest.top.decode()))
    contestants: dict[str, Callable[[], Started]] = {
        OURS: partial(discovery, forest),
        PROCESS: partial(process, forest, again=False),
        RESTARTED: partial(process, forest, again=True),
    }
    versions = {name: package_version(name) for name in ("watchdog", "watchfiles")}
    versions |= {name: node_version(name) for name in NODE_LIBRARIES}
    for name, version in versions.items():
        if version is not None:
            contestants[f"{name} {version}, recursive"] = partial(library, name, forest)
    if has_watchman():
        contestants["watchman"] = partial(with_watchman, forest, tmp_path / "watchman")
    runs: dict[str, list[Started]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            runs[name].append(contestant())
    show(forest, runs)


def show(forest: Forest, runs: dict[str, list[Started]]) -> None:
    seconds = {
        name: statistics.median(run.seconds for run in starts) for name, starts in runs.items()
    }
    ours = runs[OURS][-1]
    rows = [
        (
            name,
            seconds[name] * 1e3,
            times(seconds[name], seconds[OURS]),
            starts[-1].watches,
            times(starts[-1].watches, ours.watches),
            starts[-1].instances,
            "-" if starts[-1].rss_mb is None else starts[-1].rss_mb,
        )
        for name, starts in runs.items()
    ]
    table(
        f"Start: {len(forest.repositories):,} repositories, {forest.folders:,} folders",
        ("", "ms", "against ours", "watches", "against ours", "instances", "RSS MB"),
        rows,
    )
    if not has_watchman():
        print(f"watchman: {NOT_HERE}")


@pytest.mark.needs("linux")
def test_watches_for_the_large_forest(forest: Forest) -> None:
    took = discovery(forest)
    with daemon(Path(forest.top.decode())) as running:
        held, instances = watches(running.pid)
    assert instances == 1 + BESIDE_THE_PARENTS
    table(
        f"Large: {len(forest.repositories):,} repositories, {forest.folders:,} folders",
        ("", "start to watching, ms", "watches", "folders for each watch"),
        [(OURS, took.seconds * 1e3, held, times(forest.folders, held))],
    )


@pytest.mark.needs("linux")
def test_a_restart_from_the_kept_index(forest: Forest, tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=5, check=9, soak=9)
    pause(3)  # what is younger is always listed again
    index = tmp_path / "index"
    discovery(forest, index)
    assert index.stat().st_size > 0
    fd = fd_program()
    command = [fd or "", "-HI", "-g", ".git", "--prune", os.fsdecode(forest.top)]
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(discovery(forest, index).seconds * 1e3)
        if fd is not None:
            theirs.append(timed(partial(run_quietly, command)).wall_ms)
    rows: list[tuple[object, ...]] = [("rootsd: discovery", statistics.median(ours), "1.0 x")]
    if theirs:
        ratio = times(statistics.median(theirs), statistics.median(ours))
        rows.append((" ".join(command[1:-1]), statistics.median(theirs), ratio))
    table(
        f"Restart from the kept index to watching: {len(forest.repositories):,} repositories",
        ("", "ms", "against ours"),
        rows,
    )


@pytest.mark.needs("linux")
def test_status_is_answered_while_all_is_scanned(forest: Forest) -> None:
    took: list[float] = []
    running = start(Path(forest.top.decode()))
    try:
        state = ""
        while state != "watched":
            begin = time.perf_counter()
            (parent,) = running.ask("status")["parents"]
            took.append((time.perf_counter() - begin) * 1e3)
            state = parent["state"]
            pause(0.005)
    finally:
        running.close()
    table(
        f"`status` during the first scan of {len(forest.repositories):,} repositories, ms",
        ("", "asked", "median", "p99", "max"),
        [("rootsd", len(took), statistics.median(took), percentile(took, 0.99), max(took))],
    )
