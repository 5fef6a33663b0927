"""`rootsd down`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from rootsd.core.errors import DaemonUnreachable
from rootsd.service import start_record
from support.fake_daemon import FakeDaemon, a_status
from support.terminal import Shell


@pytest.fixture
def process(daemon: FakeDaemon) -> Iterator[subprocess.Popen[bytes]]:
    """The process whose pid the fake daemon reports; a stop ends it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:

        def stop(_: object) -> dict[str, object]:
            with pytest.raises(DaemonUnreachable, match="stopped by rootsd down"):
                start_record.load_start_record()  # no bridge may start another one from now on
            child.kill()
            return {}

        about = {"version": "0.1.0", "pid": child.pid, "since": "2026-11-20T08:11:02Z"}
        daemon.answers |= {"status": a_status(daemon=about), "stop": stop}
        yield child
        child.kill()


def test_the_daemon_has_ended_when_it_returns(
    process: subprocess.Popen[bytes], daemon: FakeDaemon, shell: Shell
) -> None:
    done = shell.run("down")
    assert (done.status, done.out) == (0, "")
    assert done.err == f"The daemon (pid {process.pid}) is stopped.\n"
    assert process.poll() is not None
    assert daemon.asked("stop") == [{}]


def test_json_names_the_process(process: subprocess.Popen[bytes], shell: Shell) -> None:
    assert json.loads(shell.run("down", "--json").out)["stopped"] == process.pid


def test_without_a_daemon_it_says_so_and_keeps_bridges_from_starting_one(shell: Shell) -> None:
    start_record.save_start_record(start_record.make_start_record())
    done = shell.run("down")
    assert (done.status, done.err) == (0, "The daemon was not running.\n")
    with pytest.raises(DaemonUnreachable, match="stopped by rootsd down"):
        start_record.load_start_record()
