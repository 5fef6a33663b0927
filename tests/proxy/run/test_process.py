"""The process of a server, and its pipes."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator

import psutil
import pytest

from rootsd.proxy.run.command import LaunchSpec
from rootsd.proxy.run.process import ServerProcess, ServerStartFailed
from support.bridges import HANG_GUARD_S
from support.polling import until
from support.run_proxy import is_gone

MUCH = 4_000_000


@pytest.fixture
def servers() -> Iterator[list[ServerProcess]]:
    started: list[ServerProcess] = []
    yield started
    for server in started:
        server.send(signal.SIGKILL)
        server.reap()


def start(servers: list[ServerProcess], program: str, **environment: str) -> ServerProcess:
    server = ServerProcess(LaunchSpec((sys.executable, "-c", program), environment))
    servers.append(server)
    return server


def heard(server: ServerProcess) -> bytes:
    """Return everything that the server writes until its end."""
    said = b""
    while server.stdout >= 0:
        assert select.select([server.stdout], [], [], HANG_GUARD_S)[0], "it says nothing"
        said += server.read() or b""
    return said


def ended(server: ServerProcess) -> int:
    os.waitid(os.P_PID, server._process.pid, os.WEXITED | os.WNOWAIT)
    assert server.has_ended()
    return server.reap()


def test_it_inherits_the_environment_and_the_additions(
    servers: list[ServerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INHERITED", "1")
    program = "import os; print(os.environ['INHERITED'], os.environ['ADDED'])"
    assert heard(start(servers, program, ADDED="2")) == b"1 2\n"


@pytest.mark.needs("linux")
def test_it_is_busy_only_while_it_works(servers: list[ServerProcess]) -> None:
    server = start(servers, "input()\nwhile True: pass")
    until(lambda: not server.is_busy())
    server.write(bytearray(b"go on\n"))
    assert until(server.is_busy)


def test_unread_input_stays_in_the_buffer_without_blocking(servers: list[ServerProcess]) -> None:
    server = start(servers, "import sys; print(len(sys.stdin.read()))")
    data = bytearray(MUCH)
    while data:
        server.write(data)
        select.select([], [server.stdin], [], HANG_GUARD_S)
    server.close_stdin()
    assert server.stdin == -1
    server.write(bytearray(b"nobody hears that"))
    assert heard(server) == b"%d\n" % MUCH
    assert server.read() == b""
    assert ended(server) == 0


def test_a_read_without_output_returns_none(servers: list[ServerProcess]) -> None:
    server = start(servers, "import sys; sys.stdin.read()")
    assert server.read() is None
    assert not server.has_ended()
    server.close_stdin()
    assert ended(server) == 0
    assert server.has_ended()


def test_a_write_to_a_closed_server_is_ignored(servers: list[ServerProcess]) -> None:
    server = start(servers, "import os; os.close(0); print(1, flush=True); os.read(1, 1)")
    assert select.select([server.stdout], [], [], HANG_GUARD_S)[0]
    data = bytearray(b"x")
    server.write(data)
    assert not data
    assert server.stdin == -1


def test_a_signal_reaches_the_whole_group_and_gives_its_exit_status(
    servers: list[ServerProcess],
) -> None:
    program = (
        "import subprocess, sys, signal; p = subprocess.Popen([sys.executable, '-c', 'import"
        " signal; signal.pause()']); print(p.pid, flush=True); signal.pause()"
    )
    server = start(servers, program)
    select.select([server.stdout], [], [], HANG_GUARD_S)
    child = psutil.Process(int(server.read() or b"0"))
    assert os.getpgid(child.pid) != os.getpgid(0)
    server.send(signal.SIGKILL)
    assert ended(server) == 128 + signal.SIGKILL
    assert is_gone(child)
    server.send(signal.SIGTERM)  # nobody is meant any more


def test_left_behind_children_are_killed(servers: list[ServerProcess]) -> None:
    program = (
        "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import signal;"
        " signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()']).pid, flush=True)"
    )
    server = start(servers, program)
    select.select([server.stdout], [], [], HANG_GUARD_S)
    child = int(server.read() or b"0")
    assert child
    assert ended(server) == 0
    assert is_gone(child)


@pytest.mark.parametrize(
    ("word", "status"), [("/not/there", 127), ("/etc/passwd", 126), ("nul\0", 126)]
)
def test_a_failed_start_says_why(word: str, status: int) -> None:
    with pytest.raises(ServerStartFailed, match="cannot be started") as caught:
        ServerProcess(LaunchSpec((word,), {}))
    assert caught.value.status == status
    assert caught.value.remedy
