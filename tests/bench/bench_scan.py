"""Times our scan of a forest against find and fd, and our rescan against our first scan.

All rounds are interleaved, so that what disturbs one disturbs all; medians and their ratios are
shown. Programs that are not installed are left out, and said so.

Run: python tests/bench/bench_scan.py [--repositories 500] [--heavy 60] [--rounds 7] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS.parent / "daemon"), str(TESTS)]

from bench.forest import Forest, Plan, make_forest  # noqa: E402
from rootsd.app.candidates import Arrival  # noqa: E402
from rootsd.app.explorer import Explorer  # noqa: E402
from rootsd.app.territory import Territory  # noqa: E402
from rootsd.core.model import Identity, Parent, ProjectKind  # noqa: E402
from rootsd.host.identity import identify  # noqa: E402
from rootsd.host.markers import Rules  # noqa: E402
from rootsd.host.processes import process_at_work_on  # noqa: E402
from rootsd.host.safety import Surroundings  # noqa: E402
from rootsd.host.verify import RootVerifier  # noqa: E402
from rootsd.host.walk import Place, Walker  # noqa: E402
from rootsd.host.watch.choice import best_watcher  # noqa: E402
from rootsd.host.watch.polling import PollingWatcher  # noqa: E402

OURS = "our scan"
RESCAN = "our rescan, nothing changed"


class _Nobody:
    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        """Not timed here."""

    def lost(self, path: bytes) -> None:
        """Not timed here."""


class Contest:
    """The contestants, each a function to be timed, on one forest."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.parent = Parent(forest.top)
        self.rules = Rules.of(self.parent)
        self.territory = Territory(self.parent, self.rules, PollingWatcher(), _Nobody())
        self.territory.explore(Arrival.FOUND)
        self.verifier = RootVerifier(Surroundings(os.getuid()))
        self.roots: dict[bytes, Identity] = {p: identify(p) for p in forest.repositories}
        self.verifier.verify(self.roots)

    def scan(self) -> set[bytes]:
        """Our walk alone; the paths of what it found."""
        top = Place(self.forest.top, self.parent.depth, top=True)
        return {item.place.path for item in Walker(self.rules).walk(top).listings if item.kind}

    def start(self) -> None:
        """Scan, watch, check each project for completeness, identity and hazards."""
        watcher = best_watcher(lambda _signal: None)
        explorer = Explorer(watcher, Surroundings(os.getuid()), process_at_work_on, time.monotonic)
        for territory in explorer.set_parents([self.parent]):
            explorer.explore(territory)
        self.watches = watcher.count()
        watcher.start()
        watcher.stop()

    def rescan(self) -> None:
        """Look at the stamps of all folders, repositories' roots included."""
        self.territory.refresh(thorough=False)

    def verify(self) -> None:
        """Check all repositories as approved roots, as before each answer."""
        assert self.verifier.verify(self.roots) == []

    def check(self) -> None:
        """Whoever is fast and wrong has not won."""
        expected = self.forest.repositories | self.forest.loose
        found = self.scan()
        if found != expected:
            raise SystemExit(f"wrong: {sorted(found ^ expected)[:10]}")


def others(top: bytes) -> dict[str, list[str]]:
    """The command lines of the programs to compare with, if installed."""
    folder = os.fsdecode(top)
    commands = {"find": ["find", folder, "-name", ".git", "-prune"]}
    if fd := shutil.which("fdfind") or shutil.which("fd"):
        commands["fd"] = [fd, "-HI", "-g", ".git", "--prune", folder]
        skips = [word for name in ("node_modules", ".venv", "target") for word in ("-E", name)]
        commands["fd, told what to skip"] = [*commands["fd"], *skips]
    else:
        sys.stderr.write("fd is not here: apt-get install fd-find\n")
    return commands


def run(command: list[str]) -> None:
    """Run a program to its end; that some folder is unreadable is no failure."""
    quiet = subprocess.DEVNULL
    subprocess.run(command, stdout=quiet, stderr=quiet, check=False)


class Cost(NamedTuple):
    """Wall and CPU milliseconds of one call, processes that it started included."""

    wall_ms: float
    cpu_ms: float


def timed(action: Callable[[], object]) -> Cost:
    """What one call costs."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before = [resource.getrusage(who) for who in whose]
    begin = time.perf_counter()
    action()
    wall = time.perf_counter() - begin
    after = [resource.getrusage(who) for who in whose]
    cpu = sum(
        b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime
        for a, b in zip(before, after, strict=True)
    )
    return Cost(wall * 1e3, cpu * 1e3)


def compete(contest: Contest, rounds: int) -> dict[str, Cost]:
    """The median cost of each contestant."""
    actions: dict[str, Callable[[], object]] = {
        OURS: contest.scan,
        "our start: scan, watch, all checks": contest.start,
        RESCAN: contest.rescan,
        "our check of all roots": contest.verify,
    }
    for name, command in others(contest.forest.top).items():
        actions[name] = partial(run, command)
    times: dict[str, list[Cost]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            cost = timed(action)
            # The first round warms the cache.
            if number:
                times[name].append(cost)
    return {
        name: Cost(
            statistics.median(cost.wall_ms for cost in costs),
            statistics.median(cost.cpu_ms for cost in costs),
        )
        for name, costs in times.items()
    }


def measure(plan: Plan, rounds: int) -> dict[str, Cost]:
    """Make a forest, let it settle, and compete in it."""
    with tempfile.TemporaryDirectory() as folder:
        forest = make_forest(Path(folder).resolve() / "src", plan)
        # A folder that changed within the last two seconds is always listed again.
        settled = time.monotonic() + 3
        contest = Contest(forest)
        contest.check()
        while time.monotonic() < settled:
            contest.scan()
        contest.territory.refresh(thorough=True)
        results = compete(contest, rounds)
        sys.stdout.write(
            f"\n{len(forest.repositories)} repositories, {forest.folders} folders,"
            f" {contest.watches} watches\n"
        )
    return results


def show(results: dict[str, Cost]) -> None:
    """A table; the ratio says how many times our scan's time it takes."""
    ours = results[OURS]
    line = f"{'':38}{'wall ms':>10}{'CPU ms':>10}{'wall ratio':>12}{'CPU ratio':>12}\n"
    sys.stdout.write(line)
    for name, (wall, cpu) in results.items():
        ratios = f"{wall / ours.wall_ms:12.2f}{cpu / ours.cpu_ms:12.2f}"
        sys.stdout.write(f"{name:38}{wall:10.2f}{cpu:10.2f}{ratios}\n")


def main() -> None:
    """Compete as the arguments say, and show the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repositories", type=int, default=500)
    parser.add_argument("--heavy", type=int, default=60, help="folders in each heavy tree")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the medians there, too")
    options = parser.parse_args()
    results = measure(Plan(options.repositories, options.heavy), options.rounds)
    show(results)
    if options.json:
        figures = {name: cost._asdict() for name, cost in results.items()}
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
