"""The time from the exit of `git clone` until the project is proposed, compared with watchman.

There are two figures for rootsd: when discovery proposes the project, and when a client that asks
repeatedly after the command gets it. The second includes the questions and their answers.
watchman's figure is its report of the file that git writes last. watchman does not know what a
project is, or when it is complete.

Run: make bench ARGS='-k bench_clone'
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.forest import Forest
from bench.measuring import NOT_HERE, pause, percentile, table
from bench.peers import Watchman, bearable, has_watchman, watchman
from bench.running import Daemon, daemon
from rootsd.core.model import Parent
from rootsd.discovery.service import Discovery
from support.report_collector import HANG_S, ProposalTimes
from support.repositories import raw
from support.sizes import Sizes
from support.system_parts import this_system

HANG_GUARD_S = 20
Make = Callable[[Path], object]


class Workshop:
    """Makes repositories in the ways that people do, from origins of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.small = self._origin("small", files=20, size=200)
        self.medium = self._origin("medium", files=400, size=10_000)
        self._made = 0

    def ways(self) -> dict[str, tuple[Make, str]]:
        """For each way how it is done, and which file is written last in it."""
        return {
            "clone, small": (lambda to: self._clone(self.small, to), "/.git/index"),
            "clone, 4 MB": (lambda to: self._clone(self.medium, to), "/.git/index"),
            "clone --bare": (lambda to: self._clone(self.small, to, "--bare"), "/packed-refs"),
            "worktree add": (self._worktree, "/.git"),
            "mv": (self._move, ""),
        }

    def _origin(self, name: str, files: int, size: int) -> Path:
        origin = self.folder / name
        origin.mkdir(parents=True)
        git("init", "-q", str(origin))
        for number in range(files):
            # Incompressible content, so that the pack is as large as the files.
            (origin / f"file{number}").write_bytes(os.urandom(size))
        git("-C", str(origin), "add", ".")
        git("-C", str(origin), "commit", "-qm", "first")
        return origin

    def _clone(self, origin: Path, to: Path, *options: str) -> None:
        # By its URL, so that git makes a pack, as it does for a server.
        git("clone", "-q", *options, origin.as_uri(), str(to))

    def _worktree(self, to: Path) -> None:
        git("-C", str(self.small), "worktree", "add", "-q", "--detach", str(to))

    def prepare(self, way: str) -> None:
        """What is to be there before the time is taken."""
        if way == "mv":
            self._clone(self.small, self.folder / "waiting")

    def _move(self, to: Path) -> None:
        (self.folder / "waiting").rename(to)


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, stdout=subprocess.DEVNULL)


def proposed(proposals: ProposalTimes, path: Path, exited: float) -> float:
    """Milliseconds from the exit of the command to the proposal; negative if it was before."""
    proposals.wait(lambda: raw(path) in proposals.whole_at)
    return (proposals.whole_at[raw(path)] - exited) * 1e3


@contextmanager
def discovering(src: Path) -> Iterator[ProposalTimes]:
    """Discovery as in the daemon, in this process."""
    proposals = ProposalTimes()
    discovery = Discovery(
        report=proposals.report,
        on_status=proposals.on_status,
        on_death=lambda: None,
        dependencies=this_system(),
    )
    discovery.start([Parent(raw(src))], {})
    discovery.scan(None).result(HANG_S)
    try:
        yield proposals
    finally:
        discovery.stop()


def ours(running: Daemon, path: Path, exited: float, verdict: str | None = "pending") -> float:
    """Milliseconds from the exit of the command to an answer that has the project.

    Between two questions the daemon has a moment for itself: nobody else asks it without end.
    """
    while running.verdict(path) != verdict:
        assert time.perf_counter() < exited + HANG_GUARD_S, f"{path} was never proposed"
        pause(0.0002)
    return (time.perf_counter() - exited) * 1e3


@pytest.mark.needs("linux")
def test_every_clone_is_proposed(small_forest: Forest, tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=20, check=200, soak=1_000)
    src = Path(small_forest.top.decode())
    bearable(src)
    workshop = Workshop(tmp_path / "origins")
    latencies: dict[tuple[str, str], list[float]] = {}
    with discovering(src) as proposals:
        for way in workshop.ways():
            latencies["rootsd, proposed", way] = [
                proposed(proposals, *made(workshop, way, src / f"alone{number}-{slug(way)}"))
                for number in range(rounds)
            ]
    with daemon(src) as running:
        latencies["rootsd, asked", "nothing: a question and its answer"] = [
            ours(running, workshop.small, time.perf_counter(), None) for _ in range(rounds)
        ]
        for way in workshop.ways():
            latencies["rootsd, asked", way] = [
                ours(running, *made(workshop, way, src / f"ours{number}-{slug(way)}"))
                for number in range(rounds)
            ]
    missed = 0
    if has_watchman():
        with watchman(src, tmp_path / "watchman") as peer:
            peer.follow()
            for way, (_, last) in workshop.ways().items():
                told = [
                    theirs(peer, src, made(workshop, way, src / f"peer{number}-{slug(way)}"), last)
                    for number in range(rounds // 4)
                ]
                latencies["watchman", way] = [each for each in told if each is not None]
                missed += told.count(None)
    show(latencies)
    print(f"watchman missed {missed}" if has_watchman() else f"watchman: {NOT_HERE}")


def slug(way: str) -> str:
    """The way as a part of a file name."""
    return way.replace(",", "").replace(" ", "-")


def made(workshop: Workshop, way: str, to: Path) -> tuple[Path, float]:
    """Make one repository; where, and when the command was over."""
    workshop.prepare(way)
    make, _ = workshop.ways()[way]
    make(to)
    return to, time.perf_counter()


def theirs(peer: Watchman, src: Path, made_at: tuple[Path, float], last: str) -> float | None:
    """Milliseconds from the exit of the command to being told; None if that never happens."""
    path, exited = made_at
    when = peer.when(f"{path.relative_to(src)}{last}")
    return None if when is None else (when - exited) * 1e3


def show(latencies: dict[tuple[str, str], list[float]]) -> None:
    table(
        "From the exit of the command to proposed, to an answer that has it (watchman: told), ms",
        ("", "runs", "median", "p99", "max"),
        (
            (
                f"{who}: {way}",
                len(values),
                statistics.median(values),
                percentile(values, 0.99),
                max(values),
            )
            for (who, way), values in latencies.items()
            if values
        ),
    )
