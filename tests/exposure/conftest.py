"""Fixtures of `rootsd exposure`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.exposed_home import ExposedHome


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExposedHome:
    """A home folder without any agent."""
    made = ExposedHome(tmp_path)
    monkeypatch.setenv("HOME", str(made.path))
    return made
