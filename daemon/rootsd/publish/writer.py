"""The one place where lines leave a connection: whole, in order, and bounded.

No line waits in a buffer behind another: whoever has one waits until the one before it is out, so
the memory of a connection is bounded. Whoever is cancelled meanwhile cannot cut a line short.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import anyio
from anyio.abc import ByteStream


@runtime_checkable
class Prompt(Protocol):
    """A stream that can be written to without waiting, which most lines need and no more."""

    def send_nowait(self, data: bytes) -> int:
        """How many bytes of `data` were taken at once; 0 also where the stream is broken."""
        ...


class Stalled(Exception):
    """The peer took no bytes for too long."""


class Writer:
    """Writes lines to `stream`; `run` is its task. `stall_s` is how long the peer may take for
    `chunk` bytes."""

    def __init__(self, stream: ByteStream, *, chunk: int, stall_s: float) -> None:
        self._stream = stream
        self._prompt = stream if isinstance(stream, Prompt) else None
        self._chunk = chunk
        self._stall_s = stall_s
        self._rest = b""
        self._closed = False
        self._ended = False
        self._wanted = anyio.Event()
        self._drained = anyio.Event()

    async def send(self, line: bytes) -> None:
        """Write a line, and return once it is out. Raises BrokenResourceError once `run` ended."""
        while self._rest:
            await self._drained.wait()
        if self._ended:
            raise anyio.BrokenResourceError
        # No await from here to the end of the line being noted.
        self._rest = line[self._prompt.send_nowait(line) :] if self._prompt else line
        if self._rest:
            self._wanted.set()
            await self._drained.wait()

    def close(self) -> None:
        """Let `run` end after what it was given."""
        self._closed = True
        self._wanted.set()

    async def run(self) -> None:
        """Write what could not be written at once. Raises Stalled where the peer does not read,
        BrokenResourceError and ClosedResourceError where it is gone."""
        try:
            await self._run()
        finally:
            self._ended = True

    async def _run(self) -> None:
        while self._rest or not self._closed:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            rest = self._rest
            for start in range(0, len(rest), self._chunk):
                try:
                    with anyio.fail_after(self._stall_s):
                        await self._stream.send(rest[start : start + self._chunk])
                except TimeoutError as error:
                    raise Stalled from error
            self._rest = b""
            self._drained.set()
            self._drained = anyio.Event()
