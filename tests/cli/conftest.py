"""Fixtures of the command line: a shell, and a fake daemon to talk to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fake_daemon import FakeDaemon
from support.forking_program import forking_program
from support.terminal import Shell
from support.user_session import UserSession


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


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserSession:
    """A user session in which a service can run."""
    return UserSession(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def program() -> Iterator[str]:
    """Return the words that run `rootsd`: a start of Python takes most of the time of a test."""
    with forking_program() as words:
        yield words
