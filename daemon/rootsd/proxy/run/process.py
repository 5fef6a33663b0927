"""Run the server's process, with its pipes, and end it together with everything it started.

The server and all programs that it starts (as npx does) form one process group. The group's leader
is a small shell, the keeper. It waits for the end of a pipe that only this process holds. When
this process ends, for any reason, the pipe closes and the keeper kills the group. The keeper is
itself a member, so the number of the group cannot be reused before that.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Protocol

from rootsd.core.errors import RootsdError
from rootsd.processes.activity import is_busy
from rootsd.proxy.run.command import LaunchSpec

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PIPE_BYTES = 1 << 20
_CHUNK = 1 << 18
_SHELL = "/bin/sh"
_KEEPER = "trap '' HUP INT QUIT TERM USR1 USR2; read -r _ || kill -KILL 0"
# If the terminal is gone, it reads on: a server must not end because nobody reads its messages.
_PRINTER = "cat >&2 || exec cat >/dev/null"
_PRINTER_WAIT_S = 2.0  # a stopped terminal (Ctrl-S) takes nothing
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # the exit statuses of shells


class ServerStartFailed(RootsdError):
    """An error: the server cannot be started. `status` is the exit status that a shell would
    use.
    """

    status = NOT_EXECUTABLE


class ServerSandbox(Protocol):
    """What surrounds a server process: its environment, and the way into it."""

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the server's environment."""

    def enter(self) -> None:
        """Move this new process into the sandbox, before it calls execve."""

    def explain_missing(self, program: str) -> RootsdError:
        """Return the error for a program that is not found inside."""


class ServerProcess:
    """A running server, in one process group with everything that it starts.

    In a `sandbox`, the direct child is the waiter of `rootsd.wall.kernel.supervision`. It forwards
    signals, and its end is the end of the server and of everything that the server has started.
    """

    def __init__(self, launch: LaunchSpec, sandbox: ServerSandbox | None = None) -> None:
        """Start the server. Raise ServerStartFailed."""
        library = ctypes.CDLL(None) if sys.platform == "linux" else None
        parent = os.getpid()

        def die_with_parent() -> None:
            # The keeper cannot kill the server before it has joined the group.
            if library is not None:
                library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:  # the parent died before that call
                    os._exit(1)
            if sandbox is not None:
                sandbox.enter()

        environment = {**os.environ, **launch.environment}
        if launch.folder is not None:  # many programs believe PWD
            environment["PWD"] = launch.folder
            environment.pop("OLDPWD", None)
        self._is_walled = False  # until there is a waiter
        self._keeper = _start_keeper()
        # In a sandbox, a server must not read what the user types.
        self._printer = _start_printer() if sandbox is not None and os.isatty(2) else None
        try:
            self._process = subprocess.Popen(  # noqa: S603  # starting the user's command is the task
                launch.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if self._printer is None else self._printer.stdin,
                bufsize=0,
                cwd=launch.folder,
                env=environment if sandbox is None else sandbox.environment(environment),
                process_group=self._keeper.pid,
                preexec_fn=die_with_parent,  # noqa: PLW1509  # there is one thread
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._end_group()
            self._end_printer()
            if sandbox is not None and isinstance(error, FileNotFoundError):
                raise _not_inside(sandbox.explain_missing(launch.words[0])) from error
            raise _start_error(launch.words[0], error) from error
        self._is_walled = sandbox is not None
        if self._printer is not None and self._printer.stdin is not None:
            self._printer.stdin.close()  # so that it ends with the server
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        for pipe in (self._stdin, self._stdout):
            os.set_blocking(pipe.fileno(), False)
            enlarge_pipe(pipe.fileno())

    @property
    def stdin(self) -> int:
        """The descriptor to write to, or -1 if it is closed."""
        return -1 if self._stdin.closed else self._stdin.fileno()

    @property
    def stdout(self) -> int:
        """The descriptor to read from, or -1 if it has ended."""
        return -1 if self._stdout.closed else self._stdout.fileno()

    def write(self, data: bytearray) -> None:
        """Remove from `data` what the server accepts now, or everything if it reads no more."""
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
        """Return the server's output: None if there is nothing now, b"" at the end."""
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
        """Yield what the server wrote before its end, at most the size of its pipe.

        Another process may hold the pipe too, and could write forever.
        """
        left = _PIPE_BYTES
        while left > 0 and (data := self.read()):
            left -= len(data)
            yield data

    def close_stdin(self) -> None:
        """Tell the server that no more input comes."""
        self._stdin.close()

    def has_ended(self) -> bool:
        """Whether the server has ended. Its process stays a zombie until `reap`."""
        if self._process.returncode is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def is_busy(self) -> bool:
        """Whether the server or a program that it started uses the CPU; false if that is
        unknown.
        """
        return is_busy(self._process.pid)

    def send(self, number: int) -> None:
        """Send a signal to the server and to everything that it started."""
        # The group's number stays ours until the keeper is reaped.
        if self._keeper.returncode is None:
            # macOS raises PermissionError for a group of zombies.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._keeper.pid, number)
        # The waiter has its own session.
        if self._is_walled and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def reap(self) -> int:
        """Wait for the server and return its exit status, as shells count: 128 plus a fatal
        signal.

        Close its pipes, and kill what it has left behind.
        """
        status = self._process.wait()
        self._stdin.close()
        self._stdout.close()
        self._end_group()
        self._end_printer()
        return 128 - status if status < 0 else status

    def _end_group(self) -> None:
        self.send(signal.SIGKILL)
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()

    def _end_printer(self) -> None:
        """Wait until the last message of a server in a sandbox is on the terminal, if it takes
        it.
        """
        if self._printer is not None and self._printer.stdin is not None:
            self._printer.stdin.close()
            try:
                self._printer.wait(_PRINTER_WAIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._printer.pid, signal.SIGKILL)
                self._printer.wait()


def _start_printer() -> subprocess.Popen[bytes]:
    """Start a process that copies a pipe to the terminal, which is standard error."""
    try:
        return subprocess.Popen(  # noqa: S603  # a fixed command
            [_SHELL, "-c", _PRINTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the server, which may have more to say
        )
    except OSError as error:
        raise _start_error(_SHELL, error) from error


def _start_keeper() -> subprocess.Popen[bytes]:
    """Start the leader of a new process group. See the module's docstring."""
    try:
        return subprocess.Popen(  # noqa: S603  # a fixed command
            [_SHELL, "-c", _KEEPER, "rootsd-run-keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
    except OSError as error:
        raise _start_error(_SHELL, error) from error


def enlarge_pipe(pipe: int) -> None:
    """Enlarge a pipe, so that megabytes need fewer steps of the loop.

    The kernel may refuse. macOS enlarges pipes by itself.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _not_inside(explained: RootsdError) -> ServerStartFailed:
    found = ServerStartFailed(explained.message, explained.remedy)
    found.status = NOT_FOUND
    return found


def _start_error(
    word: str, error: OSError | ValueError | subprocess.SubprocessError
) -> ServerStartFailed:
    from rootsd.core.labels import safe_label  # noqa: PLC0415 - only needed for the message

    shown = safe_label(word.encode(errors="surrogateescape"), limit=None)
    why = error.strerror if isinstance(error, OSError) else str(error)
    found = ServerStartFailed(f"{shown} cannot be started: {why}", f"command -v {shown}")
    if isinstance(error, FileNotFoundError):
        found.status = NOT_FOUND
    return found
