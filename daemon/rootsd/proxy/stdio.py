"""Read standard input and write standard output without buffers and without blocking.

The two ends may be shared with other processes, so they are not made non-blocking themselves.
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
    """What is there, waiting for something; nothing at the end, or where there is no stdin."""
    try:
        return os.read(STDIN, _CHUNK)
    except OSError:  # a terminal that was closed, or no stdin at all
        return b""


def make_stdout_writer() -> Callable[[bytes | bytearray], int]:
    """A function that writes as much as there is room for, and returns how much that was.

    It raises BrokenPipeError where nobody reads any more.
    """
    kind = 0
    try:
        kind = stat.S_IFMT(os.fstat(STDOUT).st_mode)
        if kind == stat.S_IFIFO:
            # Opened anew (proc(5)), so that only our own end does not block.
            path = f"/proc/self/fd/{STDOUT}"
            own = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            return lambda data: _unless_full(lambda: os.write(own, data))
    except OSError:  # no /proc, or no stdout at all
        pass
    if kind == stat.S_IFSOCK:  # as Node gives to the servers that it starts
        end = socket.socket(fileno=os.dup(STDOUT))
        end.settimeout(None)
        return lambda data: _unless_full(lambda: end.send(data, socket.MSG_DONTWAIT))
    return _write_a_little


def _unless_full(write: Callable[[], int]) -> int:
    try:
        return write()
    except BlockingIOError:
        return 0


def _write_a_little(data: bytes | bytearray) -> int:
    """As much as takes no waiting, once there is room at all."""
    ready = select.poll()
    ready.register(STDOUT, select.POLLOUT)
    if not ready.poll(0):
        return 0
    try:
        return os.write(STDOUT, data[: select.PIPE_BUF])
    except BlockingIOError:  # the client made our end non-blocking, which a shared pty allows
        return 0
