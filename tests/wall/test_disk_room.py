"""Programs stop before they fill the disk, and go on when there is room."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from rootsd.core.errors import RootsdError
from rootsd.wall.kernel import disk_room
from rootsd.wall.kernel.disk_room import DiskRoom
from rootsd.wall.kernel.orders import PauseState

MIB, GIB = 1 << 20, 1 << 30


class FakePrograms:
    """Programs that are stopped or run."""

    state = PauseState.RUNNING

    def stop(self, why: RootsdError) -> None:
        self.state = PauseState.STOPPED
        self.why = why.message

    def resume(self) -> None:
        self.state = PauseState.RUNNING


class _Left(NamedTuple):
    f_bavail: int
    f_frsize: int = 4096


class Disk:
    """A disk with a number of bytes left, and a clock that waits for each look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
        self.left, self.now = left, time.monotonic()
        monkeypatch.setattr(os, "statvfs", lambda _: _Left(self.left // 4096))
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.programs = FakePrograms()
        self.room = DiskRoom(b"/", self.programs)  # type: ignore[arg-type]

    def state_with(self, left: int) -> PauseState:
        self.left = left
        self.now = max(self.now, self.room.deadline)
        self.room.attend()
        return self.programs.state


@pytest.fixture
def make_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Disk]:
    return lambda left: Disk(monkeypatch, left)


@pytest.mark.parametrize(
    ("left", "floor"), [(60 * GIB, GIB), (GIB, GIB // 2), (40 * MIB, 20 * MIB)]
)
def test_programs_stop_below_the_floor_and_continue_above(
    make_disk: Callable[[int], Disk], left: int, floor: int
) -> None:
    disk = make_disk(left)
    assert disk.state_with(left) is PauseState.RUNNING
    assert disk.state_with(floor) is PauseState.RUNNING
    assert disk.state_with(floor - MIB) is PauseState.STOPPED
    assert disk.programs.why == f"the disk has only {(floor - MIB) // MIB} MiB left"
    assert disk.state_with(floor) is PauseState.RUNNING


def test_it_looks_before_a_fast_program_can_fill_the_disk(
    make_disk: Callable[[int], Disk],
) -> None:
    disk = make_disk(9 * GIB)
    disk.room.attend()
    assert disk.room.deadline - disk.now == pytest.approx(4)
    disk.state_with(GIB + MIB)
    assert disk.room.deadline - disk.now == pytest.approx(disk_room._SHORTEST_S)


def test_stopped_programs_run_for_a_while_so_that_they_can_end(
    make_disk: Callable[[int], Disk],
) -> None:
    disk = make_disk(9 * GIB)
    assert disk.state_with(0) is PauseState.STOPPED
    disk.room.let_run()
    disk.now += 1
    disk.room.attend()
    assert disk.programs.state is PauseState.RUNNING
    assert disk.state_with(0) is PauseState.STOPPED
