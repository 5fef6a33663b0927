"""Schedule lines fairly between peer processes: one line per process, in turn.

The event loop is fair to tasks, so it favors the process with the most connections. Here, all
connections of a process wait in one queue, and the queues take turns. If three processes flood the
daemon, a fourth process gets every fourth turn from its first line on.
"""

from __future__ import annotations

import asyncio
from collections import deque

_Queue = deque[asyncio.Future[None]]


class FairScheduler:
    """A scheduler with one turn per iteration of the event loop, so that other tasks can run."""

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}  # by process, the next one first
        self._is_taken = False

    async def take(self, process: int) -> None:
        """Wait for the turn of `process`. Returns at once if this iteration is still free."""
        if not self._is_taken:
            self._take()
            return
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(process, deque()).append(turn)
        await turn

    def _take(self) -> None:
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._wake_next)

    def _wake_next(self) -> None:
        self._is_taken = False
        while self._queues and not self._is_taken:
            process = next(iter(self._queues))
            queue = self._queues.pop(process)
            turn = queue.popleft()
            if queue:
                self._queues[process] = queue  # behind all others
            if not turn.done():  # otherwise its connection ended while it waited
                turn.set_result(None)
                self._take()
