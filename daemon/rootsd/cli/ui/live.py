"""Talk to the daemon in threads: follow its changes, and send commands.

All waiting happens in threads, never in the event loop. `LiveLink.close` shuts all sockets down,
so that no thread outlives the screen.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct

from rootsd.cli.answers.control_client import RESPONSE_TIMEOUT_S
from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.link import rpc
from rootsd.wire.follow import FollowRequest
from rootsd.wire.request import ControlRequest, encode_request

_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Before each attempt to connect again. The last one is repeated."""


class Connected(Struct, frozen=True):
    """The daemon answers, and sends everything once more."""


class Changed(Struct, frozen=True):
    """An update of the daemon: a `FollowUpdate`."""

    update: Mapping[str, Any]


class Away(Struct, frozen=True):
    """The daemon does not answer. The link tries again."""

    why: RootsdError


class Unusable(Struct, frozen=True):
    """The daemon is too old for the screen, or refuses to be followed. The link has ended."""

    why: RootsdError


LiveEvent = Connected | Changed | Away | Unusable


class LiveLink:
    """The connections of one screen to the daemon.

    `deliver` is called in a thread with each event, in order.
    """

    def __init__(self, deliver: Callable[[LiveEvent], object]) -> None:
        self._deliver = deliver
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._keep_following, name="follow", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def call(self, request: ControlRequest) -> dict[str, Any]:
        """Send a request and return the response. Call this in a thread. Raises RootsdError."""
        method, params = encode_request(request)
        with self._connection() as channel:
            channel.settimeout(RESPONSE_TIMEOUT_S)
            return rpc.ask(channel, method, params)

    def close(self) -> None:
        """End all connections, and with them the threads that wait for them."""
        self._closing.set()
        with self._lock:
            for channel in self._open:
                # It may be lost already. The thread that owns it closes it.
                with suppress(OSError):
                    channel.shutdown(socket.SHUT_RDWR)

    def _keep_following(self) -> None:
        losses = 0
        while not self._closing.is_set():
            try:
                for event in self._events():
                    losses = 0
                    self._deliver(event)
            except DaemonUnreachable as error:
                why = error
            except RootsdError as error:
                self._deliver(Unusable(error))
                return
            if self._closing.is_set():
                return
            self._deliver(Away(why))
            self._closing.wait(_PAUSES_S[min(losses, len(_PAUSES_S) - 1)])
            losses += 1

    def _events(self) -> Iterator[LiveEvent]:
        """Yield events until the connection is lost. Raises RootsdError."""
        method, params = encode_request(FollowRequest())
        with self._connection() as channel:
            channel.settimeout(None)  # the next change may be hours away
            messages = rpc.subscribe(channel, method, params)
            next(messages)
            yield Connected()
            yield from map(Changed, messages)

    @contextmanager
    def _connection(self) -> Iterator[socket.socket]:
        with rpc.connect_control() as channel:
            with self._lock:
                self._open.add(channel)
            try:
                if self._closing.is_set():
                    raise DaemonUnreachable("the screen has ended")
                yield channel
            finally:
                with self._lock:
                    self._open.discard(channel)
