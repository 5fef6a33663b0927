"""Newline frames: bytes in, whole lines out, with a limit on the length of one line.

This is the framing of MCP's stdio transport (a line holds one message and no newline inside),
which `mcp.sock` and `control.sock` share.
"""

from __future__ import annotations

REQUEST_LIMIT = 64 * 1024
"""The longest line that the daemon reads, in bytes. Its answers may be longer."""


class LineTooLong(Exception):
    """A line passed the limit before it ended. What follows cannot be trusted to be a frame."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the line is longer than {limit} bytes")
        self.limit = limit


class LineReader:
    """Collects bytes and gives lines back one at a time, without their newline."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0  # no newline lies before this offset: each byte is looked at once

    def feed(self, data: bytes) -> None:
        """Take bytes in, split anywhere."""
        self._buffer += data

    def pop(self) -> bytes | None:
        """The next whole line; None where more bytes are needed. Raises LineTooLong."""
        end = self._buffer.find(b"\n", self._searched)
        if end > self._limit or (end < 0 and len(self._buffer) > self._limit):
            raise LineTooLong(self._limit)
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def rest(self) -> bytes:
        """What came after the last newline, for the end of the stream; empties the reader."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        return rest
