"""Read and write a socket stream with few turns of the event loop.

A line mostly fits into what the kernel takes at once. To go through the event loop for it costs
several turns, and a change is told to a hundred connections. And who reads, reads again: anyio's
own stream has the descriptor registered anew for each time it waits, and takes a turn before. Here
it stays registered, and the loop itself reads: it would find the same still to be read, else, in
the turn in which the reader wakes.
"""

from __future__ import annotations

import asyncio
import socket

from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import ByteStream, SocketAttribute, SocketStream


class DirectSocketStream(ByteStream):
    """A socket stream with `send_nowait`. Only one task at a time may write, and one read."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._socket = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django here
        self._fd = self._socket.fileno()
        self._loop = asyncio.get_running_loop()
        self._is_watched = False
        self._is_broken = False
        self._arrival: asyncio.Future[None] | None = None
        self._at_once = 0
        self._read: bytes | None = None

    def send_nowait(self, data: bytes) -> int:
        """How many bytes of `data` the kernel took at once; 0 also where the connection is broken,
        which the next `send` finds out."""
        try:
            return self._socket.send(data, socket.MSG_DONTWAIT)
        except OSError:
            return 0

    async def send(self, item: bytes) -> None:
        """Write all of `item`."""
        await self._stream.send(item)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """The next bytes, at most `max_bytes`. Raises EndOfStream, and BrokenResourceError."""
        while self._read is None:
            if self._socket.fileno() < 0:
                raise ClosedResourceError
            if self._is_broken:
                raise BrokenResourceError
            await self._wait(max_bytes)
        data, self._read = self._read, None
        if not data:
            raise EndOfStream
        return data

    async def send_eof(self) -> None:
        """Close the writing side."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close both sides."""
        self._unwatch()
        self._wake()
        await self._stream.aclose()

    async def _wait(self, max_bytes: int) -> None:
        self._at_once = max_bytes
        self._arrival = self._loop.create_future()
        if not self._is_watched:
            self._loop.add_reader(self._fd, self._arrived)
            self._is_watched = True
        try:
            await self._arrival
        finally:
            self._arrival = None

    def _arrived(self) -> None:
        """Called in each turn of the loop as long as something is to be read."""
        if self._arrival is None or self._arrival.done():
            self._unwatch()
            return
        try:
            self._read = self._socket.recv(self._at_once, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            self._is_broken = True
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _unwatch(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_reader(self._fd)
