"""Queue changes that already took effect, and write them to the store in order.

The store takes one caller at a time, and all calls go through this queue. A change that only
narrows the published set, or that reports what is on the disk, does not wait for the store. An
approval does. Everything that waits is written with it, so no approval is stored before an earlier
change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import anyio
from anyio import to_thread

from rootsd.core.changes import AuditRecord, Change
from rootsd.core.errors import RootsdError

T = TypeVar("T")


class ChangeStore(Protocol):
    """The method of the store that the ledger uses. It is called in a worker thread."""

    def append(self, changes: Sequence[Change | AuditRecord], at: datetime) -> object:
        """Store `changes`, all or none. Raises RootsdError if the disk refuses."""


class WriteBehindQueue:
    """The queue of changes that wait for the disk. Nothing else writes to the store."""

    def __init__(self, saver: ChangeStore, now: Callable[[], datetime]) -> None:
        self._saver = saver
        self._now = now
        self._turn = anyio.Lock(fast_acquire=True)
        self._waiting: list[Change] = []
        self._saved = anyio.Event()
        self.is_refused = False
        """Whether the disk refused the last write."""

    def __len__(self) -> int:
        """Return the number of waiting changes."""
        return len(self._waiting)

    def put(self, changes: Sequence[Change]) -> None:
        """Add changes to the next write."""
        self._waiting.extend(changes)

    def next_save(self) -> anyio.Event:
        """Return an event that is set as soon as the disk has accepted another write."""
        return self._saved

    async def write(self, more: Sequence[Change | AuditRecord] = ()) -> None:
        """Write all waiting changes and `more` in one transaction.

        Raises the error of the store. The waiting changes then stay in the queue, and `more` is
        dropped. A caller that is canceled still waits for the write.
        """
        async with self._turn:
            with anyio.CancelScope(shield=True):
                await self._write([*self._waiting, *more], len(self._waiting))

    async def _write(self, batch: Sequence[Change | AuditRecord], waited: int) -> None:
        if not batch:
            return
        try:
            await to_thread.run_sync(self._saver.append, batch, self._now())
        except RootsdError:
            self.is_refused = True
            raise
        self.is_refused = False
        del self._waiting[:waited]  # more may have been added in the meantime
        self._saved.set()
        self._saved = anyio.Event()

    async def run_exclusively(self, work: Callable[[], T]) -> T:
        """Run `work`, which uses the store, in a worker thread while nothing is written."""
        async with self._turn:
            with anyio.CancelScope(shield=True):
                done = await to_thread.run_sync(work)
        return done
