"""Starts the daemon in the background, and knows how it was last started and whether it may be.

`up` writes a recipe down; a bridge that finds no daemon follows it, since MCP clients strip the
environment from which the places would follow. `down` leaves a mark that forbids that. Both files
lie in a folder that is derived from the home folder alone, or from ROOTSD_DIR.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.host import folders
from rootsd.host.private import ensure_private_folder, open_private_file

LOG_NAME = "daemon.log"
RECIPE_NAME = "start.json"
STOPPED_NAME = "stopped"
LOCK_NAME = "starting"
PATIENCE = 60.0  # seconds until the daemon has to be ready: a cold disk, a large store
MAX_LOG = 1 << 20
MAX_WORD = 1 << 16
TAIL_LINES = 5
READY = b"ready"
ERROR = b"error "

# What decides where the places are and how times and names are written; nothing else is passed
# on, neither secrets nor what marks an agent's session.
_KEPT_VARIABLES = frozenset(
    ("HOME", "LANG", "LOGNAME", "ROOTSD_DIR", "TMPDIR", "TZ", "USER", "XDG_CONFIG_HOME",
     "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "DBUS_SESSION_BUS_ADDRESS")
)  # fmt: skip


class StartFailed(RootsdError):
    """The daemon did not come up; the message holds what it said, `code` why if it could tell."""

    def __init__(self, message: str, remedy: str, code: ErrorCode = ErrorCode.UNREACHABLE) -> None:
        super().__init__(message, remedy)
        self.code = code


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start the daemon. `log` takes its standard output and standard error."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: str


def start_folder() -> Path:
    """The folder of the recipe and the mark. Raises folders.NoPlace."""
    if override := folders.overriding_folder():
        return Path(os.fsdecode(override), "state")
    home = Path(os.fsdecode(folders.home_folder()))
    if sys.platform == "darwin":
        return home / "Library/Application Support/rootsd"
    return home / ".local/state/rootsd"


def recipe_here(log_folder: bytes) -> Recipe:
    """The recipe that starts the daemon of this installation, with the places of this process."""
    return Recipe(
        # -P: a folder `rootsd` in the working directory must not be taken for the package.
        command=(sys.executable, "-P", "-m", "rootsd", "daemon", "--detach"),
        environment={
            name: value
            for name, value in os.environ.items()
            if name in _KEPT_VARIABLES or name.startswith("LC_")
        },
        log=os.path.join(os.fsdecode(log_folder), LOG_NAME),
    )


def remember(recipe: Recipe) -> None:
    """Write the recipe down for bridges, and allow them to follow it. Raises RootsdError."""
    folder = start_folder()
    ensure_private_folder(folder)
    (folder / STOPPED_NAME).unlink(missing_ok=True)
    fresh = folder / f"{RECIPE_NAME}.new"
    with open(open_private_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as stream:
        json.dump(asdict(recipe), stream)
    fresh.replace(folder / RECIPE_NAME)


def recall() -> Recipe:
    """The recipe that a bridge may follow.

    Raises DaemonUnreachable where the user stopped the daemon, or none was ever started.
    """
    ensure_allowed()
    try:
        with open(open_private_file(start_folder() / RECIPE_NAME, os.O_RDONLY)) as stream:
            words = json.load(stream)
        return Recipe(tuple(words["command"]), dict(words["environment"]), str(words["log"]))
    except (RootsdError, ValueError, TypeError, KeyError) as error:
        raise DaemonUnreachable("the daemon is not running", "rootsd up") from error


def ensure_allowed() -> None:
    """Raise DaemonUnreachable where the user stopped the daemon: only `up` may start it again."""
    if (start_folder() / STOPPED_NAME).exists():
        raise DaemonUnreachable("the daemon was stopped by rootsd down", "rootsd up")


def forbid() -> None:
    """Note that the user stopped the daemon, so that no bridge starts it again."""
    folder = start_folder()
    ensure_private_folder(folder)
    os.close(open_private_file(folder / STOPPED_NAME))


@contextmanager
def one_at_a_time() -> Iterator[None]:
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


def launch(recipe: Recipe, patience: float = PATIENCE) -> None:
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


def say_ready(fd: int) -> None:
    """Tell whoever launched this daemon, over `fd`, that it can be asked; closes `fd`."""
    _say(fd, READY)


def say_failed(fd: int, error: RootsdError) -> None:
    """Tell whoever launched this daemon, over `fd`, why it does not come up; closes `fd`."""
    told = {"code": error.code.value, "message": error.message, "remedy": error.remedy}
    _say(fd, ERROR + json.dumps(told).encode("ascii"))


def _say(fd: int, word: bytes) -> None:
    # A bridge that was ended meanwhile is no reason for the daemon to end.
    with suppress(BrokenPipeError), open(fd, "wb", buffering=0) as pipe:
        pipe.write(word + b"\n")


class Departure:
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

    def wait(self, patience: float = PATIENCE) -> bool:
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
            told = json.loads(word[len(ERROR) :])
            return StartFailed(told["message"], told["remedy"], ErrorCode(told["code"]))
        except (ValueError, TypeError, KeyError):
            pass
    with open(log, "rb") as stream:
        stream.seek(log_start)
        lines = stream.read().decode("utf-8", "replace").splitlines()
    said = "\n".join(["the daemon ended before it was ready", *lines[-TAIL_LINES:]])
    return StartFailed(said, f"tail {log}")
