"""Start the daemon and `rootsd sync` in the background, and wait until they are ready."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from typing import Any, Self

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.parsing import parse_json
from rootsd.files.private_files import ensure_private_folder, open_private_file
from rootsd.service.start_record import StartPlan, start_folder

LOCK_NAME = "starting"
START_TIMEOUT_S = 60.0  # enough for a cold disk and a large store
BUSY_TIMEOUT_S = 20.0  # a stopping daemon has closed its sockets but still holds its locks
MAX_LOG = 1 << 20
MAX_LINE = 1 << 16
TAIL_LINES = 5
READY = b"ready"
ERROR = b"error "


class StartFailed(RootsdError):
    """The daemon did not start. `code` is the reason if the daemon reported one."""

    def __init__(self, message: str, remedy: str, code: ErrorCode = ErrorCode.UNREACHABLE) -> None:
        super().__init__(message, remedy)
        self.code = code


@contextmanager
def hold_start_lock() -> Iterator[None]:
    """Hold the lock that lets one process at a time start the daemon. Raises NotPrivate.

    When a daemon dies, all its bridges try to start the next one at the same moment.
    """
    folder = start_folder()
    ensure_private_folder(folder)
    lock = open_private_file(folder / LOCK_NAME)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)  # releases the lock, since no child inherits the descriptor


class StartResult(Enum):
    """Whether `start_unless_running` found a running daemon."""

    RUNNING = auto()
    STARTED = auto()


def start_unless_running(
    plan: Callable[[], StartPlan], is_running: Callable[[], bool]
) -> StartResult:
    """Start a daemon unless one is running. Only one process at a time does this.

    `plan` is called before each attempt, so that it can raise after a `rootsd down` in between.
    Raises what `plan` raises, NotPrivate, and StartFailed.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    with hold_start_lock():
        while not is_running():
            try:
                launch(plan())
            except StartFailed as failure:
                if failure.code is not ErrorCode.BUSY or time.monotonic() > deadline:
                    raise
            else:
                return StartResult.STARTED
    return StartResult.RUNNING


def launch(plan: StartPlan, timeout_s: float = START_TIMEOUT_S) -> None:
    """Start the daemon, detached from this process and its terminal, and wait until it is ready.

    The daemon inherits one end of a pipe. It writes `ready` to it, or `error` and a JSON object
    with code, message, and remedy. Or it exits. Raises StartFailed with the daemon's message.
    """
    log_start = _rotate(plan.log)
    process, report = _spawn_and_wait(plan.daemon, plan.environment, plan.log, timeout_s)
    if report is None:
        process.kill()  # has no effect if it has already forked the daemon and exited
    process.wait()
    if report is None:
        raise StartFailed(f"the daemon is not ready after {timeout_s:.0f} s", f"tail {plan.log}")
    if report != READY:
        raise _start_error(report, plan.log, log_start)


def launch_sync(plan: StartPlan) -> None:
    """Start `rootsd sync`, detached from this process and its terminal, and wait until it runs.

    Raises StartFailed if it cannot be started. If it fails later, it says so in its log.
    """
    _rotate(plan.sync_log)
    _spawn_and_wait(plan.sync, plan.environment, plan.sync_log, START_TIMEOUT_S)


def _spawn_and_wait(
    command: Sequence[str], environment: Mapping[str, str], log: Path, timeout_s: float
) -> tuple[subprocess.Popen[bytes], bytes | None]:
    """Start a program, and return it with its report; the report is None if none came in time."""
    ready_fd, write_fd = os.pipe()
    try:
        try:
            words = [*command, "--ready-fd", str(write_fd)]
            process = _spawn(words, environment, log, pass_fds=(write_fd,))
        finally:
            os.close(write_fd)
        return process, _first_line(ready_fd, timeout_s)
    finally:
        os.close(ready_fd)


def _spawn(
    command: Sequence[str], environment: Mapping[str, str], log: Path, pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    log_fd = open_private_file(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        return subprocess.Popen(  # noqa: S603 - our own command, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            env=dict(environment),
            cwd="/",
            pass_fds=pass_fds,
            start_new_session=True,
            umask=0o077,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartFailed(f"{command[0]} cannot be started: {reason}", "rootsd up") from error
    finally:
        os.close(log_fd)


def report_ready(fd: int) -> None:
    """Report to the launcher, on `fd`, that this daemon accepts connections. Closes `fd`."""
    _report(fd, READY)


def report_failed(fd: int, error: RootsdError) -> None:
    """Report to the launcher, on `fd`, why this daemon does not start. Closes `fd`."""
    failure = {"code": error.code.value, "message": error.message, "remedy": error.remedy}
    _report(fd, ERROR + json.dumps(failure).encode("ascii"))


def _report(fd: int, report: bytes) -> None:
    # The launcher may have been killed. The daemon goes on without it.
    with suppress(BrokenPipeError), open(fd, "wb", buffering=0) as pipe:
        pipe.write(report + b"\n")


class ExitWaiter:
    """A wait for the exit of a process that is not our child, safe against reuse of its pid.

    Create it while the process is known to be alive.
    """

    def __init__(self, pid: int) -> None:
        self._queue: Any = None  # a select.kqueue, which only macOS has
        self._fd: int | None = None
        try:
            if sys.platform == "darwin":
                self._queue = select.kqueue()
                event = select.kevent(
                    pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT
                )
                self._queue.control([event], 0)
            else:
                self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self.close()

    def wait(self, timeout_s: float = START_TIMEOUT_S) -> bool:
        """Wait up to `timeout_s` seconds, and return whether the process is gone."""
        if self._queue is not None:
            return bool(self._queue.control(None, 1, timeout_s))
        return self._fd is None or bool(select.select([self._fd], [], [], timeout_s)[0])

    def close(self) -> None:
        """Release the descriptor."""
        if self._queue is not None:
            self._queue.close()
        if self._fd is not None:
            os.close(self._fd)
        self._queue = self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _rotate(log: Path) -> int:
    """Make the folder of the log, move a large log aside, and return the size of the log."""
    ensure_private_folder(log.parent)
    size = log.stat().st_size if log.exists() else 0
    if size > MAX_LOG:
        log.replace(log.with_name(log.name + ".old"))
        size = 0
    return size


def _first_line(fd: int, timeout_s: float) -> bytes | None:
    """Read up to a newline or the end. Return None if neither comes in time."""
    received = b""
    deadline = time.monotonic() + timeout_s
    while b"\n" not in received and len(received) < MAX_LINE:
        left = max(deadline - time.monotonic(), 0.0)
        if not select.select([fd], [], [], left)[0]:
            return None
        chunk = os.read(fd, MAX_LINE)
        if not chunk:
            break
        received += chunk
    return received.partition(b"\n")[0]


def _start_error(report: bytes, log: Path, log_start: int) -> StartFailed:
    """Return the error that the daemon reported, or one with the last lines of its log."""
    if report.startswith(ERROR):
        try:
            reported = parse_json(report[len(ERROR) :])
            return StartFailed(
                reported["message"], reported["remedy"], ErrorCode(reported["code"])
            )
        except (ValueError, TypeError, KeyError):
            pass
    with open(log, "rb") as stream:
        stream.seek(log_start)
        lines = stream.read().decode("utf-8", "replace").splitlines()
    message = "\n".join(["the daemon ended before it was ready", *lines[-TAIL_LINES:]])
    return StartFailed(message, f"tail {log}")
