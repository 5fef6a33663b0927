"""Report the daemon's state to the service manager: sd_notify(3), sd_watchdog_enabled(3).

Without NOTIFY_SOCKET in the environment, the functions here do nothing.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label

log = logging.getLogger(__name__)

# How long to wait while the service manager's queue is full. A longer wait would stall the event
# loop.
_SEND_TIMEOUT_S = 1.0
_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class ServiceNotifier:
    """The connection to the service manager, if there is one.

    `heartbeat_s` is the interval between heartbeats in seconds: half of the watchdog timeout, as
    sd_watchdog_enabled(3) advises. It is None without a watchdog.
    """

    def __init__(
        self, channel: socket.socket | None = None, heartbeat_s: float | None = None
    ) -> None:
        self._channel = channel
        self.heartbeat_s = heartbeat_s if channel is not None else None

    @property
    def is_connected(self) -> bool:
        """Whether a service manager listens."""
        return self._channel is not None

    def ready(self) -> None:
        """Report that the sockets accept connections."""
        self._send("READY=1")

    @contextmanager
    def reload(self) -> Iterator[None]:
        """Report that the configuration is being reloaded.

        The time in the message distinguishes this reload from an earlier one.
        """
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            yield
        finally:
            self.ready()

    def stopping(self) -> None:
        """Report that the daemon is stopping."""
        self._send("STOPPING=1")

    def status(self, sentence: str) -> None:
        """Set the status text that `systemctl status` shows."""
        self._send(f"STATUS={safe_label(sentence, limit=None)}")

    def alive(self) -> None:
        """Send one heartbeat."""
        self._send("WATCHDOG=1")

    def close(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, RootsdError):
            self.status(error.message)  # `systemctl status` then shows why the start failed
        self.close()

    def _send(self, message: str) -> None:
        if self._channel is None:
            return
        try:
            self._channel.send(message.encode("utf-8"))
        except OSError as error:
            # A lost report is no reason to stop serving clients.
            log.warning("cannot notify the service manager: %s", error.strerror or error)


def make_service_notifier() -> ServiceNotifier:
    """Connect to the service manager that the environment names.

    Removes the variables from the environment, because children must not use them.
    """
    address, interval, pid = (os.environ.pop(variable, "") for variable in _VARIABLES)
    channel = _connect(address)
    is_watched = interval.isdecimal() and int(interval) > 0 and pid in ("", str(os.getpid()))
    return ServiceNotifier(channel, int(interval) / 2_000_000 if is_watched else None)


def _connect(address: str) -> socket.socket | None:
    """Connect now, because the daemon cannot do so after it has confined itself."""
    if not address.startswith(("/", "@")):  # empty, or a vsock address for virtual machines
        return None
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    channel.settimeout(_SEND_TIMEOUT_S)
    raw = os.fsencode(address)
    try:
        channel.connect(b"\0" + raw[1:] if address.startswith("@") else raw)
    except OSError as error:
        channel.close()
        log.warning("cannot reach the service manager: %s", error.strerror or error)
        return None
    return channel
