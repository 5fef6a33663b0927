"""What most tests of discovery's parts begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.exploring import open_world, world
from support.making import Making
from support.repos import cloned

__all__ = ["clone", "making", "open_world", "world"]


@pytest.fixture
def making() -> Making:
    return Making()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return cloned(tmp_path)
