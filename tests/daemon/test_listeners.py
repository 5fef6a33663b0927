"""The daemon's sockets lose their names and are created again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from rootsd.core.errors import Busy
from rootsd.daemon.listeners import RunFolderClaim, SocketListeners, fallback_folders
from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.files.private_files import NotPrivate
from rootsd.link.connect import NotRunning, connect
from rootsd.places.runtime_dir import RuntimeDir, find_runtime_dir
from support.daemon_process import HANG_GUARD, ask, running

pytestmark = pytest.mark.needs("linux")

RECORD = LockRecord(os.getpid(), "1.2.3", {})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


async def echo(stream: SocketStream, *_: object) -> None:
    """Answer until the peer closes."""
    async with stream:
        async for data in stream:
            await stream.send(data)


def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[RuntimeDir, RuntimeDir]:
    """Return the runtime folder, and the next folder where clients look."""
    both = RuntimeDir(bytes(tmp_path / "run")), RuntimeDir(bytes(tmp_path / "state" / "run"))
    monkeypatch.setattr("rootsd.places.runtime_dir.find_runtime_dirs", lambda: both)
    return both


async def reach(path: bytes) -> None:
    """Return when a process listens at `path`."""
    with anyio.fail_after(HANG_GUARD):
        while True:
            try:
                connect(path).close()
            except NotRunning:
                await anyio.lowlevel.checkpoint()
            else:
                return


async def test_if_the_folder_cannot_be_created_the_next_one_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = places(tmp_path, monkeypatch)
    assert fallback_folders() == [second.path]
    assert os.stat(second.path).st_mode & 0o777 == 0o700
    with DaemonLock.acquire(tmp_path / "run", RECORD) as lock:
        claim = RunFolderClaim(first, lock, RECORD)
        with SocketListeners(claim, control=echo, mcp=echo) as listening:
            async with anyio.create_task_group() as group:
                group.start_soon(listening.serve)
                shutil.rmtree(tmp_path / "run")
                (tmp_path / "run").touch()  # no folder can be created there now
                await reach(second.mcp_socket)
                await reach(second.control_socket)
                assert listening.control_path == second.control_socket
                # No other daemon may use that folder from now on.
                with pytest.raises(Busy, match="another rootsd"):
                    DaemonLock.acquire(tmp_path / "state" / "run", RECORD)
                (tmp_path / "run").unlink()
                shutil.rmtree(tmp_path / "state" / "run")
                await reach(first.mcp_socket)
                group.cancel_scope.cancel()
    assert not list(tmp_path.rglob("*.sock"))  # noqa: ASYNC240 - nothing runs beside it


async def test_the_folder_of_another_daemon_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = places(tmp_path, monkeypatch)
    fallback_folders()
    with (
        DaemonLock.acquire(tmp_path / "run", RECORD) as lock,
        DaemonLock.acquire(tmp_path / "state" / "run", RECORD),
        SocketListeners(RunFolderClaim(first, lock, RECORD), control=echo, mcp=echo) as listening,
        anyio.fail_after(HANG_GUARD),
    ):
        async with anyio.create_task_group() as group:
            group.start_soon(listening.serve)
            await reach(first.mcp_socket)
            shutil.rmtree(tmp_path / "run")
            (tmp_path / "run").touch()
        # It returned, because there was no folder left.
        with pytest.raises(NotRunning):
            connect(second.mcp_socket)


async def test_if_one_of_two_sockets_cannot_be_created_none_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = places(tmp_path, monkeypatch)
    with DaemonLock.acquire(tmp_path / "run", RECORD) as lock:
        (tmp_path / "run" / "pub").touch()
        with pytest.raises(NotPrivate):
            SocketListeners(RunFolderClaim(first, lock, RECORD), control=echo, mcp=echo)
        with pytest.raises(NotRunning):
            connect(first.control_socket)


def test_a_fallback_folder_that_others_may_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, second = places(tmp_path, monkeypatch)
    os.makedirs(second.path, mode=0o755)
    assert fallback_folders() == []


def test_missing_sockets_and_their_folders_are_created_again(home: Path, rootsd_dir: Path) -> None:
    with running(home) as daemon, connect(find_runtime_dir().mcp_socket) as session:
        for lost in ("pub/mcp.sock", "ctl/control.sock", "pub", "ctl"):
            place = rootsd_dir / "run" / lost
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink()
            assert any("listening on new socket files" in line for line in daemon.stderr)
            assert ask("status").returncode == 0
            for path in (find_runtime_dir().mcp_socket, find_runtime_dir().control_socket):
                connect(path).close()
        session.settimeout(HANG_GUARD)
        session.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert b'"id":1' in session.recv(4096), "who was connected stays so"
        daemon.terminate()
        assert daemon.wait(HANG_GUARD) == 0
    assert not list((rootsd_dir / "run").glob("*/*.sock"))


def test_if_no_folder_can_be_created_the_daemon_fails(home: Path, rootsd_dir: Path) -> None:
    with running(home) as daemon:
        # A file takes the folder's path, and the confined daemon may not create another folder
        # beside it.
        (rootsd_dir / "run").rename(home / "old")
        (rootsd_dir / "run").touch()
        _, told = daemon.communicate(timeout=HANG_GUARD)
    assert daemon.returncode == 1
    assert "clients cannot find the daemon any more" in told
