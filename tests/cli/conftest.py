"""Fixtures of the command line: a shell, and a fake daemon to talk to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fake_daemon import FakeDaemon
from support.terminal import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Return a shell that runs commands. The exception hook that a run sets is reset at the
    end.
    """
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    return Shell(capsys)


@pytest.fixture
def daemon(rootsd_dir: Path) -> Iterator[FakeDaemon]:
    """A fake daemon on the control socket of this test's ROOTSD_DIR."""
    with FakeDaemon(rootsd_dir) as daemon:
        yield daemon


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that exists."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path
