"""Our scan of a forest compared with fd, find, and a C walk, and our rescan compared with our
scan.

All rounds are interleaved. The output has medians and their ratios. Programs that are not
installed are skipped and named. Ours run in this process, the others in separate processes.

Run: make bench ARGS='-k bench_scan'
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.forest import Forest, Plan, make_forest
from bench.measuring import (
    NOT_HERE,
    Cost,
    fd_program,
    interleaved,
    pause,
    run_quietly,
    table,
    times,
    version_of,
)
from rootsd.core.model import Identity, Parent
from rootsd.discovery.candidate import Arrival
from rootsd.discovery.parent_tree import ParentTree
from rootsd.disk.identity import identify
from rootsd.disk.markers import WalkRules
from rootsd.disk.snapshot import read_snapshots, write_snapshots
from rootsd.disk.walk import FolderListing, Walker, WalkFolder, read_stamp
from rootsd.vcs.verify import RootVerifier
from rootsd.watch.polling import PollingWatcher
from support.sizes import Sizes
from support.system_parts import folder_safety
from support.tree_observers import RecordingObserver

SCAN = "rootsd: scan"
FIRST = "rootsd: first scan, into a tree"
RESTART = "rootsd: restart, the kept index read and each folder compared"
FRONTIER = "rootsd: rescan, nothing changed, frontier"
RESCAN = "rootsd: rescan, nothing changed, with repository roots"
VERIFY = "rootsd: check of all repositories as roots"
C_WALK = "C walk, one thread"
C_ASKING = "C walk, one thread, lists no checkout either"
FD = "fd -HI -g .git --prune"
C_SOURCE = Path(__file__).with_name("cwalk.c")


def catch_up(tree: ParentTree) -> None:
    """Do all deferred work: compare the top folders of repositories, and check the projects."""
    while tree.has_deferred_work():
        tree.catch_up(64)


class Contest:
    """Our contestants, each a function to be timed, on one forest."""

    def __init__(self, forest: Forest, index: Path) -> None:
        self.forest = forest
        self.index = index
        self.parent = Parent(forest.top)
        self.rules = WalkRules.of(self.parent)
        listings = self._walk()
        self.frontier = {
            item.place.path: read_stamp(item.place.path) for item in listings if item.frontier
        }
        self.tree = self._new_tree()
        self.tree.explore(Arrival.FOUND)
        self.verifier = RootVerifier(folder_safety())
        self.roots: dict[bytes, Identity] = {p: identify(p) for p in forest.repositories}
        self.verifier.verify(self.roots)

    def _new_tree(self) -> ParentTree:
        return ParentTree(self.parent, self.rules, PollingWatcher(), RecordingObserver())

    def _walk(self) -> list[FolderListing]:
        top = WalkFolder(self.forest.top, self.parent.depth, top=True)
        return Walker(self.rules).walk(top).listings

    def scan(self) -> set[bytes]:
        """Our walk alone; the paths of what it found."""
        return {item.place.path for item in self._walk() if item.kind}

    def first(self) -> int:
        """Our walk, and the tree that it builds; how many projects that has."""
        tree = self._new_tree()
        tree.explore(Arrival.FOUND)
        return tree.count_projects()

    def restart(self) -> int:
        """The tree from the kept index, each folder compared; how many projects it has."""
        tree = self._new_tree()
        tree.use_snapshot(read_snapshots(self.index)[self.forest.top])
        tree.explore(Arrival.FOUND)
        # Else it was not believed, and a scan.
        assert tree.has_deferred_work()
        catch_up(tree)
        return tree.count_projects()

    def compare_frontier(self) -> list[bytes]:
        """The folders of the frontier that have another stamp than before."""
        return [path for path, stamp in self.frontier.items() if read_stamp(path) != stamp]

    def rescan(self) -> int:
        """Make the tree agree with the disk by stamps; how many projects it has."""
        self.tree.refresh(thorough=False)
        catch_up(self.tree)
        return self.tree.count_projects()

    def verify(self) -> None:
        """Check all repositories as approved roots, as before each answer."""
        assert self.verifier.verify(self.roots) == []

    def check(self) -> None:
        """Whoever is fast and wrong has not won."""
        expected = self.forest.repositories | self.forest.loose
        assert self.scan() == expected
        assert self.rescan() == self.first() == self.restart() == len(expected)
        assert self.compare_frontier() == []

    def settle(self) -> None:
        """Let the stamps grow old: what changed within two seconds is always listed again. Keep
        the tree as a daemon does that ends."""
        pause(3)
        self.tree.refresh(thorough=True)
        kept = self.tree.snapshot()
        assert kept is not None
        write_snapshots(self.index, {self.forest.top: kept})


def c_walks(folder: Path) -> dict[str, Path]:
    """The C walks, compiled into `folder`; none where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    programs = {C_WALK: folder / "cwalk", C_ASKING: folder / "cwalk-asking"}
    for name, program in programs.items():
        define = ["-DASK_FIRST"] if name == C_ASKING else []
        subprocess.run([compiler, "-O2", *define, "-o", program, C_SOURCE], check=True)
    return programs


