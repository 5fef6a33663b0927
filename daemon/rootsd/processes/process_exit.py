"""Detect that a process has ended, even if it is not our child.

`ExitWatch` follows a process by its pid. `ProcessHandle` follows the process that made a
connection. That process may hand the connection to another one and end. Then its pid may belong to
an unrelated process, so the handle is taken while the process still lives. Sources: pidfd_open(2),
kill(2).
"""

from __future__ import annotations

import os
import select
import socket
import sys
from contextlib import suppress

import anyio

_POLL_S = 2.0


class ExitWatch:
    """A watch on one process. It holds a descriptor, so `close` it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._fd: int | None = None
        self._has_gone = False
        if sys.platform == "linux":
            try:
                self._fd = os.pidfd_open(pid)
            except ProcessLookupError:
                self._has_gone = True
            except OSError:
                pass  # an old kernel: fall back to the pid

    def has_gone(self) -> bool:
        """Return whether the process has ended. Without pidfd, return whether its pid is free."""
        if not self._has_gone:
            self._has_gone = self._is_readable() if self._fd is not None else self._is_free()
        return self._has_gone

    async def ended(self) -> None:
        """Wait until the process has ended."""
        while not self.has_gone():
            if self._fd is not None:
                await anyio.wait_readable(self._fd)
            else:
                with anyio.move_on_after(_POLL_S):
                    await anyio.Event().wait()

    def close(self) -> None:
        """Release the descriptor. Call this only when no task waits."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd, self._has_gone = None, True

    def _is_readable(self) -> bool:
        assert self._fd is not None, "called only with a pidfd"
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(0))

    def _is_free(self) -> bool:
        with suppress(PermissionError):
            try:
                os.kill(self._pid, 0)
            except ProcessLookupError:
                return True
        return False


# asm-generic/socket.h, Linux 6.5; Python's socket module lacks the name.
_SO_PEERPIDFD = 77


class ProcessHandle:
    """A handle on the process that made a connection. It holds a descriptor."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.pid = pid
        self._ended = False
        self._fd = self._open(connection)

    def has_gone(self) -> bool:
        """Return whether the process has ended. Without pidfd, return whether its pid is free."""
        if self._ended:
            return True
        if self._fd is None:
            return self.pid > 0 and not _is_taken(self.pid)
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Release the descriptor."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self, connection: socket.socket) -> int | None:
        if sys.platform != "linux" or self.pid <= 0:
            return None
        try:
            return connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
        except OSError:
            pass  # an older kernel, or the process has been reaped
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
