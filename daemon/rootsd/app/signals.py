"""What signals ask of the daemon: SIGTERM and SIGINT its end, SIGHUP to read its configuration."""

from __future__ import annotations

import logging
import signal
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskStatus

from rootsd.core.errors import RootsdError

log = logging.getLogger(__name__)


async def heed_signals(
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
