"""Read and write a socket stream with few turns of the event loop.

Writing: the kernel mostly takes a whole line at once. So `send_nowait` writes without the event
loop, which would take several turns for each of a hundred connections.

Reading: anyio's own stream yields once before each read, and then registers the descriptor again.
Here, the descriptor stays registered, and the callback of the event loop reads the data. If the
waiting task read it instead, the loop would report the same data again before that task runs.
"""

from __future__ import annotations

import asyncio
import socket

from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import ByteStream, SocketAttribute, SocketStream


class DirectSocketStream(ByteStream):
    """A socket stream with `send_nowait`. One task may write at a time, and one may read."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._socket = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django here
        self._fd = self._socket.fileno()
        self._loop = asyncio.get_running_loop()
        self._is_watched = False
        self._is_broken = False
        self._arrival: asyncio.Future[None] | None = None
        self._max_bytes = 0
        self._read: bytes | None = None

    def send_nowait(self, data: bytes) -> int:
        """Return how many bytes of `data` the kernel took at once.

        Returns 0 on a broken connection; the next `send` raises then.
        """
        try:
            return self._socket.send(data, socket.MSG_DONTWAIT)
        except OSError:
            return 0

    async def send(self, item: bytes) -> None:
        """Write all of `item`."""
        await self._stream.send(item)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return the next bytes, up to `max_bytes`. Raises EndOfStream, BrokenResourceError."""
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
        self._max_bytes = max_bytes
        self._arrival = self._loop.create_future()
        if not self._is_watched:
            self._loop.add_reader(self._fd, self._arrived)
            self._is_watched = True
        try:
            await self._arrival
        finally:
            self._arrival = None

    def _arrived(self) -> None:
        """Read if a task waits. The event loop calls this in each turn while data is available."""
        if self._arrival is None or self._arrival.done():
            self._unwatch()
            return
        try:
            self._read = self._socket.recv(self._max_bytes, socket.MSG_DONTWAIT)
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
