"""Whether the process at the other end still exists, even if it passed its end on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.net.unix_socket import peer_of
from rootsd.processes import process_exit as visitor_module
from rootsd.processes.process_exit import ProcessHandle

# Connects, leaves the connection to a child that keeps running, and ends on request.
HANDS_ON = """
import os, socket, sys
ours = socket.socket(socket.AF_UNIX)
ours.connect(sys.argv[1])
ready, tell = os.pipe()
if not os.fork():
    os.close(tell)
    os.read(ready, 1)     # its end: the one that connected has ended
    ours.send(b"x")
    ours.recv(1)
    os._exit(0)
sys.stdin.read(1)
"""


def test_a_running_peer_exists_and_one_that_passed_its_end_on_does_not(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        with subprocess.Popen(
            [sys.executable, "-c", HANDS_ON, path], stdin=subprocess.PIPE
        ) as caller:
            connection, _ = listening.accept()
            with connection:
                visitor = ProcessHandle(connection, peer_of(connection).pid)
                assert visitor.pid == caller.pid
                assert not visitor.has_gone()
                caller.communicate(b"x")
                assert connection.recv(1) == b"x"  # from whom it was handed to
                assert visitor.has_gone()
                visitor.close()
                visitor.close()


@pytest.mark.parametrize("platform", ["darwin", "linux"])
def test_without_a_descriptor_the_pid_is_used(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not ProcessHandle(ours, 0).has_gone(), "a hidden peer is unknown"
        monkeypatch.setattr(visitor_module, "_SO_PEERPIDFD", -1)
        assert not ProcessHandle(ours, 0).has_gone()
        assert ProcessHandle(ours, ended.pid).has_gone()
        here = ProcessHandle(ours, os.getpid())
        assert not here.has_gone()
        here.close()
