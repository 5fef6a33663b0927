"""Schedule lines fairly between peer processes: one line per process, in turn.

The event loop is fair to tasks, and so to whoever has the most connections and the longest
backlog of lines. Here all connections of a process wait in one row, and the processes' rows take
turns: beside three that flood us, a fourth has every fourth turn from its first line on.
"""

from __future__ import annotations

import asyncio
from collections import deque

_Queue = deque[asyncio.Future[None]]


class FairScheduler:
    """One turn in each iteration of the event loop; so what a turn sets off goes on meanwhile."""

    def __init__(self) -> None:
        self._rows: dict[int, _Queue] = {}  # of the processes that wait, the next one first
        self._is_taken = False

    async def take(self, process: int) -> None:
        """Return when `process` is due; at once where nobody had a turn in this iteration."""
        if not self._is_taken:
            self._take()
            return
        mine = asyncio.get_running_loop().create_future()
        self._rows.setdefault(process, deque()).append(mine)
        await mine

    def _take(self) -> None:
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._pass_on)

    def _pass_on(self) -> None:
        self._is_taken = False
        while self._rows and not self._is_taken:
            process = next(iter(self._rows))
            row = self._rows.pop(process)
            mine = row.popleft()
            if row:
                self._rows[process] = row  # behind all others
            if not mine.done():  # else its connection was ended while it waited
                mine.set_result(None)
                self._take()
