"""What most tests of discovery's parts begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.exploring import World
from support.making import Making
from support.repos import cloned


@pytest.fixture
def making() -> Making:
    return Making()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return cloned(tmp_path)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.pumped.watcher.stop()
