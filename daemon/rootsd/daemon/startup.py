"""Report readiness to the launcher, and handle the signals that stop or reload the daemon.

SIGTERM and SIGINT stop the daemon. SIGHUP reloads its configuration.
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
    """Report readiness to the launcher, or stop if `rootsd down` ran meanwhile.

    `rootsd down` first leaves a mark, and then stops the daemon that accepts connections. This
    daemon first accepts connections, and then looks for the mark. So one of them notices the
    other.
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
    """Handle signals until cancelled. Once started, a signal no longer kills the process."""
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
