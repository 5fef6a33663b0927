"""A connection that can also be written to without waiting.

A line mostly fits into what the kernel takes at once. To go through the event loop for it costs
several turns, and a change is told to a hundred connections.
"""

from __future__ import annotations

import socket

from anyio.abc import ByteStream, SocketAttribute, SocketStream


class PromptStream(ByteStream):
    """A socket stream with `send_nowait`. Only one task at a time may write."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._socket = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django here

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
        """The next bytes, at most `max_bytes`. Raises EndOfStream."""
        return await self._stream.receive(max_bytes)

    async def send_eof(self) -> None:
        """Close the writing side."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close both sides."""
        await self._stream.aclose()
