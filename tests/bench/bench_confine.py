"""The wall: how soon a running program sees a change, the cost of the start, and many roots.

The rows "from the command line to the program" begin when the arguments are parsed, and end when a
program in C says the time. The loading of Python and of modules is not in them.

Run: make bench ARGS='-k bench_confine'
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from bench.measuring import table
from bench.running import Daemon, daemon
from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    ConfinedRoot,
)
from rootsd.core.wall import WallEngine
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.session.view_feed import WallSubscription, subscribe
from rootsd.wire.feed import Away, Changed
from rootsd.wire.hello import Hello
from support.repositories import fake_repository
from support.roots_publisher import RootsPublisher
from support.sizes import Sizes
from support.walls import Wall

_PROGRAM = {
    "pid": 0, "program": "", "engine": "namespaces", "landlock": 0, "network": True,
}  # fmt: skip
pytestmark = pytest.mark.needs("wall")

# Prints the time of each appearance and disappearance of a path.
_WATCHER = """
import os, sys, time
seen = False
print("ready", flush=True)
while True:
    now = os.path.exists(sys.argv[1])
    if now != seen:
        seen = now
        print(time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)
"""

# The front, which says when it has parsed its arguments.
_FRONT = """
import sys, time
from rootsd.wall.session import main
parse = main.parse_arguments
def parse_arguments(words):
    options = parse(words)
    print(time.time(), flush=True)
    return options
