"""Runs of `rootsd` as processes of their own that start in a tenth of the time.

Most of what a command costs is to load Python and our modules. Here each worker of pytest keeps
one process that has loaded them all. It forks itself for each run, and the fork does what
`python -m rootsd WORDS...` does, with the environment and the descriptors of the run. A daemon
that such a run starts in the background is a fork, too. All other programs, such as bridges and
the daemons that they start, start as they do for a user. `Program` forks for `python -c TEXT`, and
TEXT can fork again and call `rootsd(WORDS, ENVIRONMENT)`, which does not return. A `Process` can
also be a fork of a smaller process, which loads less: each of its own forks costs less, too.

The daemons among them take this program for the one that starts a person's login. So the guard
knows a command that is a fork, and does not ask about pytest above it.

Each fork has the command line of this program. So a test that looks at command lines, that traces
a program, or that is about starting one, starts Python itself.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import walk_packages
from runpy import run_path
from typing import Any, NoReturn, Self, TextIO

import rootsd
from rootsd import __main__

HANG_GUARD_S = 60
_MAX_REQUEST = 1 << 17
_MAX_FDS = 8
_HIGH = 100  # above every number that a run asks for
_EVERYTHING = "_load_everything()"
_lock = threading.Lock()
_servers: dict[str, tuple[subprocess.Popen[bytes], socket.socket]] = {}
_Popen = subprocess.Popen


def run(
    words: Sequence[str],
    environment: Mapping[str, str],
    timeout_s: float = HANG_GUARD_S,
    folder: os.PathLike[str] = Path(),
) -> subprocess.CompletedProcess[str]:
    """Run `rootsd` with `words` in `folder` and without input, and return what it printed.

    Raises subprocess.TimeoutExpired after `timeout_s` seconds, once the run has been killed.
    """
    with (
        open(os.devnull, "rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        streams = {number: file.fileno() for number, file in enumerate((nothing, out, err))}
        status = start(words, environment, streams, folder).wait(timeout_s)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(
            list(words), status, out.read().decode(), err.read().decode()
        )


def start(
    words: Sequence[str],
    environment: Mapping[str, str],
    descriptors: Mapping[int, int],
    folder: os.PathLike[str],
) -> _Started:
    """Start `rootsd` with `words` in `folder`, with the `descriptors`.

    A relative folder is below the one in which the process that forks was started.
    """
    return _Started(_server(), words, environment, descriptors, within=os.fspath(folder))


def start_program(
    words: Sequence[str],
    environment: Mapping[str, str],
    descriptors: Mapping[int, int],
    folder: os.PathLike[str],
) -> _Started:
    """Do the same with any program."""
    text = f"import os; os.execvp({words[0]!r}, {list(words)!r})"
    return _Started(_server(), [], environment, descriptors, text=text, within=os.fspath(folder))


class _Started:
    """A run, seen from the process that asked for it."""

    def __init__(
        self,
        server: socket.socket,
        words: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Mapping[int, int],
        **more: object,
    ) -> None:
        """Let it have the `descriptors`, each at the number that is its key."""
        self._words = list(words)
        request = {"words": self._words, "environment": dict(environment)} | more
        request["descriptors"] = list(descriptors)
        self._replies, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(
                server, [json.dumps(request).encode()], [theirs.fileno(), *descriptors.values()]
            )
        self._lines = self._replies.makefile("r")
        self.pid = int(self._lines.readline())

    def wait(self, timeout_s: float | None = None) -> int:
        """Return the exit status, as `subprocess.Popen.wait` does."""
        self._replies.settimeout(timeout_s)
        with self._replies, self._lines:
            try:
                return int(self._lines.readline())
            except TimeoutError:
                os.kill(self.pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(self._words, timeout_s or 0) from None


class Process:
    """A fork of a process that ran `loads`, with the methods of `subprocess.Popen` for tests."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Mapping[int, int],
        loads: str = _EVERYTHING,
        **more: str,
    ) -> None:
        self._started = _Started(_server(loads), words, environment, descriptors, **more)
        self.pid = self._started.pid
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless `wait` has returned."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status. Raises subprocess.TimeoutExpired, once it has been killed."""
        if self.returncode is None:
            self.returncode = self._started.wait(timeout)
        return self.returncode


