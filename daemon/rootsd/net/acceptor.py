"""Accept connections fairly, with limits in total and per process.

asyncio's own server accepts a whole backlog in one turn of the event loop, and logs a traceback
for each failure. Under a flood of connections, honest clients would wait for seconds.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial

import anyio
from anyio.abc import SocketStream, TaskGroup, UNIXSocketStream
from msgspec import Struct

from rootsd.net.unix_socket import Peer, peer_of

log = logging.getLogger(__name__)

MarkActive = Callable[[], None]
ConnectionHandler = Callable[[SocketStream, Peer, MarkActive], Awaitable[None]]

_PEEK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class AcceptLimits(Struct, frozen=True):
    """The limits on connections. Peers with a hidden pid share the limit of one process.

    When few of `total` are left, only processes without a connection get one. When none is left,
    the oldest connection that has sent nothing for `silent_s` seconds is closed. One turn of the
    event loop accepts up to `per_wake` connections and refuses up to `refused_per_wake`. The
    second limit is higher, because a refusal is much cheaper, and honest clients wait behind the
    refused ones. When this process runs out of descriptors, the acceptor pauses for up to
    `pause_s` seconds.
    """

    total: int = 1024
    per_process: int = 64
    per_wake: int = 32
    refused_per_wake: int = 128
    pause_s: float = 0.05
    silent_s: float = 2.0

    @property
    def kept_for_others(self) -> int:
        """How many of `total` are reserved for the first connection of a process."""
        return self.total // 16


class RefusalReason(StrEnum):
    """Why the daemon closed a connection."""

    FULL = "too many in all"
    PROCESS_FULL = "too many of one process"
    SILENT = "silent while others waited"
    STRANGER = "of another user"
    GONE = "gone before they were let in"


class Acceptor:
    """An accept loop on one listening socket that runs `handler` in a task for each connection.

    The handler owns the stream, and calls its MarkActive once it has received a valid message. An
    exception from the handler is a bug and ends the loop. `limits` may be replaced at any time.
    Open connections stay.
    """

    def __init__(
        self,
        listening: socket.socket,
        handler: ConnectionHandler,
        limits: AcceptLimits | None = None,
    ) -> None:
        self.refused: Counter[RefusalReason] = Counter()
        self._listening = listening
        self._handler = handler
        self.limits = limits or AcceptLimits()
        self._of_process: Counter[int] = Counter()
        self._silent: dict[anyio.CancelScope, float] = {}  # since when, oldest first
        self._one_ended = anyio.Event()
        self._is_out_of_resources = False
        self._accepting: anyio.CancelScope | None = None
        self._old_sockets: list[socket.socket] = []
        self._has_moved = anyio.Event()

    @property
    def open(self) -> int:
        """The number of open connections."""
        return self._of_process.total()

    async def serve(self) -> None:
        """Accept until cancelled. This also ends the connections."""
        async with anyio.create_task_group() as connections:
            while True:
                while self._old_sockets and await self._accept(connections, self._old_sockets[0]):
                    pass
                self._old_sockets.clear()
                self._has_moved.set()
                with anyio.CancelScope() as self._accepting:
                    while True:
                        await anyio.wait_readable(self._listening)
                        await self._accept(connections, self._listening)

    async def move_to(self, listening: socket.socket) -> None:
        """Accept on another socket from now on.

        When this returns, all connections that waited at the old socket are accepted, and the old
        socket may be closed. Call this while `serve` runs, or just before it starts.
        """
        self._old_sockets.append(self._listening)
        self._listening = listening
        self._has_moved = anyio.Event()
        if self._accepting:
            self._accepting.cancel()
        await self._has_moved.wait()

    async def _accept(self, connections: TaskGroup, listening: socket.socket) -> bool:
        """Accept waiting connections up to the limits of one turn. Return whether to go on."""
        accepted, refused = 0, 0
        while accepted < self.limits.per_wake and refused < self.limits.refused_per_wake:
            try:
                connection, _address = listening.accept()
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    await self._pause(error)
                # Otherwise no connection waits, or a peer left before it was accepted.
                return False
            self._is_out_of_resources = False
            if peer := self._admit(connection):
                connections.start_soon(self._handle, connection, peer)
                accepted += 1
            else:
                refused += 1
        return True

    def _admit(self, connection: socket.socket) -> Peer | None:
        try:
            peer = peer_of(connection)
            is_gone = _has_closed(connection)
        except OSError:
            is_gone = True
        if is_gone:
            self._refuse(connection, RefusalReason.GONE)
            return None
        if refusal := self._refusal(peer):
            if refusal is RefusalReason.STRANGER:
                log.warning("refused a connection from user %d (pid %d)", peer.uid, peer.pid)
            self._refuse(connection, refusal)
            return None
        connection.settimeout(0)
        self._of_process[peer.pid] += 1
        return peer

    def _refuse(self, connection: socket.socket, reason: RefusalReason) -> None:
        connection.close()
        self.refused[reason] += 1

    def _refusal(self, peer: Peer) -> RefusalReason | None:
        if peer.uid != os.geteuid():
            return RefusalReason.STRANGER
        held = self._of_process[peer.pid]
        if held >= self.limits.per_process:
            return RefusalReason.PROCESS_FULL
        free = self.limits.total - self.open
        if held:
            return RefusalReason.FULL if free <= self.limits.kept_for_others else None
        return RefusalReason.FULL if free <= 0 and not self._close_oldest_silent() else None

    def _close_oldest_silent(self) -> bool:
        oldest = next(iter(self._silent.items()), None)
        if oldest is None or anyio.current_time() - oldest[1] < self.limits.silent_s:
            return False
        scope = oldest[0]
        del self._silent[scope]
        scope.cancel()
        self.refused[RefusalReason.SILENT] += 1
        return True

    async def _handle(self, connection: socket.socket, peer: Peer) -> None:
        with anyio.CancelScope() as scope:
            self._silent[scope] = anyio.current_time()
            try:
                stream = await UNIXSocketStream.from_socket(connection)
                await self._handler(stream, peer, partial(self._mark_active, scope))
            finally:
                self._mark_active(scope)
                connection.close()
                self._forget(peer.pid)

    def _mark_active(self, scope: anyio.CancelScope) -> None:
        self._silent.pop(scope, None)

    def _forget(self, pid: int) -> None:
        self._of_process[pid] -= 1
        if not self._of_process[pid]:
            del self._of_process[pid]  # keep no entry for pids without a connection
        self._one_ended.set()
        self._one_ended = anyio.Event()

    async def _pause(self, error: OSError) -> None:
        """Wait until a connection ends and frees descriptors, or for `pause_s` seconds.

        The socket stays readable, so an immediate retry would be a busy loop.
        """
        if not self._is_out_of_resources:
            log.warning("cannot accept connections: %s", error.strerror)
        self._is_out_of_resources = True
        with anyio.move_on_after(self.limits.pause_s):
            await self._one_ended.wait()


def _has_closed(connection: socket.socket) -> bool:
    """Return whether the peer has closed without sending anything. Raises OSError."""
    try:
        return not connection.recv(1, _PEEK)
    except BlockingIOError:
        return False
