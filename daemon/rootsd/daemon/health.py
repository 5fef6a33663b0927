"""Check the health of the daemon and its helper, and report it and the status to the supervisor.

The daemon sends a heartbeat only after a check: the event loop runs, the store can be read, and a
connection to its own socket is accepted and closed. If the check fails or hangs, the daemon sends
nothing, and the supervisor starts a new one.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Awaitable, Callable

import anyio
from anyio import to_thread

from rootsd.core.catalog import Count
from rootsd.core.errors import RootsdError
from rootsd.helper.client import Helper, NoAnswer
from rootsd.helper.processes import ProcessQuestion, ask_processes
from rootsd.link.connect import connect
from rootsd.service.notify import ServiceNotifier
from rootsd.state.ledger import Ledger

log = logging.getLogger(__name__)

# In a flood of connections, others are served first, and this check waits.
_ACCEPT_TIMEOUT_S = 5.0
_WITHOUT_HELPER = (
    "rootsd recognizes a finished copy only by quiet periods, and refuses every command that "
    "decides something, because it cannot see the caller; try: rootsd down && rootsd up"
)


class HealthReporter:
    """Reports the health of the daemon. `check` raises RootsdError or OSError if it fails."""

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
        self._last_status = ""

    async def keep_reporting(self) -> None:
        """Report each change and each heartbeat. Return at once if no supervisor listens."""
        if not self._notifier.is_connected:
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow)
            if self._notifier.heartbeat_s is not None:
                group.start_soon(self._beat, self._notifier.heartbeat_s)

    async def _follow(self) -> None:
        revision = -1
        while True:
            revision = (await self._ledger.wait_for_revision_past(revision)).revision
            self._report_status()

    async def _beat(self, interval: float) -> None:
        while True:
            try:
                await self._check()
            except (RootsdError, OSError) as error:
                log.error("unhealthy, so the supervisor gets no heartbeat: %s", error)  # noqa: TRY400 - an expected error needs no traceback
            else:
                self._notifier.alive()
            self._report_status()  # pending projects and connections change no revision
            with anyio.move_on_after(interval):
                await anyio.Event().wait()

    def _report_status(self) -> None:
        catalog = self._ledger.catalog
        waiting = catalog.counts[Count.PENDING]
        status = f"{len(catalog.roots)} published, {waiting} pending, {self._clients()} connected"
        if status != self._last_status:
            self._last_status = status
            self._notifier.status(status)


async def check_daemon(
    ledger: Ledger, read: Callable[[], object], socket: Callable[[], bytes]
) -> None:
    """Check that the store can be read and that the daemon accepts connections.

    `read` reads the store while nobody else uses it. `socket` returns the path of the control
    socket. Raises RootsdError or OSError.
    """
    await ledger.run_exclusively(read)
    await to_thread.run_sync(_connect_and_leave, socket(), abandon_on_cancel=True)


def _connect_and_leave(path: bytes) -> None:
    with connect(path, timeout_s=_ACCEPT_TIMEOUT_S) as connection:
        connection.settimeout(_ACCEPT_TIMEOUT_S)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass


class HelperProbe:
    """Finds out whether the helper answers.

    A helper that a signal has stopped is still there. So ask it something, unless it has just
    answered somebody. If the answer does not come, the question goes on in its thread, and has the
    helper replaced at its deadline.
    """

    def __init__(self, helper: Helper, patience_s: float = 1.0) -> None:
        self._helper = helper
        self._patience_s = patience_s
        self._is_asking = False

    async def problems(self) -> list[str]:
        """Return the consequences of a helper that does not answer, or nothing if it does."""
        trouble = self._helper.problem()
        if trouble is None and not (self._helper.has_just_answered() or await self._answers()):
            trouble = "the helper process does not answer, and is being replaced"
        return [f"{trouble}: {_WITHOUT_HELPER}"] if trouble else []

    async def _answers(self) -> bool:
        if self._is_asking:
            return False
        self._is_asking = True
        with anyio.move_on_after(self._patience_s):
            return await to_thread.run_sync(self._ask, abandon_on_cancel=True)
        return False

    def _ask(self) -> bool:
        try:
            ask_processes(self._helper, ProcessQuestion((os.getpid(),)))
        except NoAnswer:
            return False
        finally:
            self._is_asking = False
        return True