def others(top: bytes, folder: Path) -> dict[str, list[str]]:
    """The command lines of the programs to compare with, if installed."""
    src = os.fsdecode(top)
    commands = {name: [str(program), src, "4"] for name, program in c_walks(folder).items()}
    if fd := fd_program():
        commands[FD] = [fd, "-HI", "-g", ".git", "--prune", src]
        skips = [word for name in ("node_modules", ".venv", "target") for word in ("-E", name)]
        commands[FD + " -E node_modules -E .venv -E target"] = [*commands[FD], *skips]
    commands["find -name .git -prune"] = ["find", src, "-name", ".git", "-prune"]
    return commands


def check_c_walk(command: list[str], forest: Forest) -> None:
    """The floor has to find what we find."""
    reported = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert int(reported.split()[0]) == len(forest.repositories)


def compete(contest: Contest, folder: Path, rounds: int) -> dict[str, Cost]:
    """The median cost of each contestant; the programs' answers are checked as far as they go."""
    commands = others(contest.forest.top, folder)
    for name in commands.keys() & {C_WALK, C_ASKING}:
        check_c_walk(commands[name], contest.forest)
    actions: dict[str, Callable[[], object]] = {
        SCAN: contest.scan,
        FIRST: contest.first,
        RESTART: contest.restart,
        FRONTIER: contest.compare_frontier,
        RESCAN: contest.rescan,
        VERIFY: contest.verify,
    }
    actions |= {name: partial(run_quietly, command) for name, command in commands.items()}
    return interleaved(actions, rounds)


def show(forest: Forest, results: dict[str, Cost], rounds: int) -> None:
    """A table; the ratios say how many times our scan's time each takes."""
    ours = results[SCAN]
    fd = fd_program()
    table(
        f"Scan: {len(forest.repositories):,} repositories, {forest.folders:,} folders; medians of"
        f" {rounds} rounds; fd {version_of(fd) if fd else NOT_HERE}",
        ("", "wall ms", "CPU ms", "wall, against our scan", "CPU"),
        (
            (name, *cost, times(cost.wall_ms, ours.wall_ms), times(cost.cpu_ms, ours.cpu_ms))
            for name, cost in results.items()
        ),
    )
    against = [(FRONTIER, SCAN), (RESCAN, SCAN), (RESCAN, FIRST), (SCAN, C_WALK)]
    against += [(SCAN, FD), (RESTART, FD)]
    table(
        "One against another",
        ("", "", "wall", "CPU"),
        (
            (ours, other, *map(times, results[other], results[ours]))
            for ours, other in against
            if other in results
        ),
    )
    missing = [name for name, here in ((C_WALK, shutil.which("cc")), (FD, fd)) if not here]
    for name in missing:
        print(f"{name}: {NOT_HERE}")


def test_scan_and_rescan_find_everything(forest: Forest, tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=7, check=11, soak=15)
    contest = Contest(forest, tmp_path / "index")
    contest.settle()
    contest.check()
    show(forest, compete(contest, tmp_path, rounds), rounds)
    contest.check()


def test_a_lean_forest_is_scanned_completely(tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=5, check=11, soak=15)
    count = sizes.pick(test=1_000, check=5_000, soak=20_000)
    lean = make_forest(tmp_path / "src", Plan(count, heavy=0))
    contest = Contest(lean, tmp_path / "index")
    contest.settle()
    contest.check()
    print("\nLean: no dependency folders, where pruning wins little.")
    show(lean, compete(contest, tmp_path, rounds), rounds)
