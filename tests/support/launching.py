"""A supervisor of a few lines: hands listening sockets to a program, as systemd does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Descriptors from 3 on, their number and names, and the pid that they are meant for.
_LAUNCHER = """
import fcntl, os, sys
names, numbers, command = sys.argv[1], eval(sys.argv[2]), sys.argv[3:]
fds = [fcntl.fcntl(number, fcntl.F_DUPFD, 100) for number in numbers]
for place, fd in enumerate(fds):
    os.dup2(fd, 3 + place, inheritable=True)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(fds))}
if names:
    os.environ["LISTEN_FDNAMES"] = names
os.execv(sys.executable, [sys.executable, *command])
"""


def listening(path: Path) -> socket.socket:
    """A socket that listens at `path`, closed to others, in a folder that is too."""
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
    """Start Python with the words `command`, the sockets in its hands under these names."""
    fds = [each.fileno() for each in sockets]
    return subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER, names, repr(fds), *command],
        pass_fds=fds,
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    )
