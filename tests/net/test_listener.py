"""Listening sockets that no other user can reach."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from rootsd.files.private_files import NotPrivate
from rootsd.link.connect import connect
from rootsd.net.listener import listen


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "pub" / "mcp.sock"


def test_socket_and_folders_are_private_with_any_umask_and_the_name_goes_at_the_end(
    path: Path,
) -> None:
    before = os.umask(0)
    try:
        with listen(bytes(path)) as listener:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)
    assert os.listdir(path.parent) == []
    listener.close()


@pytest.mark.parametrize("ending", ["", f".{os.getpid()}"], ids=["stale", "partial"])
def test_a_socket_of_a_killed_daemon_is_replaced(path: Path, ending: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    path.parent.parent.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{path}{ending}")
    with listen(bytes(path)), connect(bytes(path)) as connection:
        assert connection.getpeername()
        assert os.listdir(path.parent) == [path.name]


def test_the_name_of_a_successor_is_kept(path: Path) -> None:
    first = listen(bytes(path))
    second = listen(bytes(path))
    first.close()
    with connect(bytes(path)) as connection:
        assert connection.getpeername()
    second.close()
    assert not path.exists()


def test_a_folder_that_others_can_enter_is_refused_with_the_command_to_type(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.parent.parent.chmod(0o700)
    path.parent.chmod(0o755)
    with pytest.raises(NotPrivate, match="open to other users") as caught:
        listen(bytes(path))
    assert caught.value.remedy == f"chmod 700 {path.parent}"


def test_a_link_or_a_folder_in_the_way_is_refused_and_nothing_is_left(
    tmp_path: Path, path: Path
) -> None:
    path.parent.parent.mkdir(mode=0o700)
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    path.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotPrivate):
        listen(bytes(path))
    assert os.listdir(tmp_path / "elsewhere") == []
    path.parent.unlink()
    path.parent.mkdir(mode=0o700)
    path.mkdir()
    with pytest.raises(NotPrivate):
        listen(bytes(path))
    assert os.listdir(path.parent) == [path.name]
