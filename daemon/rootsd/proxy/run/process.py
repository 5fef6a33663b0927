"""Run the server's process, with its pipes, and end it together with everything it started.

A server and all that it starts, such as what npx runs, are one process group. It is led by a
keeper, a shell that waits for the end of a pipe which nobody but this process holds: when we end,
however that comes, it kills the group. As it is a member itself, the number of the group can be
no other's until then.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label
from rootsd.proxy.run.command import LaunchSpec
from rootsd.system.processes import is_busy

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PIPE_BYTES = 1 << 20
_CHUNK = 1 << 18
_SHELL = "/bin/sh"
_KEEPER = "trap '' HUP INT QUIT TERM USR1 USR2; read -r _ || kill -KILL 0"
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells have it


class ServerStartFailed(RootsdError):
    """The server cannot be started; `status` is what a shell would end with."""

    status = NOT_EXECUTABLE


class ServerProcess:
    """A server that runs, in a process group with what it starts, so that all ends with it."""

    def __init__(self, launch: LaunchSpec) -> None:
        """Start it. Raises CannotStart."""
        library = ctypes.CDLL(None) if sys.platform == "linux" else None
        parent = os.getpid()

        def die_with_parent() -> None:
            # As long as it is not in the group, the keeper cannot end it.
            if library is not None:
                library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:  # killed before that call
                    os._exit(1)

        self._keeper = _start_keeper()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # to start what was typed is the task
                launch.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, **launch.environment},
                process_group=self._keeper.pid,
                preexec_fn=die_with_parent,  # noqa: PLW1509  # there is one thread
            )
        except (OSError, ValueError) as error:
            self._end_group()
            raise _start_error(launch.words[0], error) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        for pipe in (self._stdin, self._stdout):
            os.set_blocking(pipe.fileno(), False)
            enlarge_pipe(pipe.fileno())

    @property
    def stdin(self) -> int:
        """The descriptor to write to; -1 when it is closed."""
        return -1 if self._stdin.closed else self._stdin.fileno()

    @property
    def stdout(self) -> int:
        """The descriptor to read from; -1 when it has ended."""
        return -1 if self._stdout.closed else self._stdout.fileno()

    def write(self, data: bytearray) -> None:
        """Take from `data` what the server takes at once; all of it where it takes no more."""
        if self._stdin.closed:
            data.clear()
            return
        try:
            while data:
                del data[: os.write(self._stdin.fileno(), data)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            data.clear()
            self._stdin.close()

    def read(self) -> bytes | None:
        """What it has said; None where there is nothing at the moment, nothing at the end."""
        if self._stdout.closed:
            return b""
        try:
            data = os.read(self._stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return None
        if not data:
            self._stdout.close()
        return data

    def drain(self) -> Iterator[bytes]:
        """Yield what it said before its end: no more than its pipe holds.

        Another process may have the pipe as well, and say more and more.
        """
        left = _PIPE_BYTES
        while left > 0 and (data := self.read()):
            left -= len(data)
            yield data

    def close_stdin(self) -> None:
        """Let it know that no more will come."""
        self._stdin.close()

    def has_ended(self) -> bool:
        """Whether it has ended; its process is kept until `reap`."""
        if self._process.returncode is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def is_busy(self) -> bool:
        """Whether it, or what it has started, has something to do; false where nothing tells."""
        return is_busy(self._process.pid)

    def send(self, number: int) -> None:
        """Send a signal to it, and to what it has started."""
        # Its number is no other's as long as the keeper is not waited for.
        if self._keeper.returncode is None:
            # macOS says "no permission" of a group of zombies.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._keeper.pid, number)

    def reap(self) -> int:
        """Its exit status, as shells have it: 128 and the signal's number for one that was killed.

        Waits for it. Its pipes are closed then, and what it has left behind is killed.
        """
        status = self._process.wait()
        self._stdin.close()
        self._stdout.close()
        self._end_group()
        return 128 - status if status < 0 else status

    def _end_group(self) -> None:
        self.send(signal.SIGKILL)
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()


def _start_keeper() -> subprocess.Popen[bytes]:
    """The leader of a new process group; see the module's text."""
    try:
        return subprocess.Popen(  # noqa: S603  # the words are ours
            [_SHELL, "-c", _KEEPER, "rootsd-run-keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
    except OSError as error:
        raise _start_error(_SHELL, error) from error


def enlarge_pipe(pipe: int) -> None:
    """Megabytes come in fewer turns; the kernel may refuse, and macOS does it by itself."""
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _start_error(word: str, error: OSError | ValueError) -> ServerStartFailed:
    shown = safe_label(word.encode(errors="surrogateescape"), limit=None)
    why = error.strerror if isinstance(error, OSError) else str(error)
    found = ServerStartFailed(f"{shown} cannot be started: {why}", f"command -v {shown}")
    if isinstance(error, FileNotFoundError):
        found.status = NOT_FOUND
    return found
