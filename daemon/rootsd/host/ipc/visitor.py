"""The process at the other end of a connection, for as long as that is open: is it still there?

A connection can be handed on. Who made it can be told by the kernel alone, and only while that
process lives: a pid may be another's by the time that anybody looks it up.
"""

from __future__ import annotations

import os
import select
import socket
import sys

# asm-generic/socket.h, Linux 6.5; Python's socket module lacks the name.
_SO_PEERPIDFD = 77


class Visitor:
    """A peer and whether it lives. A context manager: it holds a descriptor."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.pid = pid
        self._ended = False
        self._fd = self._open(connection)

    def has_gone(self) -> bool:
        """Whether it has ended, for sure; where the system has no better, whether no process has
        its pid."""
        if self._ended:
            return True
        if self._fd is None:
            return self.pid > 0 and not _is_taken(self.pid)
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self, connection: socket.socket) -> int | None:
        if sys.platform != "linux" or self.pid <= 0:
            return None
        try:
            return connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
        except OSError:
            pass  # an older kernel; or the process was waited for already
        try:
            return os.pidfd_open(self.pid)
        except ProcessLookupError:
            self._ended = True
        except OSError:
            pass
        return None


def _is_taken(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
