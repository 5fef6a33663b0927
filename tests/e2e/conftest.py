"""What end-to-end tests of the installed service share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import pipx_like
from support.user_manager import UserManager, interpreter_folders, user_manager


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an installation from the wheel of this checkout puts into a home."""
    folder = tmp_path_factory.mktemp("installation")
    wheel = pipx_like.built_wheel(folder)
    with user_manager(interpreter_folders()) as user:
        pipx_like.install(user, wheel)
        pipx_like.keep(user, folder / "home")
    return folder / "home"


@pytest.fixture
def user(installation: Path) -> Iterator[UserManager]:
    """A user with a `systemd --user`, and nothing in the home but rootsd."""
    with user_manager(interpreter_folders()) as user:
        pipx_like.put_back(user, installation)
        yield user
