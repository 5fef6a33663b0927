"""Read standard input and write standard output without buffers and without blocking.

Other processes may share both ends. So this module does not set O_NONBLOCK on them.
"""

from __future__ import annotations

import os
import select
import socket
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STDIN, STDOUT = 0, 1
_CHUNK = 64 * 1024


def read_stdin() -> bytes:
    """Return the next chunk, after a wait if necessary; b"" at the end or without standard
    input.
    """
    try:
        return os.read(STDIN, _CHUNK)
    except OSError:  # a closed terminal, or no standard input at all
        return b""


def make_stdout_writer() -> Callable[[bytes | bytearray], int]:
    """Return a function that writes what fits without waiting, and returns the number of bytes.

    It raises BrokenPipeError if nobody reads any more.
    """
    kind = 0
    try:
        kind = stat.S_IFMT(os.fstat(STDOUT).st_mode)
        if kind == stat.S_IFIFO:
            # A second open (proc(5)) gives a description of our own, which may be non-blocking.
            path = f"/proc/self/fd/{STDOUT}"
            own = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            return lambda data: _unless_full(lambda: os.write(own, data))
    except OSError:  # no /proc, or no standard output at all
        pass
    if kind == stat.S_IFSOCK:  # Node gives sockets to the servers that it starts
        end = socket.socket(fileno=os.dup(STDOUT))
        end.settimeout(None)
        return lambda data: _unless_full(lambda: end.send(data, socket.MSG_DONTWAIT))
    return _write_if_ready


def _unless_full(write: Callable[[], int]) -> int:
    try:
        return write()
    except BlockingIOError:
        return 0


def _write_if_ready(data: bytes | bytearray) -> int:
    """Write at most PIPE_BUF bytes, which never blocks once there is room at all."""
    ready = select.poll()
    ready.register(STDOUT, select.POLLOUT)
    if not ready.poll(0):
        return 0
    try:
        return os.write(STDOUT, data[: select.PIPE_BUF])
    except BlockingIOError:  # the client set O_NONBLOCK on a shared terminal
        return 0
