"""What the tests of watching without threads begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.exploring import OpenWorld, World, worlds


@pytest.fixture
def open_world(tmp_path: Path) -> Iterator[OpenWorld]:
    """Makes the world of this test, of the parents that it is given."""
    with worlds(tmp_path) as opened:
        yield opened


@pytest.fixture
def world(open_world: OpenWorld) -> World:
    """The world of this test, with one parent."""
    return open_world()
