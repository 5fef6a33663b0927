"""The wall: how soon a change is seen, and the cost of the start, of work, and of many roots.

The start and the work are compared with bubblewrap, whose view has fewer parts and never changes.

The rows "from the command line to the program" begin when the arguments are parsed, and end when a
program in C says the time. The loading of Python and of modules is not in them.

Run: make bench ARGS='-k bench_confine'
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest

from bench.measuring import interleaved, run_quietly, table
from bench.running import Daemon, daemon
from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    ConfinedRoot,
)
from rootsd.core.wall import WallEngine
from rootsd.wall.kernel.orders import OrderKind
from rootsd.wall.session.view_feed import WallSubscription
from rootsd.wire.feed import Away, Changed
from support.repositories import fake_repository
from support.roots_publisher import RootsPublisher, subscribed
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
# The front of a wall that lists no files, so that it has no report of them.
_WITHOUT_REPORT = """
import sys
from rootsd.wall.git.file_names import RootListings
from rootsd.wall.session import main
for name in ("begin", "wait", "end_early", "conclude"):
    setattr(RootListings, name, lambda *_, **__: [])
sys.exit(main.main(sys.argv[1:]))
"""
_MANY = 5_000
_MANY_PROTECTED = 500
_WARDENS = 10
_FILES = 20_000
_UNITS = 60
# Prints the nanoseconds that the work takes, without the start of the wall around it.
_TIMED = "begin=$(date +%s%N); {} >/dev/null; echo $(($(date +%s%N) - begin))"
_WORK = {
    f"git status, {_FILES:,} files": "git -C files status --short",
    f"find, {_FILES:,} files": "find files -name .none",
    f"npm ci, {_UNITS} packages": "npm ci --silent --offline --prefix packages",
    f"cc, {_UNITS} files": "make -s -B -C units",
}


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
    each_s: dict[str, float] = {}
    for kind, number in (
        ("protected", 100), ("protected", _MANY_PROTECTED), ("plain", 100), ("plain", _MANY),
    ):  # fmt: skip
        roots = _roots(tmp_path / kind, number)
        with Wall(tmp_path / f"state-{kind}-{number}", home) as wall:
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
        few = each_s.setdefault(kind, spent / number)
        rows.append((f"{name}, for each compared with 100", f"{spent / number / few:.2f} x", ""))
    return rows


def _starts(tmp_path: Path, home: Path, sizes: Sizes) -> list[tuple[str, str, str]]:
    rounds = sizes.pick(test=20, check=30, soak=200)
    rows = []
    with RootsPublisher(tmp_path / "rootsd") as publisher:
        rows += _wholes(home, rounds)
        rows += _parts(home, rounds, "no root")
        publisher.publish(*_roots(tmp_path / "protected", _MANY_PROTECTED))
        rows += _parts(home, rounds // 4, f"{_MANY_PROTECTED} protected roots")
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


@pytest.mark.needs("bubblewrap")
def test_the_start_and_the_memory_of_a_wall_with_one_root(
    tmp_path: Path, home: Path, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "rootsd"))
    root = _root(tmp_path / "root")
    folder = Path(os.fsdecode(root.path))
    wall = [str(Path(sys.executable).with_name("rootsd")), "confine", "--quiet", "--all", "--"]
    commands = {
        "empty Python": [sys.executable, "-c", "pass"],
        "bubblewrap": [*_bubblewrap(folder), "true"],
        "wall": [*wall, "true"],
    }
    with RootsPublisher(tmp_path / "rootsd") as publisher:
        publisher.publish(root)
        costs = interleaved(
            {name: partial(run_quietly, words) for name, words in commands.items()},
            sizes.pick(test=20, check=40, soak=200),
        )
        memory_mb = _private_memory([*wall, "cat"], folder)
    start_ms = costs.pop("wall").wall_ms
    rows = [(f"start, in times of {name}", start_ms / it.wall_ms) for name, it in costs.items()]
    rows = [("start, ms", start_ms), *rows, ("private memory without the program, MB", memory_mb)]
    table("rootsd confine -- true", ("what", "median"), rows)


def _private_memory(wall: Sequence[str], folder: Path) -> float:
    """Return the megabytes that the processes of a wall around `cat` share with no other."""
    pipe = subprocess.PIPE
    with subprocess.Popen(wall, stdin=pipe, stdout=pipe, cwd=folder, bufsize=0) as front:
        assert front.stdin is not None
        assert front.stdout is not None
        front.stdin.write(b"begun")
        front.stdout.read(1)
        of_it = psutil.Process(front.pid)
        processes = [it for it in (of_it, *of_it.children(recursive=True)) if it.name() != "cat"]
        held = sum(it.memory_full_info().uss for it in processes)
        front.stdin.close()
    return held / 1e6


@pytest.mark.needs("npm", "bubblewrap", "gcc", "make")
def test_work_outside_behind_the_wall_and_in_bubblewrap(
    tmp_path: Path, home: Path, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "rootsd"))
    root = _make_work(tmp_path / "root")
    front = ["--quiet", "--all", "--"]
    walls = {
        "outside": [],
        "wall": [sys.executable, "-m", "rootsd", "confine", *front],
        "without its report": [sys.executable, "-c", _WITHOUT_REPORT, *front],
        "bubblewrap": [*_bubblewrap(root), "--"],
    }
    works = {"start": "true", **_WORK}
    times: dict[tuple[str, str], list[float]] = {}
    with RootsPublisher(tmp_path / "rootsd") as publisher:
        publisher.publish(_root(root))
        for _ in range(sizes.pick(test=5, check=15, soak=50) + 1):
            for work, command in works.items():
                for wall, words in walls.items():
                    spent = _time_of_work(words, command, root)
                    times.setdefault((work, wall), []).append(spent)
    rows = [
        (work, *(f"{statistics.median(times[work, wall][1:]) * 1e3:.1f} ms" for wall in walls))
        for work in works
    ]
    table("Work", ("what", *walls), rows)


def _time_of_work(wall: Sequence[str], command: str, root: Path) -> float:
    """Return the seconds that `command` takes in `wall`, or for `true`, those of the whole."""
    begin = time.perf_counter()
    words = [*wall, "sh", "-c", _TIMED.format(command)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=root)
    whole = time.perf_counter() - begin
    return whole if command == "true" else int(done.stdout.split()[-1]) / 1e9


def _make_work(root: Path) -> Path:
    """Make a root with files to look at, packages to install, and units to compile."""
    files, packages, units = root / "files", root / "packages", root / "units"
    for number in range(_FILES):
        file = files / f"{number // 100:03}" / f"{number:05}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n")
    git = ["git", "-C", str(files)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    names = [f"package-{number}" for number in range(_UNITS)]
    for name in names:
        package = packages / "archives" / name
        package.mkdir(parents=True)
        (package / "package.json").write_text(json.dumps({"name": name, "version": "1.0.0"}))
        for number in range(20):
            (package / f"{number}.js").write_text(f"exports.x = {number}\n")
    pack = ["npm", "pack", "--silent", *(f"./archives/{name}" for name in names)]
    subprocess.run(pack, check=True, capture_output=True, cwd=packages)
    needed = {name: f"file:{name}-1.0.0.tgz" for name in names}
    (packages / "package.json").write_text(json.dumps({"name": "x", "dependencies": needed}))
    lock = ["npm", "install", "--silent", "--offline", "--package-lock-only"]
    subprocess.run(lock, check=True, capture_output=True, cwd=packages)
    units.mkdir()
    for number in range(_UNITS):
        (units / f"u{number}.c").write_text(f"#include <stdio.h>\nint f{number}(void);\n")
    objects = " ".join(f"u{number}.o" for number in range(_UNITS))
    (units / "Makefile").write_text(f"all: {objects}\n")
    return root


def _bubblewrap(root: Path) -> list[str]:
    """Return the start of a command that shows the system, and `root`."""
    shown = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    shown += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for folder in ("/usr", "/etc", "/bin", "/lib", "/lib64", "/opt"):
        shown += ["--ro-bind-try", folder, folder]
    return [*shown, "--bind", str(root), str(root), "--chdir", str(root)]


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
        wardens = [subscribed("bench", _PROGRAM) for _ in range(_WARDENS)]
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
