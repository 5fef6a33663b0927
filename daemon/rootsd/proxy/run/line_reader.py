"""Split bytes into lines of limited length. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rootsd.wire.mcp_messages import SCAN_BYTES

MAX_LINE_BYTES = 64 << 20


class OversizedLine(NamedTuple):
    """A line that was dropped. `ends` is its beginning and its end, without the middle."""

    ends: bytes


class BoundedLineReader:
    """A splitter for the lines of one side. Lines that arrive in one chunk share one copy."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._partial = bytearray()
        self._dropped: bytes | None = None  # the beginning of an oversized line

    def feed(self, data: bytes) -> Iterator[bytes | OversizedLine]:
        """Yield the lines that end in `data`, without their newlines."""
        head, newline, tail = data.rpartition(b"\n")
        if newline:
            first, _, more = head.partition(b"\n")
            self._partial += first
            yield self._complete_line()
            if len(head) > len(first):
                yield from more.split(b"\n")
        self._partial += tail
        if len(self._partial) > self._limit:
            self._drop_middle()

    def finish(self) -> Iterator[bytes | OversizedLine]:
        """Yield the text after the last newline, at the end of the input."""
        if self._partial:
            yield self._complete_line()

    def take_partial(self) -> bytes:
        """Return and forget the line that has no end yet, for a caller that streams it."""
        partial = bytes(self._partial)
        self._partial.clear()
        return partial

    @property
    def partial_line(self) -> bytearray:
        """The line that has no end yet. Do not change it."""
        return self._partial

    def _complete_line(self) -> bytes | OversizedLine:
        line, self._partial = self._partial, bytearray()
        if self._dropped is None and len(line) <= self._limit:
            return bytes(line)
        head = self._dropped if self._dropped is not None else bytes(line[:SCAN_BYTES])
        self._dropped = None
        return OversizedLine(head + bytes(line[-SCAN_BYTES:]))

    def _drop_middle(self) -> None:
        if self._dropped is None:
            self._dropped = bytes(self._partial[:SCAN_BYTES])
        del self._partial[:-SCAN_BYTES]
