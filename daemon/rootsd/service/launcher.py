"""Start the daemon in the background, and wait until it is ready."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.parsing import parse_json
from rootsd.service.start_record import StartRecord, start_folder
from rootsd.system.private_files import ensure_private_folder, open_private_file

LOCK_NAME = "starting"
START_TIMEOUT_S = 60.0  # seconds until the daemon has to be ready: a cold disk, a large store
BUSY_TIMEOUT_S = 20.0  # seconds: a daemon that ends has its sockets closed and its locks held
MAX_LOG = 1 << 20
MAX_WORD = 1 << 16
TAIL_LINES = 5
READY = b"ready"
ERROR = b"error "


class StartFailed(RootsdError):
    """The daemon did not come up; the message holds what it said, `code` why if it could tell."""

    def __init__(self, message: str, remedy: str, code: ErrorCode = ErrorCode.UNREACHABLE) -> None:
        super().__init__(message, remedy)
        self.code = code


@contextmanager
def hold_start_lock() -> Iterator[None]:
    """Wait until nobody else starts the daemon, and hold others off. Raises NotPrivate.

    When a daemon is lost, all its bridges want the next one at the same moment.
    """
    folder = start_folder()
    ensure_private_folder(folder)
    lock = open_private_file(folder / LOCK_NAME)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)  # which gives the lock up, and no child has inherited it


class StartResult(Enum):
    """What `have_run` came upon."""

    RUNNING = auto()
    NOTHING = auto()


def start_unless_running(
    recipe: Callable[[], StartRecord], is_running: Callable[[], bool]
) -> StartResult:
    """Start a daemon where none is running, one process at a time; what was there before.

    `recipe` is asked for at each attempt: a `down` may come in between, which makes it raise.
    Raises what it raises, NotPrivate and StartFailed.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    with hold_start_lock():
        while not is_running():
            try:
                launch(recipe())
            except StartFailed as failure:
                if failure.code is not ErrorCode.BUSY or time.monotonic() > deadline:
                    raise
            else:
                return StartResult.NOTHING
    return StartResult.RUNNING


def launch(recipe: StartRecord, patience: float = START_TIMEOUT_S) -> None:
    """Start the daemon, detached from this process and its terminal, and return when it is ready.

    The daemon writes `ready` to the descriptor it is given, or `error` and a JSON object with
    code, message and remedy, or ends. Raises StartFailed with what it said.
    """
    log_fd, log_start = _open_log(Path(recipe.log))
    said_fd, say_fd = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - our own command, no shell
            [*recipe.command, "--ready-fd", str(say_fd)],
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            env=dict(recipe.environment),
            cwd="/",
            pass_fds=(say_fd,),
            start_new_session=True,
            umask=0o077,
        )
        os.close(say_fd)
        say_fd = -1
        word = _first_line(said_fd, patience)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartFailed(
            f"{recipe.command[0]} cannot be started: {reason}", "rootsd up"
        ) from error
    finally:
        for fd in (log_fd, said_fd, say_fd):
            if fd >= 0:
                os.close(fd)
    if word is None:
        process.kill()  # in vain where it has forked the daemon and ended
    process.wait()
    if word is None:
        raise StartFailed(f"the daemon is not ready after {patience:.0f} s", f"tail {recipe.log}")
    if word != READY:
        raise _why(word, recipe.log, log_start)


def report_ready(fd: int) -> None:
    """Tell whoever launched this daemon, over `fd`, that it can be asked; closes `fd`."""
    _say(fd, READY)


def report_failed(fd: int, error: RootsdError) -> None:
    """Tell whoever launched this daemon, over `fd`, why it does not come up; closes `fd`."""
    told = {"code": error.code.value, "message": error.message, "remedy": error.remedy}
    _say(fd, ERROR + json.dumps(told).encode("ascii"))


def _say(fd: int, word: bytes) -> None:
    # A bridge that was ended meanwhile is no reason for the daemon to end.
    with suppress(BrokenPipeError), open(fd, "wb", buffering=0) as pipe:
        pipe.write(word + b"\n")


class ExitWaiter:
    """Waits for the end of a process that is no child of ours, and cannot take another for it.

    Make it while the process certainly lives; afterwards its number may be given away.
    """

    def __init__(self, pid: int) -> None:
        self._queue: Any = None  # a select.kqueue, which macOS alone has
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

    def wait(self, patience: float = START_TIMEOUT_S) -> bool:
        """Whether the process is gone, now or within `patience` seconds."""
        if self._queue is not None:
            return bool(self._queue.control(None, 1, patience))
        return self._fd is None or bool(select.select([self._fd], [], [], patience)[0])

    def close(self) -> None:
        """Let go of what was held for waiting."""
        if self._queue is not None:
            self._queue.close()
        if self._fd is not None:
            os.close(self._fd)
        self._queue = self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _open_log(log: Path) -> tuple[int, int]:
    """The log for appending, and where its new part starts; a large one is put aside first."""
    ensure_private_folder(log.parent)
    if log.exists() and log.stat().st_size > MAX_LOG:
        log.replace(log.with_name(log.name + ".old"))
    fd = open_private_file(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return fd, os.fstat(fd).st_size


def _first_line(fd: int, patience: float) -> bytes | None:
    """What comes before a newline or the end; None where neither comes in time."""
    said = b""
    deadline = time.monotonic() + patience
    while b"\n" not in said and len(said) < MAX_WORD:
        left = max(deadline - time.monotonic(), 0.0)
        if not select.select([fd], [], [], left)[0]:
            return None
        chunk = os.read(fd, MAX_WORD)
        if not chunk:
            break
        said += chunk
    return said.partition(b"\n")[0]


def _why(word: bytes, log: str, log_start: int) -> StartFailed:
    """The error that the daemon told; else what it wrote into its log before it ended."""
    if word.startswith(ERROR):
        try:
            told = parse_json(word[len(ERROR) :])
            return StartFailed(told["message"], told["remedy"], ErrorCode(told["code"]))
        except (ValueError, TypeError, KeyError):
            pass
    with open(log, "rb") as stream:
        stream.seek(log_start)
        lines = stream.read().decode("utf-8", "replace").splitlines()
    said = "\n".join(["the daemon ended before it was ready", *lines[-TAIL_LINES:]])
    return StartFailed(said, f"tail {log}")