class Program(Process):
    """`python -c TEXT` as a fork.

    It has the standard input and output of this process, and a pipe for its errors.
    """

    def __init__(
        self, text: str, environment: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> None:
        reading, writing = os.pipe()
        descriptors = {0: 0, 1: 1, 2: writing} | {fd: fd for fd in pass_fds}
        super().__init__([], environment, descriptors, text=text)
        os.close(writing)
        self.stderr = os.fdopen(reading)

    def communicate(self, timeout: float | None = None) -> tuple[None, str]:
        """Return what it wrote to its errors until its end, which must fit into a pipe."""
        self.wait(timeout)
        if self.stderr.closed:
            return None, ""
        with self.stderr:
            return None, self.stderr.read()


class Piped(Process):
    """`rootsd WORDS...` as a fork in `folder`, with pipes. A context manager, as Popen is one."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        (stdin, to), (out, stdout), (errors, stderr) = os.pipe(), os.pipe(), os.pipe()
        theirs = {0: stdin, 1: stdout, 2: stderr}
        super().__init__(words, environment, theirs, folder=str(folder))
        for fd in theirs.values():
            os.close(fd)
        self.stdin, self.stdout, self.stderr = (
            os.fdopen(to, "wb"), os.fdopen(out, "rb"), os.fdopen(errors, "rb"),
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            with suppress(BrokenPipeError):
                stream.close()
        self.wait()


def _server(loads: str = _EVERYTHING) -> socket.socket:
    """Return the channel to the process that forks, which ends when the channel closes."""
    with _lock:
        if loads not in _servers:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                words = [sys.executable, "-P", __file__, str(theirs.fileno()), loads]
                _servers[loads] = subprocess.Popen(words, pass_fds=[theirs.fileno()]), ours
        return _servers[loads][1]


def close() -> None:
    """End the processes that fork."""
    with _lock:
        for process, channel in _servers.values():
            channel.close()
            process.wait()
        _servers.clear()


class _BackgroundStart(_Started):
    """Stands in for `subprocess.Popen` where a fork starts the daemon in the background."""

    server: socket.socket

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        pass_fds: Sequence[int],
        stdout: int,
        stderr: int,
        cwd: str,
        umask: int,
        **_: object,
    ) -> None:
        words = command[command.index("rootsd") + 1 :]
        with open(os.devnull, "rb") as nothing:
            descriptors = {0: nothing.fileno(), 1: stdout, 2: stderr} | {fd: fd for fd in pass_fds}
            super().__init__(self.server, words, env, descriptors, folder=cwd, umask=umask)

    def kill(self) -> None:
        """End the daemon that is not ready in time."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def _popen(command: Sequence[str], **options: Any) -> object:  # noqa: ANN401 - those of Popen
    is_daemon = ("rootsd", "daemon") in pairwise(command)
    return _BackgroundStart(command, **options) if is_daemon else _Popen(command, **options)


class _Server:
    """The process that has loaded everything, and forks."""

    def __init__(self, for_pytest: socket.socket) -> None:
        ours, self._for_forks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channels = (for_pytest, ours)
        self._woken, self._wakes = socket.socketpair()
        self._replies: dict[int, socket.socket] = {}
        for end in (self._woken, self._wakes):
            end.setblocking(False)

    def serve(self) -> tuple[dict[str, Any], list[int]] | None:
        """Fork for each request until pytest has gone. Return the request, in the fork only."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno())
        waits_for = [*self._channels, self._woken]
        while True:
            for ready in select.select(waits_for, [], [])[0]:
                if ready is self._woken:
                    self._woken.recv(4096)
                    self._report_ends()
                    continue
                request, fds, _, _ = socket.recv_fds(ready, _MAX_REQUEST, _MAX_FDS)
                if not request:
                    return None
                pid = os.fork()
                if not pid:
                    self._let_go()
                    return json.loads(request), fds[1:]
                self._replies[pid] = socket.socket(fileno=fds[0])
                self._replies[pid].sendall(b"%d\n" % pid)
                for fd in fds[1:]:
                    os.close(fd)

    def _report_ends(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with self._replies.pop(ended[0]) as reply, suppress(OSError):
                    reply.sendall(b"%d\n" % os.waitstatus_to_exitcode(ended[1]))

    def _let_go(self) -> None:
        """Undo in a fork what the server did for itself. `_set_up` closes the descriptors."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in (*self._channels, *self._replies.values(), self._woken, self._wakes):
            each.detach()
        _BackgroundStart.server = self._for_forks


def _set_up(request: Mapping[str, Any], fds: Sequence[int]) -> None:
    """Give this fork what a new process has that runs the requested words."""
    copies = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in fds]
    channel = fcntl.fcntl(_BackgroundStart.server.detach(), fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.closerange(3, _HIGH)
    for number, copy in zip(request["descriptors"], copies, strict=True):
        os.dup2(copy, number)
        os.close(copy)
    if "folder" in request:
        os.chdir(request["folder"])
    if "umask" in request:  # in the background
        os.close(channel)
        os.setsid()
        os.umask(request["umask"])
    else:
        _BackgroundStart.server = socket.socket(fileno=channel)
        os.chdir(request.get("within", "."))
    _take_on(request["words"], request["environment"])


def _take_on(words: Sequence[str], environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    # How Python buffers a stream depends on whether it is a terminal.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old: TextIO = getattr(sys, name)
        stream = os.fdopen(
            number,
            old.mode,
            1 if name == "stderr" else -1,
            old.encoding,
            old.errors,
            closefd=False,
        )
        setattr(sys, name, stream)
    sys.argv = [__main__.__file__, *words]


def _become_rootsd(words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Do in a fork of a `Program` what `rootsd` does, with the standard streams of the fork."""
    os.closerange(3, _HIGH)
    _take_on(words, environment)
    _end(__main__.main)


def _end(main: Callable[[], int]) -> NoReturn:
    """Call `main`, and exit with its status as Python does."""
    status = 1
    try:
        status = main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - Python prints all of them
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        # To take apart all that was loaded would cost more than most commands.
        os._exit(status)


def _main() -> int:
    """Load modules, and serve. In a fork, run `rootsd` or a text."""
    exec(sys.argv[2])  # noqa: S102 - what our own process wants to be loaded
    gc.freeze()
    run_path(str(Path(__file__).with_name("huge_pages.py")))["gather"]()
    work = _Server(socket.socket(fileno=int(sys.argv[1]))).serve()
    if work is None:
        return 0
    _set_up(*work)
    subprocess.Popen = _popen  # type: ignore[assignment, misc]
    _end(partial(_execute, work[0]["text"]) if "text" in work[0] else __main__.main)


def _load_everything() -> None:
    """Load all modules but the screen's."""
    for module in walk_packages(rootsd.__path__, "rootsd."):
        if module.name.startswith("rootsd.cli.ui."):
            continue  # what it needs is large, and no fork shows it
        with suppress(ImportError):  # of a module for another system
            import_module(module.name)
    run_path(str(Path(__file__).parent / "login_start" / "sitecustomize.py"))
    run_path(str(Path(__file__).parent / "unsynced.py"))["skip_syncs_if_wanted"]()
    # These are loaded only when they are needed, which each daemon does.
    import_module("tomllib")
    import anyio  # noqa: PLC0415 - a process that loads less does without
    from anyio.lowlevel import checkpoint  # noqa: PLC0415

    anyio.run(checkpoint)


def _execute(text: str) -> int:
    exec(text, {"__name__": "__main__", "rootsd": _become_rootsd})  # noqa: S102 - a test's own text
    return 0


if __name__ == "__main__":
    sys.exit(_main())
