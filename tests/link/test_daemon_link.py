"""Connecting to a daemon, or starting one in a separate process."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.link.connect import NotRunning, connect_to_daemon
from rootsd.link.daemon_link import AutostartProcess
from rootsd.net.listener import listen
from rootsd.places.runtime_dir import find_runtime_dir
from rootsd.processes import own_program

HANG_GUARD_S = 30


def outcome() -> RootsdError | None:
    awakening = AutostartProcess()
    while True:
        assert select.select([awakening], [], [], HANG_GUARD_S)[0]
        if awakening.has_ended():
            return awakening.outcome()


def said(monkeypatch: pytest.MonkeyPatch, program: str) -> RootsdError | None:
    """Return the outcome of a start with `program` as the starter."""
    command = (sys.executable, "-I", "-c", program)
    monkeypatch.setattr(own_program, "module_command", lambda _: command)
    return outcome()


def test_it_connects_to_a_listening_daemon_and_raises_without_one() -> None:
    with pytest.raises(NotRunning):
        connect_to_daemon()
    with listen(find_runtime_dir().mcp_socket):
        connect_to_daemon().close()


def test_it_runs_the_starter_of_this_installation_and_returns_its_error() -> None:
    error = outcome()
    assert error
    assert (error.message, error.remedy) == ("the daemon is not running", "rootsd up")


def test_an_error_keeps_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """print('error {"code": "bad-config", "message": "m", "remedy": "r"}')"""
    error = said(monkeypatch, program)
    assert error
    assert (error.code, error.message, error.remedy) == (ErrorCode.BAD_CONFIG, "m", "r")


@pytest.mark.parametrize(
    "program",
    [
        "pass",
        "print('error {')",
        "print('error []')",
        """print('error {"code": 1, "message": 2, "remedy": 3}')""",
        "print(b'\\xff')",
    ],
)
def test_useless_output_of_the_starter_becomes_an_error_with_a_command(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    error = said(monkeypatch, program)
    assert error
    assert error.code is ErrorCode.UNREACHABLE


def test_a_removed_installation_is_an_error_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    error = outcome()
    assert error
    assert error.remedy == "rootsd up"


def test_the_starter_does_not_share_the_clients_group_or_pipes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    program = (
        "import os; os.write(2, b'noise'); "
        f"open({str(seen)!r}, 'w').write(f'{{os.getpgid(0)}} {{os.read(0, 9)}}'); print('ready')"
    )
    assert said(monkeypatch, program) is None
    group, stdin = seen.read_text().split(" ", 1)
    assert int(group) != os.getpgid(0)
    assert stdin == "b''"
