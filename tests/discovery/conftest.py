"""Fixtures for most tests of discovery."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.candidates_harness import CandidatesHarness
from support.engine_harness import open_world, world
from support.repositories import cloned

__all__ = ["clone", "harness", "open_world", "world"]


@pytest.fixture
def harness() -> CandidatesHarness:
    return CandidatesHarness()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return cloned(tmp_path)
