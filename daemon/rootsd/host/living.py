"""Tells when a process that is no child of ours has ended. Sources: pidfd_open(2), kill(2)."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress

import anyio

_POLL_S = 2.0


class Living:
    """One process, from now on. `close` it at the end: it holds a descriptor."""

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
                pass  # an old kernel: the pid alone tells

    def has_gone(self) -> bool:
        """Whether it has ended. Where the system has no better, whether no process has its pid."""
        if not self._has_gone:
            self._has_gone = self._is_readable() if self._fd is not None else self._is_free()
        return self._has_gone

    async def ended(self) -> None:
        """Wait until it has ended."""
        while not self.has_gone():
            if self._fd is not None:
                await anyio.wait_readable(self._fd)
            else:
                with anyio.move_on_after(_POLL_S):
                    await anyio.Event().wait()

    def close(self) -> None:
        """Give the descriptor back; nobody may wait then."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd, self._has_gone = None, True

    def _is_readable(self) -> bool:
        assert self._fd is not None, "asked only where there is one"
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
