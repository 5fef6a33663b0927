"""No repository is missed when many are created, moved, and removed at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rootsd.core.model import Parent
from rootsd.discovery.service import Discovery
from support.faulty_watchers import Fault, make_faulty_watcher
from support.polling import until
from support.report_collector import HANG_S, ReportCollector
from support.repositories import fake_repository, raw
from support.sizes import Sizes
from support.system_parts import this_system

pytestmark = pytest.mark.needs("linux")

_MAKER = """
import sys
from pathlib import Path
from support.repositories import fake_repository

top, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for number in range(first, last):
    fake_repository(top / f"a{number % 7}" / f"b{number % 31}" / f"c{number}" / "d" / str(number))
"""


@contextmanager
def _watched(src: Path, fault: Fault = Fault.NONE) -> Iterator[ReportCollector]:
    with _discovered(src, fault) as (_, observed):
        yield observed


@contextmanager
def _discovered(src: Path, fault: Fault) -> Iterator[tuple[Discovery, ReportCollector]]:
    observed = ReportCollector()
    dependencies = this_system(watcher=make_faulty_watcher(fault))
    discovery = Discovery(
        report=observed.report,
        on_status=observed.on_status,
        on_death=observed.on_death,
        dependencies=dependencies,
    )
    discovery.start([Parent(raw(src), depth=6)], {})
    discovery.scan(None).result(HANG_S)
    try:
        yield discovery, observed
    finally:
        discovery.stop()


def _made(top: Path, count: int) -> set[bytes]:
    """Create repositories five levels deep by two processes at once."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    halves = ((0, count // 2), (count // 2, count))
    makers = [
        subprocess.Popen([sys.executable, "-c", _MAKER, top, *map(str, half)], env=environment)
        for half in halves
    ]
    assert [maker.wait(HANG_S * 4) for maker in makers] == [0, 0]
    return {raw(path.parent) for path in top.glob("*/*/*/*/*/.git")}


def test_no_repository_of_many_is_missed(tmp_path: Path, sizes: Sizes) -> None:
    count = sizes.pick(test=100, check=2_000, soak=6_000)
    src, outside = tmp_path / "src", tmp_path / "outside"
    (src / "tree").mkdir(parents=True)
    with _watched(src) as observed:
        made = _made(src / "tree", count)
        assert len(made) == count
        observed.wait_for(*made)
        # Half of them move out and in again, under another name.
        moved = [src / "tree" / f"a{number}" for number in range(4)]
        half = {path for path in made if any(path.startswith(raw(m) + b"/") for m in moved)}
        outside.mkdir()
        for folder in moved:
            folder.rename(outside / folder.name)
        observed.wait_for(*(made - half))
        outside.rename(src / "back")
        back = {path.replace(raw(src / "tree"), raw(src / "back"), 1) for path in half}
        observed.wait_for(*(made - half), *back)
        (src / "back").rename(src / "renamed")
        renamed = {path.replace(raw(src / "back"), raw(src / "renamed"), 1) for path in back}
        observed.wait_for(*(made - half), *renamed)
        shutil.rmtree(src / "renamed")
        observed.wait_for(*(made - half))
        shutil.rmtree(src / "tree")
        observed.wait_for()


def test_control_without_move_events_some_are_missed(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing."""
    src, outside = tmp_path / "src", tmp_path / "outside"
    (src / "tree").mkdir(parents=True)
    with _watched(src, Fault.DEAF_TO_MOVES) as observed:
        made = _made(src / "tree", 20)
        observed.wait_for(*made)
        (src / "tree" / "a0").rename(outside)
        outside.rename(src / "back")
        later = raw(fake_repository(src / "later"))
        # The event of the last one arrives after all earlier events.
        observed.wait(lambda: later in observed.live())
        assert not any(path.startswith(raw(src / "back")) for path in observed.live())


def test_a_storm_in_a_plain_folder_ends_in_the_right_state(tmp_path: Path, sizes: Sizes) -> None:
    """Files in a watched folder cost only a check of their names."""
    src = tmp_path / "src"
    (src / "notes").mkdir(parents=True)
    with _watched(src) as observed:
        for number in range(sizes.pick(test=2_000, check=20_000, soak=60_000)):
            (src / "notes" / str(number)).touch()
        _made(src, 4)
        observed.wait(lambda: len(observed.live()) == 4)
        assert len(observed.all) == 4


def test_a_storm_inside_a_repository_causes_no_event(tmp_path: Path, sizes: Sizes) -> None:
    src = tmp_path / "src"
    src.mkdir()
    with _discovered(src, Fault.NONE) as (discovery, observed):
        (one,) = (Path(os.fsdecode(path)) for path in _made(src, 1))
        observed.wait_for(raw(one))
        folder = one / "build"
        for number in range(sizes.pick(test=2_000, check=20_000, soak=60_000)):
            if number % 100 == 0:
                folder = one / "build" / str(number)
                folder.mkdir(parents=True)
            (folder / str(number)).touch()
        _made(src / "more", 1)
        observed.wait(lambda: len(observed.live()) == 2)
        assert len(observed.all) == 2
        # The parent, the folders above it, those on the way to the repositories, and these two.
        # Temporary watches are removed by then.
        inside = 4 + 5 + 2
        until(lambda: discovery.watches() == len([src, *src.parents]) + inside)
