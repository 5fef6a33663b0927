"""Run the installed `rootsd` of a test's user as forks of one process that has loaded it.

Most of what a command costs is to load its modules. The process imports those of a verb when the
verb first runs, so a first command costs as much as a program, and the next ones a fifth of it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

HANG_GUARD_S = 120

# Its arguments are the number of the channel, and the path that a user types. A fork has the
# command line of this program.
PROGRAM = """
import json, os, socket, sys, traceback
from importlib import import_module
from rootsd import __main__
from rootsd.cli import main as _

channel = socket.socket(fileno=int(sys.argv[1]))
while True:
    request, fds, _, _ = socket.recv_fds(channel, 1 << 16, 3)
    if not request:
        sys.exit()
    words, environment = json.loads(request)
    import_module(f"rootsd.cli.commands.{words[0]}")
    if pid := os.fork():
        for fd in fds:
            os.close(fd)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        channel.send(b"%d" % status)
        continue
    status = 1
    try:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.closerange(3, 100)
        os.environ.update(environment)
        sys.argv = [sys.argv[2], *words]
        status = __main__.main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
"""


class UserCommands:
    """The process that forks. It starts with the first command."""

    def __init__(self, python: Sequence[str], link: str) -> None:
        """Take the words that run the Python of the installation, and the path of `rootsd`."""
        self._start = [*python, "-c", PROGRAM]
        self._link = link
        self._running: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def run(
        self, words: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run `rootsd` with `words`, without input, and with more variables."""
        with (
            open(os.devnull, "rb") as nothing,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            _, channel = self._server()
            request = json.dumps([words, dict(environment)]).encode()
            socket.send_fds(channel, [request], [each.fileno() for each in (nothing, out, err)])
            status = channel.recv(16)
            assert status, "the process that forks has ended"
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(
                ["rootsd", *words], int(status), out.read().decode(), err.read().decode()
            )

    def close(self) -> None:
        """End the process. The next command starts another one, from what is installed then."""
        if self._running is not None:
            process, channel = self._running
            self._running = None
            channel.close()
            process.wait(HANG_GUARD_S)

    def _server(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._running is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.settimeout(HANG_GUARD_S)
            with theirs:
                words = [*self._start, str(theirs.fileno()), self._link]
                self._running = subprocess.Popen(words, pass_fds=[theirs.fileno()]), ours
        return self._running
