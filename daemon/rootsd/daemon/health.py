"""Check the daemon's health, and report it and the status to the supervisor.

It is told that we live only after we have looked: the event loop turns, the store can be read,
and a connection to our own socket is accepted and ended. What fails, or does not come back, is
silence; the supervisor then puts a new daemon in our place.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable

import anyio
from anyio import to_thread

from rootsd.core.errors import RootsdError
from rootsd.service.notify import ServiceNotifier
from rootsd.state.ledger import Ledger
from rootsd.system.ipc.connect import connect

log = logging.getLogger(__name__)

# Somebody connects and disconnects in a flood: others are served, we may wait for a while.
_ACCEPT_PATIENCE_S = 5.0


class HealthReporter:
    """What is told for one daemon. `check` raises RootsdError or OSError where it is not well."""

    def __init__(
        self,
        notifier: ServiceNotifier,
        ledger: Ledger,
        *,
        clients: Callable[[], int],
        check: Callable[[], Awaitable[None]],
    ) -> None:
        self._notifier = notifier
        self._ledger = ledger
        self._clients = clients
        self._check = check
        self._told = ""

    async def keep_telling(self) -> None:
        """Tell as things change, and at each beat; without anybody to hear it, end at once."""
        if not self._notifier.is_heard:
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow)
            if self._notifier.beat is not None:
                group.start_soon(self._beat, self._notifier.beat)

    async def _follow(self) -> None:
        revision = -1
        while True:
            revision = (await self._ledger.wait_for_revision_past(revision)).revision
            self._tell_status()

    async def _beat(self, interval: float) -> None:
        while True:
            try:
                await self._check()
            except (RootsdError, OSError) as error:
                log.error("not well, so the watchdog is not fed: %s", error)  # noqa: TRY400 - an expected error needs no traceback
            else:
                self._notifier.alive()
            self._tell_status()  # what waits, and who is connected, changes no revision
            with anyio.move_on_after(interval):
                await anyio.Event().wait()

    def _tell_status(self) -> None:
        catalog = self._ledger.catalog
        waiting = sum(1 for project in catalog.projects.values() if catalog.is_pending(project))
        status = f"{len(catalog.roots)} published, {waiting} pending, {self._clients()} connected"
        if status != self._told:
            self._told = status
            self._notifier.status(status)


async def check_daemon(
    ledger: Ledger, read: Callable[[], object], socket: Callable[[], bytes]
) -> None:
    """Return when `read` has read from the store, in the ledger's turn, and the daemon has
    accepted and ended a connection to its socket at the path that `socket` gives. Raises
    RootsdError or OSError."""
    await ledger.run_exclusively(read)
    await to_thread.run_sync(_connect_and_leave, socket(), abandon_on_cancel=True)


def _connect_and_leave(path: bytes) -> None:
    with connect(path, patience=_ACCEPT_PATIENCE_S) as connection:
        connection.settimeout(_ACCEPT_PATIENCE_S)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
