"""A signal that wakes all tasks that wait for a change."""

from __future__ import annotations

import anyio


class ChangeSignal:
    """Counts changes. Waiting tasks wake after a change, once for several that come together."""

    def __init__(self) -> None:
        self.number = 0
        self._changed = anyio.Event()

    def notify(self) -> None:
        """Count a change, and wake the waiting tasks. Does not yield to other tasks."""
        self.number += 1
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_past(self, number: int) -> int:
        """Wait until there were more than `number` changes, and return how many there were."""
        while self.number <= number:
            await self._changed.wait()
        return self.number
