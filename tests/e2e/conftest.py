"""Fixtures for end-to-end tests of the installed service."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import pipx_install
from support.user_manager import UserManager, interpreter_folders, user_manager


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the files that an installation from this checkout's wheel puts into a home.

    The first worker of pytest that needs them makes them, for all workers of the run.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "installation"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            wheel = pipx_install.built_wheel(folder)
            with user_manager(interpreter_folders()) as user:
                pipx_install.install(user, wheel)
                pipx_install.keep(user, folder / "home")
            (folder / "complete").touch()
    return folder / "home"


@pytest.fixture
def user(installation: Path) -> Iterator[UserManager]:
    """Yield a user with a `systemd --user` and only rootsd in the home."""
    with user_manager(interpreter_folders()) as user:
        pipx_install.put_back(user, installation)
        yield user
