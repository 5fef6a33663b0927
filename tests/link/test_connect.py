"""Connecting to the daemon's socket, and to no other user's."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from rootsd.core.errors import Busy, DaemonUnreachable
from rootsd.link import connect as module
from rootsd.link.connect import ForeignSocket, NotRunning, Sandboxed, connect
from rootsd.net.listener import listen
from rootsd.net.unix_socket import Peer


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return bytes(tmp_path / "run" / "pub" / "mcp.sock")


@pytest.mark.parametrize("folder", ["run", "d" * 200])
def test_a_listening_daemon_is_reached_by_a_blocking_socket(tmp_path: Path, folder: str) -> None:
    path = bytes(tmp_path / folder / "mcp.sock")
    with listen(path) as listener, connect(path, timeout_s=1.5) as connection:
        assert connection.getblocking()
        limit = connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16)
        assert not any(limit), "the time limit of the connect does not apply to messages"
        accepted, _ = listener.socket.accept()
        with accepted:
            accepted.sendall(b"hello")
            assert connection.recv(5) == b"hello"


def test_no_socket_a_stale_one_or_a_file_in_the_way_means_not_running(
    path: bytes, tmp_path: Path
) -> None:
    with listen(path):
        os.link(path, bytes(tmp_path / "stale"))
    (tmp_path / "file").touch()
    before = {name for name in os.listdir("/dev/fd") if _is_socket(name)}
    for wrong in (path, *(bytes(tmp_path / name) for name in ("stale", "file", "file/mcp.sock"))):
        with pytest.raises(NotRunning) as caught:
            connect(wrong)
        assert caught.value.remedy == "rootsd up"
        assert isinstance(caught.value, DaemonUnreachable)
    assert {name for name in os.listdir("/dev/fd") if _is_socket(name)} == before


def test_a_server_of_another_user_is_refused(path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "peer_of", lambda _: Peer(1, os.geteuid() + 1))
    with listen(path), pytest.raises(ForeignSocket, match="served by user"):
        connect(path)


def test_a_folder_that_others_may_enter_or_a_link_in_its_place_is_refused(path: bytes) -> None:
    with listen(path):
        folder = Path(os.fsdecode(os.path.dirname(path)))
        for mode in (0o755, 0o710, 0o701, 0o777):
            folder.chmod(mode)
            with pytest.raises(ForeignSocket, match="is open to other users") as caught:
                connect(path)
            assert f"chmod 700 {folder}" in (caught.value.remedy or "")
        folder.chmod(0o700)
        connect(path).close()  # the control
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to("elsewhere")
        with pytest.raises(ForeignSocket, match="is not a folder"):
            connect(path)


def _fill(path: bytes) -> list[socket.socket]:
    """Connect until the backlog takes no more."""
    waiting: list[socket.socket] = []
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(0)
        try:
            client.connect(path)
        except BlockingIOError:
            client.close()
            return waiting
        waiting.append(client)


@pytest.mark.needs("linux")
@pytest.mark.parametrize("forbidden", ["__init__", "setsockopt", "connect"])
def test_a_sandbox_that_forbids_sockets_is_named(
    forbidden: str, path: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Filtered(socket.socket):
        """As under a system call filter."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    setattr(Filtered, forbidden, refuse)
    monkeypatch.setattr(socket, "socket", Filtered)
    with pytest.raises(Sandboxed, match="sandbox"):
        connect(path)


@pytest.mark.needs("linux")
def test_a_connect_waits_for_a_full_backlog_but_not_forever(path: bytes) -> None:
    with listen(path, backlog=1) as listener:
        waiting = _fill(path)
        with pytest.raises(Busy):
            connect(path, timeout_s=0.05)
        reached: list[socket.socket] = []
        caller = threading.Thread(target=lambda: reached.append(connect(path, timeout_s=30)))
        caller.start()
        accepted = [listener.socket.accept()[0] for _ in waiting]
        caller.join(30)
        assert len(reached) == 1
        for each in (*waiting, *accepted, *reached):
            each.close()


def _is_socket(name: str) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(int(name)).st_mode)
    except OSError:
        return False
