"""Shared fixtures of the benchmarks: one large forest, created once."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.forest import Forest, Plan, make_forest
from support.sizes import Sizes


@pytest.fixture(scope="session")
def forest(tmp_path_factory: pytest.TempPathFactory, sizes: Sizes) -> Forest:
    """5,000 repositories in more than 170,000 folders, as the budgets have it; read only.

    From `check` on in as many folders as the forest B that they were set by, 279,013.
    """
    plan = sizes.pick(test=Plan(5_000), check=Plan(5_000, heavy=103), soak=Plan(20_000))
    return make_forest(tmp_path_factory.mktemp("large") / "src", plan)


@pytest.fixture
def small_forest(tmp_path: Path) -> Forest:
    """500 repositories in 20,000 folders, for one benchmark alone, which may change it."""
    return make_forest(tmp_path / "src", Plan(500))
