"""The home folder that screens shorten to ~."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
