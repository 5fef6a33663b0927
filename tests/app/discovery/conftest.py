"""What most tests of discovery's parts begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.exploring import OpenWorld, World, worlds
from support.making import Making
from support.repos import cloned


@pytest.fixture
def making() -> Making:
    return Making()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return cloned(tmp_path)


@pytest.fixture
def open_world(tmp_path: Path) -> Iterator[OpenWorld]:
    """Makes the world of this test, of the parents that it is given."""
    with worlds(tmp_path) as opened:
        yield opened


@pytest.fixture
def world(open_world: OpenWorld) -> World:
    """The world of this test, with one parent."""
    return open_world()
