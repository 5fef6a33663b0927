"""Standard errors that take no messages: nobody reads them, or there is no room."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum

from support.bridges import environment
from support.run_proxy import RunProxyClient

ROOTSD = (sys.executable, "-m", "rootsd")
NEEDS_A_READER = (
    sys.executable,
    "-c",
    "import sys; from rootsd import __main__; from rootsd.proxy import stdio;"
    " stdio.install_lossy_errors = lambda: None; sys.exit(__main__.main())",
)
"""A `rootsd` with a planted fault: it fails if nobody reads its standard error."""


class UnreadErrors(Enum):
    """Why a standard error takes no message."""

    NO_READER = "its reader is gone"
    FULL_PIPE = "its pipe is full, and nobody reads it"
    FULL_DISK = "its disk is full"
    CLOSED = "it is closed"
    SOCKET = "its socket is closed at the other end"
    FULL_SOCKET = "its socket is full, and nobody reads it"
    READ_ONLY = "it is open for reading only"


@contextmanager
def unread(kind: UnreadErrors) -> Iterator[int | None]:
    """Return such a standard error for a child process; None for one that is closed."""
    with ExitStack() as stack:
        yield _opened(kind, stack)


def _opened(kind: UnreadErrors, stack: ExitStack) -> int | None:
    match kind:
        case UnreadErrors.CLOSED:
            return None
        case UnreadErrors.FULL_DISK:
            end = os.open("/dev/full", os.O_WRONLY)
        case UnreadErrors.READ_ONLY:
            end = os.open(os.devnull, os.O_RDONLY)
        case UnreadErrors.NO_READER | UnreadErrors.FULL_PIPE:
            reader, end = os.pipe()
            if kind is UnreadErrors.FULL_PIPE:
                stack.callback(os.close, reader)
                _fill(end)
            else:
                os.close(reader)
        case UnreadErrors.SOCKET | UnreadErrors.FULL_SOCKET:
            ours, theirs = socket.socketpair()
            end = theirs.detach()
            if kind is UnreadErrors.FULL_SOCKET:
                stack.enter_context(ours)
                _fill(end)
            else:
                ours.close()
    stack.callback(os.close, end)
    return end


def _fill(end: int) -> None:
    os.set_blocking(end, False)
    try:
        while True:
            os.write(end, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(end, True)


@contextmanager
def started_unread(kind: UnreadErrors, line: Sequence[str]) -> Iterator[RunProxyClient]:
    """Start `line` with such a standard error, with a client at its other pipes."""
    if kind is UnreadErrors.CLOSED:
        line = ("/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *line)
    pipe = subprocess.PIPE
    with (
        unread(kind) as end,
        subprocess.Popen(
            line, stdin=pipe, stdout=pipe, stderr=end, env=environment(), cwd="/"
        ) as process,
    ):
        try:
            yield RunProxyClient(process)
        finally:
            process.kill()
