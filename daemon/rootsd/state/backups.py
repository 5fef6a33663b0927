"""Make a verified backup of the decisions every day.

A backup has two parts. `begin_backup` copies the database, and decisions wait until it has.
`finish_backup` verifies the copy. That takes ten times as long, and decisions do not wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import anyio
from anyio import to_thread

from rootsd.core.errors import RootsdError
from rootsd.core.history import ChainHead
from rootsd.state.ledger import Ledger

log = logging.getLogger(__name__)

# Timers stop while a machine sleeps. With a check every few hours, a laptop still gets a backup a
# day.
MAX_PAUSE = timedelta(hours=6)
RETRY_PAUSE = timedelta(hours=1)


class BackupStore(Protocol):
    """The methods of the store that the scheduler uses. It calls them in a worker thread."""

    def backup_due_in(self, at: datetime) -> timedelta:
        """Return how long after `at` the next backup is due. Raises RootsdError."""

    def begin_backup(self) -> ChainHead | None:
        """Copy the database, or return None if nothing was decided yet. Raises RootsdError."""

    def finish_backup(self, head: ChainHead, at: datetime) -> Path:
        """Verify the copy and keep it. Does not use the database. Raises RootsdError."""


async def pause(length: timedelta) -> None:
    """Wait for `length`."""
    with anyio.move_on_after(length.total_seconds()):
        await anyio.Event().wait()


class BackupScheduler:
    """Makes the backups of one store; `ledger` is its writer."""

    def __init__(self, store: BackupStore, ledger: Ledger, now: Callable[[], datetime]) -> None:
        self._store = store
        self._ledger = ledger
        self._now = now
        self._trouble = ""

    def degraded(self) -> list[str]:
        """Return what is wrong with the last backup, or an empty list."""
        return [self._trouble] if self._trouble else []

    async def keep(self, pause: Callable[[timedelta], Awaitable[None]] = pause) -> None:
        """Make each backup when it is due, for as long as the daemon runs."""
        while True:
            try:
                length = await self._back_up_if_due()
            except RootsdError as error:
                self._trouble = f"the decisions could not be backed up: {error}"
                log.warning("%s", self._trouble)
                length = RETRY_PAUSE
            else:
                self._trouble = ""
            await pause(length)

    async def _back_up_if_due(self) -> timedelta:
        """Make a backup if one is due, and return how long to wait for the next check."""
        due_in = await to_thread.run_sync(self._store.backup_due_in, self._now())
        if due_in <= timedelta(0):
            # Decisions wait only for this copy, and not for its verification below.
            head = await self._ledger.run_exclusively(self._store.begin_backup)
            if head is None:
                return MAX_PAUSE
            made = await to_thread.run_sync(self._store.finish_backup, head, self._now())
            log.info("the decisions are backed up in %s", made)
            due_in = await to_thread.run_sync(self._store.backup_due_in, self._now())
        return min(max(due_in, timedelta(minutes=1)), MAX_PAUSE)
