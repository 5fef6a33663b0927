"""The way from the server to the client: lines, looked at by the session and passed on in order.

A long answer that nobody has to read goes on while it is still coming: to wait for its end would
double the time that it takes. What the session itself says meanwhile waits until it is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rootsd.relay.intake import Intake, TooLong
from rootsd.relay.outbox import Outbox
from rootsd.relay.session import Session
from rootsd.wire.words import HEAD

_STREAMED = 1 << 16
"""Bytes of a line that has no end yet, from which on it may go to the client as it comes."""


class Downstream:
    """One client's output. `write` takes what there is room for and returns how much that was;
    it raises BrokenPipeError where nobody reads any more."""

    def __init__(
        self, session: Session, out: Outbox, write: Callable[[bytes | bytearray], int]
    ) -> None:
        self.is_heard = True
        """Whether the client reads."""
        self._session = session
        self._out = out
        self._write = write
        self._intake = Intake()
        self._unsent = bytearray()
        self._stream: bytes | None = None  # the ends of a line that goes on as it comes

    @property
    def unsent(self) -> int:
        """How many bytes the client has not taken."""
        return len(self._unsent)

    @property
    def streams(self) -> bool:
        """Whether a part of a line was passed on, and its end was not."""
        return self._stream is not None

    def take(self, data: bytes) -> None:
        """The server has said this; nothing, where it will say no more."""
        if self._stream is not None:
            data = self._stream_on(self._stream, data)
        for line in self._intake.take(data) if data else self._intake.rest():
            if isinstance(line, TooLong):
                self._session.lose_answer(line.ends)
            else:
                self._session.from_server(line, time.monotonic())
        begun = self._intake.begun
        if len(begun) >= _STREAMED and self._session.may_stream(bytes(begun[:HEAD])):
            self._collect()
            self._stream = bytes(begun[:HEAD] + begun[-HEAD:])
            self._unsent += self._intake.raw_rest()

    def cut(self) -> None:
        """The server is gone: end the line that was under way, and begin anew."""
        if self._stream is not None:
            self._stream = None
            self._unsent += b"\n"  # and its request stays open, for an error that can be read
        self._intake = Intake()

    def hand_down(self) -> None:
        """Write what the client takes at once: mostly all of it."""
        self._collect()
        if self.is_heard and self._unsent:
            try:
                del self._unsent[: self._write(self._unsent)]
            except BrokenPipeError:
                self.is_heard = False
        if not self.is_heard:
            self._unsent.clear()
        self._out.unread = len(self._unsent)

    def _collect(self) -> None:
        """What the session says stands between lines."""
        if self._stream is None and self._out.to_client:
            self._unsent += self._out.to_client
            self._out.to_client.clear()

    def _stream_on(self, ends: bytes, data: bytes) -> bytes:
        """Pass on what belongs to the line under way, and return the rest."""
        end = data.find(b"\n")
        part = data if end < 0 else data[:end]
        self._unsent += part
        self._stream = ends = ends[:HEAD] + (ends[HEAD:] + part[-HEAD:])[-HEAD:]
        if end < 0:
            return b""
        self._unsent += b"\n"
        self._stream = None
        self._session.streamed(ends, time.monotonic())
        return data[end + 1 :]
