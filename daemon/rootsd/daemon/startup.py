"""Report readiness to the launcher, and handle the signals that stop or reload the daemon.

The moment from which the daemon accepts: whoever launched it is told, if it is still wanted.

What signals ask of the daemon: SIGTERM and SIGINT its end, SIGHUP to read its configuration.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskStatus

from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.service import launcher, start_record


def notify_launcher(ready_fd: int | None, stop: Callable[[], None]) -> None:
    """Tell whoever launched this daemon; end it where `down` came meanwhile.

    `down` leaves its mark and then stops the daemon that accepts. This one accepts, and then
    looks for the mark: so one of the two notices the other.
    """
    if ready_fd is None:
        return
    try:
        start_record.ensure_start_allowed()
    except DaemonUnreachable as error:
        launcher.report_failed(ready_fd, error)
        stop()
    else:
        launcher.report_ready(ready_fd)


log = logging.getLogger(__name__)


async def handle_signals(
    stop: Callable[[], None],
    reload: Callable[[], Awaitable[None]],
    *,
    task_status: TaskStatus[None],
) -> None:
    """Do as signals ask, until cancelled; started once a signal cannot simply kill any more."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        task_status.started()
        async for number in received:
            if number is not signal.SIGHUP:
                stop()
                continue
            try:
                await reload()
            except RootsdError as error:
                log.error("%s", error)  # noqa: TRY400 - an expected error needs no traceback
