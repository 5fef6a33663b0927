"""Fixtures for end-to-end tests of the installed service."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import pipx_install
from support.user_manager import UserManager, interpreter_folders, user_manager


@contextmanager
def made_once(factory: pytest.TempPathFactory, name: str) -> Iterator[Path | None]:
    """Yield an empty folder to the first worker of pytest that enters, and None to all others.

    The others wait for the first one.
    """
    folder = run_folder(factory) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield None if (folder / "complete").exists() else folder
        (folder / "complete").touch()


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder of all workers of the run."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel of this checkout, which is built once for all workers."""
    with made_once(tmp_path_factory, "wheel") as folder:
        if folder is not None:
            pipx_install.built_wheel(folder)
    (wheel,) = (run_folder(tmp_path_factory) / "wheel").glob("dist/*.whl")
    return wheel


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """Return the files that an installation from this checkout's wheel puts into a home."""
    with made_once(tmp_path_factory, "installation") as folder:
        if folder is not None:
            with user_manager(interpreter_folders()) as user:
                pipx_install.install(user, wheel)
                pipx_install.keep(user, folder / "home")
    return run_folder(tmp_path_factory) / "installation" / "home"


@pytest.fixture
def user(installation: Path) -> Iterator[UserManager]:
    """Yield a user with a `systemd --user` and only rootsd in the home."""
    with user_manager(interpreter_folders()) as user:
        pipx_install.put_back(user, installation)
        yield user
