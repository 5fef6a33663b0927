"""The accept loop: few connections per wake, caps in all and per process, no spinning.

asyncio's own server accepts a whole backlog at one wake and logs a traceback for each failure:
under a flood of connections, honest clients wait for seconds.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

import anyio
from anyio.abc import SocketStream, UNIXSocketStream

from rootsd.host.peer import Peer, peer_of

log = logging.getLogger(__name__)

Handler = Callable[[SocketStream, Peer], Awaitable[None]]

_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True)
class Caps:
    """How many connections there may be. Peers whose pid is hidden share one process's."""

    total: int = 1024
    per_process: int = 64
    per_wake: int = 32
    rest_s: float = 0.05


class Refused(StrEnum):
    """Why a connection was closed before anything was read from it."""

    FULL = "too many connections"
    PROCESS_FULL = "too many connections of one process"
    STRANGER = "another user"
    GONE = "gone at once"


class Acceptor:
    """Accepts on one listening socket and hands each connection to `handler`, in its own task.

    The handler owns the stream. What it raises is a bug and ends the loop.
    """

    def __init__(
        self, listening: socket.socket, handler: Handler, caps: Caps | None = None
    ) -> None:
        self.refused: Counter[Refused] = Counter()
        self._listening = listening
        self._handler = handler
        self._caps = caps or Caps()
        self._of_process: Counter[int] = Counter()
        self._one_left = anyio.Event()
        self._starved = False

    @property
    def open(self) -> int:
        """How many connections are being handled."""
        return self._of_process.total()

    async def serve(self) -> None:
        """Accept until cancelled; the connections end with it."""
        async with anyio.create_task_group() as connections:
            while True:
                await anyio.wait_readable(self._listening)
                for _ in range(self._caps.per_wake):
                    try:
                        connection, _address = self._listening.accept()
                    except OSError as error:
                        if error.errno in _OUT_OF_RESOURCES:
                            await self._rest(error)
                        # Else nobody waits any more, or one left before it was accepted.
                        break
                    self._starved = False
                    if peer := self._admit(connection):
                        connections.start_soon(self._handle, connection, peer)

    def _admit(self, connection: socket.socket) -> Peer | None:
        try:
            peer = peer_of(connection)
        except OSError:
            self._refuse(connection, Refused.GONE)
            return None
        if refusal := self._refusal(peer):
            self._refuse(connection, refusal)
            return None
        connection.settimeout(0)
        self._of_process[peer.pid] += 1
        return peer

    def _refuse(self, connection: socket.socket, reason: Refused) -> None:
        connection.close()
        self.refused[reason] += 1

    def _refusal(self, peer: Peer) -> Refused | None:
        if peer.uid != os.geteuid():
            return Refused.STRANGER
        if self.open >= self._caps.total:
            return Refused.FULL
        if self._of_process[peer.pid] >= self._caps.per_process:
            return Refused.PROCESS_FULL
        return None

    async def _handle(self, connection: socket.socket, peer: Peer) -> None:
        try:
            await self._handler(await UNIXSocketStream.from_socket(connection), peer)
        finally:
            connection.close()
            self._of_process[peer.pid] -= 1
            if not self._of_process[peer.pid]:
                del self._of_process[peer.pid]  # pids are many; only those connected count
            self._one_left.set()
            self._one_left = anyio.Event()

    async def _rest(self, error: OSError) -> None:
        """A connection that ends frees descriptors; else look again after a while, without
        spinning on a socket that stays readable."""
        if not self._starved:
            log.warning("no connection can be accepted: %s", error.strerror)
        self._starved = True
        with anyio.move_on_after(self._caps.rest_s):
            await self._one_left.wait()