main.parse_arguments = parse_arguments
sys.exit(main.main(sys.argv[1:]))
"""
_MANY = 5_000
_WARDENS = 10


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def test_the_figures(
    tmp_path: Path, home: Path, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [*_changes(tmp_path, home, sizes), *_many(tmp_path, home)]
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "rootsd"))
    rows += _starts(tmp_path, home, sizes)
    table("The wall", ("what", "median", "p99"), rows)


def _changes(tmp_path: Path, home: Path, sizes: Sizes) -> list[tuple[str, str, str]]:
    root = _root(tmp_path / "root")
    grants: list[float] = []
    revokes: list[float] = []
    orders: list[float] = []
    with Wall(tmp_path / "state", home) as wall:
        path = os.fsdecode(root.path)
        wall.run(
            "W = subprocess.Popen([sys.executable, '-c', "
            f"{_WATCHER!r}, {path!r}], stdout=subprocess.PIPE, text=True); W.stdout.readline()"
        )
        for _ in range(sizes.pick(test=50, check=1_000, soak=100_000)):
            for seen, roots in ((grants, [root]), (revokes, [])):
                begin = time.clock_gettime(time.CLOCK_MONOTONIC)
                wall.order(OrderKind.SET, *roots)
                orders.append(time.clock_gettime(time.CLOCK_MONOTONIC) - begin)
                at = float(wall.run("result = W.stdout.readline()"))
                seen.append(at - begin)
        memory = psutil.Process(wall.warden_pid).memory_full_info().uss / 1e6
    return [
        _row("grant: order to seen by a program", grants),
        _row("revoke: order to gone for a program", revokes),
        _row("order to report", orders),
        ("private memory of the warden", f"{memory:.1f} MB", ""),
    ]


def _many(tmp_path: Path, home: Path) -> list[tuple[str, str, str]]:
    rows = []
    for kind, number in (("protected", 100), ("protected", _MANY), ("plain", _MANY)):
        roots = _roots(tmp_path / kind, number)
        with Wall(tmp_path / "state", home) as wall:
            warden = psutil.Process(wall.warden_pid)
            worked = sum(warden.cpu_times()[:2])
            begin = time.perf_counter()
            report = wall.order(OrderKind.SET, *roots)
            spent = time.perf_counter() - begin
            worked = sum(warden.cpu_times()[:2]) - worked
        assert report.shown == number
        name = f"{number} {kind} roots at once"
        rows.append((name, f"{spent * 1e3:.0f} ms", ""))
        rows.append((f"{name}, processor time of the warden", f"{worked * 1e3:.0f} ms", ""))
    return rows


def _starts(tmp_path: Path, home: Path, sizes: Sizes) -> list[tuple[str, str, str]]:
    rounds = sizes.pick(test=20, check=30, soak=200)
    rows = []
    with RootsPublisher(tmp_path / "rootsd") as publisher:
        rows += _wholes(home, rounds)
        rows += _parts(home, rounds, "no root")
        publisher.publish(*_roots(tmp_path / "plain", _MANY))
        rows += _parts(home, rounds // 10, f"{_MANY} plain roots")
    return rows


def _wholes(home: Path, rounds: int) -> list[tuple[str, str, str]]:
    command = [sys.executable, "-m", "rootsd"]
    commands = {
        "rootsd confine -- true": ["confine", "--", "true"],
        "rootsd confine --static -- true": ["confine", "--static", "--", "true"],
        "for comparison: rootsd check": ["check", "/"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds + 1):
        for name, words in commands.items():
            begin = time.perf_counter()
            subprocess.run([*command, *words], check=False, capture_output=True, cwd=home)
            times[name].append(time.perf_counter() - begin)
    return [_row(name, each[1:]) for name, each in times.items()]  # the first one fills caches


def _parts(home: Path, rounds: int, roots: str) -> list[tuple[str, str, str]]:
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for engine, flags in ((WallEngine.NAMESPACES, ()), (WallEngine.STATIC, ("--static",))):
            words = [*flags, "--all", "--", "date", "+%s.%N"]
            done = subprocess.run(
                [sys.executable, "-c", _FRONT, *words],
                check=True, capture_output=True, text=True, cwd=home,
            )  # fmt: skip
            ended = time.time()
            parsed, started = map(float, done.stdout.split())
            what = f"{engine.value}, {roots}: from"
            times.setdefault(f"{what} the command line to the program", []).append(
                started - parsed
            )
            times.setdefault(f"{what} the program to the end", []).append(ended - started)
    return [_row(*each) for each in times.items()]


@pytest.mark.parametrize("roots", [500, _MANY])
def test_a_change_of_one_root_reaches_each_warden(
    tmp_path: Path, sizes: Sizes, roots: int
) -> None:
    rounds = sizes.pick(test=20, check=50, soak=300)
    for number in range(roots):
        fake_repository(tmp_path / "src" / f"g{number // 100:02}" / f"r{number:05}")
    fake_repository(tmp_path / "src" / "one")
    with daemon(tmp_path / "src") as running:
        running.approve_pending()
        running.ask("decide", verb="deny", cwd="/", refs=["one"])
        alone = _cost_of_changes(running, [], rounds)
        wardens = [subscribe(Hello(client="bench"), _PROGRAM) for _ in range(_WARDENS)]
        together = _cost_of_changes(running, wardens, rounds)
        for warden in wardens:
            warden.feed.close()
    table(
        f"A change of one root among {roots} in the daemon",
        ("what", "processor time"),
        (
            ("no confined program", f"{alone * 1e3:.2f} ms"),
            ("added by each confined program", f"{(together - alone) / _WARDENS * 1e3:.2f} ms"),
        ),
    )


def _cost_of_changes(running: Daemon, wardens: Sequence[WallSubscription], rounds: int) -> float:
    """Return the processor time of the daemon for each change."""
    process = psutil.Process(running.pid)
    before = process.cpu_times()
    for _ in range(rounds):
        for verb in ("approve", "deny"):
            running.ask("decide", verb=verb, cwd="/", refs=["one"])
            for warden in wardens:
                _wait_for_view(warden)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / (2 * rounds)


def _wait_for_view(warden: WallSubscription) -> None:
    while True:
        for event in warden.feed.wait():
            assert not isinstance(event, Away), "the daemon hung up"
            if isinstance(event, Changed):
                return


def _roots(top: Path, number: int) -> list[ConfinedRoot]:
    """Return so many roots. Those in `protected` are repositories."""
    model = top / "model"
    if not model.exists():
        model.mkdir(parents=True)
        if top.name == "protected":
            subprocess.run(["git", "init", "-q", "--template=", model], check=True)
            (model / ".git" / "hooks").mkdir()
    folders = [top / str(number) / str(each) for each in range(number)]
    for folder in folders:
        shutil.copytree(model, folder, dirs_exist_ok=True)
    return [_root(folder) for folder in folders]


def _root(path: Path) -> ConfinedRoot:
    path.mkdir(parents=True, exist_ok=True)
    return ConfinedRoot(os.fsencode(path), Access.READ_WRITE)


def _row(name: str, seconds: Sequence[float]) -> tuple[str, str, str]:
    ordered = sorted(seconds)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return name, f"{statistics.median(ordered) * 1e3:.2f} ms", f"{high * 1e3:.2f} ms"
