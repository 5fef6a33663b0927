"""Talk to the daemon in threads: follow its changes, and send commands.

All waiting happens in threads, never in the event loop. `LiveLink.close` shuts all sockets down,
so that no thread outlives the screen.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rootsd.cli.answers.control_client import RESPONSE_TIMEOUT_S
from rootsd.core.errors import DaemonUnreachable
from rootsd.link import rpc
from rootsd.link.feed import Feed
from rootsd.wire.feed import FEED_VERSION, FeedEvent
from rootsd.wire.follow import FeedPart
from rootsd.wire.request import ControlRequest, encode_request


class LiveLink:
    """The connections of one screen to the daemon.

    `deliver` is called in a thread with each event, in order.
    """

    def __init__(self, deliver: Callable[[FeedEvent], object]) -> None:
        self._deliver = deliver
        self._closing = threading.Event()
        self._wake, self._woken = socket.socketpair()
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
        self._wake.close()
        if not self._thread.is_alive():
            self._woken.close()
        for channel in self._open.copy():
            # It may be lost already. The thread that owns it closes it.
            with suppress(OSError):
                channel.shutdown(socket.SHUT_RDWR)

    def _keep_following(self) -> None:
        feed = Feed({"version": FEED_VERSION, "part": FeedPart.SCREEN.value})
        with self._woken:
            while not self._closing.is_set():
                for event in feed.wait(wake=self._woken.fileno()):
                    self._deliver(event)
            feed.close()

    @contextmanager
    def _connection(self) -> Iterator[socket.socket]:
        with rpc.connect_control() as channel:
            self._open.add(channel)
            try:
                if self._closing.is_set():
                    raise DaemonUnreachable("the screen has ended")
                yield channel
            finally:
                self._open.discard(channel)
