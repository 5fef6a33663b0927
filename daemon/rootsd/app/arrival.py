"""The moment from which the daemon accepts: whoever launched it is told, if it is still wanted."""

from __future__ import annotations

from collections.abc import Callable

from rootsd.core.errors import DaemonUnreachable
from rootsd.host.service import record, starter


def tell_launcher(ready_fd: int | None, stop: Callable[[], None]) -> None:
    """Tell whoever launched this daemon; end it where `down` came meanwhile.

    `down` leaves its mark and then stops the daemon that accepts. This one accepts, and then
    looks for the mark: so one of the two notices the other.
    """
    if ready_fd is None:
        return
    try:
        record.ensure_allowed()
    except DaemonUnreachable as error:
        starter.say_failed(ready_fd, error)
        stop()
    else:
        starter.say_ready(ready_fd)
