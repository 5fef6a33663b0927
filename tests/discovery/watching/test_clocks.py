"""Checkouts are found whatever the clock says, and although a program writes in them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from rootsd.processes.activity import folders_in_use
from support.creation_methods import WAYS, Creation, Origins
from support.engine_harness import EngineHarness
from support.needs import unmet
from support.report_collector import HANG_S
from support.sizes import Sizes

pytestmark = pytest.mark.needs("linux")

_DAY = 86_400.0
_CENTURIES = 6e9
_WAYS = tuple(way for way in WAYS if way.name in {
    "hg clone", "svn checkout", "fossil open", "brz branch", "darcs clone",
})  # fmt: skip
_EACH = [pytest.param(way, id=way.name, marks=pytest.mark.needs(*way.needs)) for way in _WAYS]


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> Origins:
    return Origins(tmp_path_factory.mktemp("origins"), files=20)


def _create(way: Creation, origins: Origins, to: Path) -> Path:
    origins.run(*(str(word) for word in way.command(origins, to)))
    return to


def _copy(source: Path, to: Path, date: str) -> None:
    """Copy a checkout without its VCS, and then set all times that a program can set."""
    subprocess.run(["cp", "-a", source, to], check=True)
    paths = [path for path in (to, *to.rglob("*")) if not path.is_symlink()]
    subprocess.run(["touch", "-d", date, "--", *paths], check=True)


@pytest.mark.parametrize("way", _EACH)
def test_a_checkout_is_found_whatever_the_clock_says(
    world: EngineHarness, origins: Origins, monkeypatch: pytest.MonkeyPatch, way: Creation
) -> None:
    """Each change time on the disk is first in the future, and then in the past."""
    now, now_ns = time.time, time.time_ns
    ahead_s = -_DAY
    monkeypatch.setattr(time, "time", lambda: now() + ahead_s)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + int(ahead_s * 1e9))
    work = _create(way, origins, world.top / "one")
    world.settle()
    assert world.live() == world.fresh() == {"one": way.kind}
    _copy(work, world.top / "two", "1960-01-01")
    world.settle()
    ahead_s = _CENTURIES
    assert world.fresh() == {"one": way.kind, "two": way.kind}
    _copy(work, world.top / "three", "2200-01-01")
    world.settle()
    ahead_s = -_CENTURIES
    assert world.live() == world.fresh() == dict.fromkeys(("one", "two", "three"), way.kind)


class Writer:
    """A program that holds a file in a folder open for writing, and creates one at each `step`."""

    _CODE = (
        "import sys\n"
        "log = open('log', 'w')\n"
        "for n, line in enumerate(sys.stdin):\n"
        "    log.write(line); log.flush()\n"
        "    open(f'tmp{n}', 'w').close()\n"
        "    print('written', flush=True)\n"
    )

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._CODE], cwd=folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def step(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("line\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "written\n"

    def end(self) -> None:
        self._process.communicate(timeout=HANG_S)


def test_a_program_that_writes_all_the_time_hides_a_checkout_for_a_while_only(
    world: EngineHarness, origins: Origins, sizes: Sizes
) -> None:
    engine, clock = world.engine, world.clock
    world.find_in_use = folders_in_use
    ways = [way for way in _WAYS if not any(map(unmet, way.needs))]
    assert ways, "git is always there"
    for way in sizes.pick(test=ways[-1:], check=ways, soak=ways):
        name = way.name.replace(" ", "-")
        made = _create(way, origins, world.top.parent / name)
        _copy(made, world.top / name, "2200-01-01")
        writer, begin = Writer(world.top / name), clock.now
        try:
            while name not in world.live() and clock.now < begin + 100:
                writer.step()
                engine.handle(world.pumped.pump())
                engine.tick()
                world.reported += engine.take()
                clock.now += 0.5
        finally:
            writer.end()
        assert world.live()[name] is way.kind
        assert 25 < clock.now - begin < 35
