"""An empty home, and a control socket that publishes roots to `rootsd confine`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.roots_publisher import RootsPublisher


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROOTSD_DIR", str(tmp_path / "rootsd"))
    return home


@pytest.fixture
def publisher(tmp_path: Path, home: Path) -> Iterator[RootsPublisher]:
    with RootsPublisher(tmp_path / "rootsd") as publisher:
        yield publisher
