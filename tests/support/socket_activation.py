"""A small supervisor that passes listening sockets to a program, as systemd does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.preloaded import Program

# The descriptors start at 3. Variables hold their number, their names, and the pid of the
# receiver.
_RECEIVE = """
import fcntl, os, sys
names, numbers = {names!r}, {numbers}
fds = [fcntl.fcntl(number, fcntl.F_DUPFD, 100) for number in numbers]
for place, fd in enumerate(fds):
    os.dup2(fd, 3 + place, inheritable=True)
os.environ |= {{"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(fds))}}
if names:
    os.environ["LISTEN_FDNAMES"] = names
"""
_START_PROGRAM = "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
_START_DAEMON = """
from rootsd.__main__ import main
sys.argv = ["rootsd", "daemon"]
sys.exit(main())
"""


def listening(path: Path) -> socket.socket:
    """Return a socket that listens at `path`. Both the socket and its folder are private."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    path.chmod(0o600)
    made.listen()
    return made


def hand_over(
    names: str, sockets: Sequence[socket.socket], command: Sequence[str]
) -> subprocess.Popen[bytes]:
    """Start Python with the arguments `command`, and pass it the sockets under these names."""
    fds = [each.fileno() for each in sockets]
    text = _RECEIVE.format(names=names, numbers=fds) + _START_PROGRAM
    return subprocess.Popen(
        [sys.executable, "-c", text, *command],
        pass_fds=fds,
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    )


def hand_over_to_daemon(names: str, sockets: Sequence[socket.socket]) -> Program:
    """Start a daemon as a fork (see `support.preloaded`), and pass it the sockets."""
    fds = [each.fileno() for each in sockets]
    text = _RECEIVE.format(names=names, numbers=fds) + _START_DAEMON
    return Program(text, os.environ, fds)
