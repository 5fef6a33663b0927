"""Accept connections fairly, with limits in total and per process.

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
from functools import partial

import anyio
from anyio.abc import SocketStream, TaskGroup, UNIXSocketStream

from rootsd.system.ipc.unix_socket import Peer, peer_of

log = logging.getLogger(__name__)

MarkActive = Callable[[], None]
ConnectionHandler = Callable[[SocketStream, Peer, MarkActive], Awaitable[None]]

_LOOK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True)
class AcceptLimits:
    """How many connections there may be. Peers whose pid is hidden share one process's.

    Where nearly all are taken, the rest is kept for processes that have none; where all are, one
    that has said nothing for `silent_s` seconds makes way. At one wake of the loop `per_wake` are
    let in. Far less work is to refuse, so that many more are, `refused_per_wake`: whoever is
    honest waits behind them.
    """

    total: int = 1024
    per_process: int = 64
    per_wake: int = 32
    refused_per_wake: int = 128
    rest_s: float = 0.05
    silent_s: float = 2.0

    @property
    def kept_for_others(self) -> int:
        """How many of `total` a process gets only for its first connection."""
        return self.total // 16


class RefusalReason(StrEnum):
    """Why a connection was closed from this side."""

    FULL = "too many in all"
    PROCESS_FULL = "too many of one process"
    SILENT = "silent while others waited"
    STRANGER = "of another user"
    GONE = "gone before they were let in"


class Acceptor:
    """Accepts on one listening socket and hands each connection to `handler`, in its own task.

    The handler owns the stream, and says so once it has heard something of use. What it raises is
    a bug and ends the loop. `caps` may be replaced: connections that are open stay.
    """

    def __init__(
        self,
        listening: socket.socket,
        handler: ConnectionHandler,
        caps: AcceptLimits | None = None,
    ) -> None:
        self.refused: Counter[RefusalReason] = Counter()
        self._listening = listening
        self._handler = handler
        self.caps = caps or AcceptLimits()
        self._of_process: Counter[int] = Counter()
        self._silent: dict[anyio.CancelScope, float] = {}  # since when, oldest first
        self._one_left = anyio.Event()
        self._starved = False
        self._accepting: anyio.CancelScope | None = None
        self._left: list[socket.socket] = []
        self._has_moved = anyio.Event()

    @property
    def open(self) -> int:
        """How many connections are being handled."""
        return self._of_process.total()

    async def serve(self) -> None:
        """Accept until cancelled; the connections end with it."""
        async with anyio.create_task_group() as connections:
            while True:
                while self._left and await self._let_in(connections, self._left[0]):
                    pass
                self._left.clear()
                self._has_moved.set()
                with anyio.CancelScope() as self._accepting:
                    while True:
                        await anyio.wait_readable(self._listening)
                        await self._let_in(connections, self._listening)

    async def move_to(self, listening: socket.socket) -> None:
        """Accept on another socket; when this returns, all who waited at the old one are let in,
        and it may be closed. To be called while `serve` runs, or before it does what it was
        started for."""
        self._left.append(self._listening)
        self._listening = listening
        self._has_moved = anyio.Event()
        if self._accepting:
            self._accepting.cancel()
        await self._has_moved.wait()

    async def _let_in(self, connections: TaskGroup, listening: socket.socket) -> bool:
        """Accept those who wait, as many as one turn allows; whether there may be more."""
        let_in, refused = 0, 0
        while let_in < self.caps.per_wake and refused < self.caps.refused_per_wake:
            try:
                connection, _address = listening.accept()
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    await self._rest(error)
                # Else nobody waits any more, or one left before it was accepted.
                return False
            self._starved = False
            if peer := self._admit(connection):
                connections.start_soon(self._handle, connection, peer)
                let_in += 1
            else:
                refused += 1
        return True

    def _admit(self, connection: socket.socket) -> Peer | None:
        try:
            peer = peer_of(connection)
            is_gone = _has_left(connection)
        except OSError:
            is_gone = True
        if is_gone:
            self._refuse(connection, RefusalReason.GONE)
            return None
        if refusal := self._refusal(peer):
            if refusal is RefusalReason.STRANGER:
                log.warning("user %d (pid %d) came to a socket of yours", peer.uid, peer.pid)
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
        if held >= self.caps.per_process:
            return RefusalReason.PROCESS_FULL
        free = self.caps.total - self.open
        if held:
            return RefusalReason.FULL if free <= self.caps.kept_for_others else None
        return RefusalReason.FULL if free <= 0 and not self._dismiss_a_silent_one() else None

    def _dismiss_a_silent_one(self) -> bool:
        oldest = next(iter(self._silent.items()), None)
        if oldest is None or anyio.current_time() - oldest[1] < self.caps.silent_s:
            return False
        place = oldest[0]
        del self._silent[place]
        place.cancel()
        self.refused[RefusalReason.SILENT] += 1
        return True

    async def _handle(self, connection: socket.socket, peer: Peer) -> None:
        with anyio.CancelScope() as place:
            self._silent[place] = anyio.current_time()
            try:
                stream = await UNIXSocketStream.from_socket(connection)
                await self._handler(stream, peer, partial(self._heard, place))
            finally:
                self._heard(place)
                connection.close()
                self._forget(peer.pid)

    def _heard(self, place: anyio.CancelScope) -> None:
        self._silent.pop(place, None)

    def _forget(self, pid: int) -> None:
        self._of_process[pid] -= 1
        if not self._of_process[pid]:
            del self._of_process[pid]  # pids are many; only those connected count
        self._one_left.set()
        self._one_left = anyio.Event()

    async def _rest(self, error: OSError) -> None:
        """A connection that ends frees descriptors; else look again after a while, without
        spinning on a socket that stays readable."""
        if not self._starved:
            log.warning("no connection can be accepted: %s", error.strerror)
        self._starved = True
        with anyio.move_on_after(self.caps.rest_s):
            await self._one_left.wait()


def _has_left(connection: socket.socket) -> bool:
    """Whether the peer has gone without a word. Raises OSError."""
    try:
        return not connection.recv(1, _LOOK)
    except BlockingIOError:
        return False
