"""The bridge's own standard input and output, as bytes and without buffers."""

from __future__ import annotations

import os
import select

STDIN, STDOUT = 0, 1
_CHUNK = 64 * 1024


def read_stdin() -> bytes:
    """What is there, waiting for something; nothing at the end, or where there is no stdin."""
    try:
        return os.read(STDIN, _CHUNK)
    except OSError:  # a terminal that was closed, or no stdin at all
        return b""


def write_stdout(data: bytes | bytearray) -> int:
    """Write as much as a pipe takes without blocking, once it is ready; return how much.

    Raises BrokenPipeError where nobody reads any more.
    """
    try:
        return os.write(STDOUT, data[: select.PIPE_BUF])
    except BlockingIOError:  # the client made our end non-blocking, which a shared pty allows
        ready = select.poll()
        ready.register(STDOUT, select.POLLOUT)
        ready.poll()
        return 0
