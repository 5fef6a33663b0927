"""Schedule lines fairly between peer processes: one line per process, in turn.

The event loop is fair to tasks, so it favors the process with the most connections. Here, all
connections of a process wait in one queue, and the queues take turns. If three processes flood the
daemon, a fourth process gets every fourth turn from its first line on.
"""

from __future__ import annotations

import asyncio
from collections import deque

_Queue = deque[asyncio.Future[None]]

# A command of a person takes about ten iterations of the event loop. If each of them contained a
# long turn, such as a list of thousands of roots, the command would wait for ten of them.
SHORT_TURN_S = 0.001
MOST_FREE_ITERATIONS = 10


class FairScheduler:
    """A scheduler with at most one turn per iteration of the event loop, so that other tasks run.

    After a turn that is longer than SHORT_TURN_S, as many iterations stay free as the turn was
    times longer, up to MOST_FREE_ITERATIONS.
    """

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}  # by process, the next one first
        self._is_taken = False
        self._began_s = 0.0
        self._free_iterations: int | None = None

    async def take(self, process: int) -> None:
        """Wait for the turn of `process`. Returns at once if this iteration is still free."""
        if not self._is_taken:
            self._take()
            return
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(process, deque()).append(turn)
        await turn

    def _take(self) -> None:
        loop = asyncio.get_running_loop()
        self._is_taken = True
        self._began_s = loop.time()
        self._free_iterations = None
        loop.call_soon(self._wake_next)

    def _wake_next(self) -> None:
        loop = asyncio.get_running_loop()
        if self._free_iterations is None:
            turns = int((loop.time() - self._began_s) / SHORT_TURN_S)
            self._free_iterations = min(turns, MOST_FREE_ITERATIONS)
        if self._free_iterations:
            self._free_iterations -= 1
            loop.call_soon(self._wake_next)
            return
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
