"""Report the daemon's state to the service manager: sd_notify(3), sd_watchdog_enabled(3).

Without NOTIFY_SOCKET in the environment nobody is told anything, and nothing is looked for.
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

_PATIENCE_S = 1.0  # the supervisor's queue is full; longer would hold the event loop up
_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class ServiceNotifier:
    """The line to the supervisor, if there is one.

    `beat` is how often, in seconds, it wants to hear that we live: half of what it waits, as
    sd_watchdog_enabled(3) advises; None where it has no watchdog on us.
    """

    def __init__(self, channel: socket.socket | None = None, beat: float | None = None) -> None:
        self._channel = channel
        self.beat = beat if channel is not None else None

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return self._channel is not None

    def ready(self) -> None:
        """The sockets accept."""
        self._tell("READY=1")

    @contextmanager
    def reload(self) -> Iterator[None]:
        """The configuration is read meanwhile. The moment is how the supervisor tells this reload
        from the one before."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            yield
        finally:
            self.ready()

    def stopping(self) -> None:
        """The end has begun."""
        self._tell("STOPPING=1")

    def status(self, sentence: str) -> None:
        """What `systemctl status` shows."""
        self._tell(f"STATUS={safe_label(sentence, limit=None)}")

    def alive(self) -> None:
        """One beat."""
        self._tell("WATCHDOG=1")

    def close(self) -> None:
        """Say nothing more."""
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
            self.status(error.message)  # where whoever started us can read why there is nobody
        self.close()

    def _tell(self, message: str) -> None:
        if self._channel is None:
            return
        try:
            self._channel.send(message.encode("utf-8"))
        except OSError as error:
            # It decides what silence means; the daemon has clients to serve.
            log.warning("the supervisor cannot be told: %s", error.strerror or error)


def make_service_notifier() -> ServiceNotifier:
    """The line that the environment names. Takes its variables out, as no child is meant."""
    address, interval, pid = (os.environ.pop(variable, "") for variable in _VARIABLES)
    channel = _connected(address)
    is_watched = interval.isdecimal() and int(interval) > 0 and pid in ("", str(os.getpid()))
    return ServiceNotifier(channel, int(interval) / 2_000_000 if is_watched else None)


def _connected(address: str) -> socket.socket | None:
    """Connected once and for all: later the daemon may have confined itself."""
    if not address.startswith(("/", "@")):  # nothing, or a kind for virtual machines
        return None
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    channel.settimeout(_PATIENCE_S)
    raw = os.fsencode(address)
    try:
        channel.connect(b"\0" + raw[1:] if address.startswith("@") else raw)
    except OSError as error:
        channel.close()
        log.warning("the supervisor cannot be reached: %s", error.strerror or error)
        return None
    return channel
