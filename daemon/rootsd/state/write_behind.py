"""Queue changes that already took effect, and write them to the store in order.

The store has one caller at a time, and that is here. Whoever only narrows, or tells what the disk
shows, need not wait for it; whoever approves has all that waits written first, so that no approval
overtakes what was there before it.
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
    """The store, as the ledger needs it; called in a worker thread."""

    def append(self, changes: Sequence[Change | AuditRecord], at: datetime) -> object:
        """Make `changes` durable, all or none. Raises RootsdError where the disk refuses."""


class WriteBehindQueue:
    """The changes that wait for the disk, and the way to it."""

    def __init__(self, saver: ChangeStore, now: Callable[[], datetime]) -> None:
        self._saver = saver
        self._now = now
        self._turn = anyio.Lock(fast_acquire=True)
        self._waiting: list[Change] = []
        self._saved = anyio.Event()
        self.is_refused = False
        """Whether the disk refused the last time that it was asked."""

    def __len__(self) -> int:
        """How many changes wait."""
        return len(self._waiting)

    def put(self, changes: Sequence[Change]) -> None:
        """Have these written with the next that is."""
        self._waiting.extend(changes)

    def next_save(self) -> anyio.Event:
        """What is set as soon as the disk has taken something more."""
        return self._saved

    async def write(self, more: Sequence[Change | AuditRecord] = ()) -> None:
        """Write all that waits, and `more` with it in one transaction. Raises what the store
        raised: then all goes on to wait but `more`. Who is cancelled meanwhile waits for it."""
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
        del self._waiting[:waited]  # more may have come meanwhile
        self._saved.set()
        self._saved = anyio.Event()

    async def run_exclusively(self, work: Callable[[], T]) -> T:
        """Run `work`, which uses the store, in a worker thread while nothing is written."""
        async with self._turn:
            with anyio.CancelScope(shield=True):
                done = await to_thread.run_sync(work)
        return done
