"""Lines leave whole and in order, even with slow readers and canceled senders."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import ByteStream

from rootsd.mcp.connection import LineWriter, PeerStalled
from support.mcp_harness import HANG_GUARD_S


class Kernel(ByteStream):
    """Takes `room` bytes at once; the rest waits until there is more room."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken = bytearray()
        self.waited = 0
        self._more = anyio.Event()

    def send_nowait(self, data: bytes) -> int:
        count = min(self.room, len(data))
        self.room -= count
        self.taken += data[:count]
        return count

    def make_room(self, room: int) -> None:
        self.room = room
        self._more.set()
        self._more = anyio.Event()

    async def send(self, item: bytes) -> None:
        self.waited += 1
        while item:
            item = item[self.send_nowait(item) :]
            if item:
                await self._more.wait()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        raise anyio.EndOfStream

    async def send_eof(self) -> None: ...

    async def aclose(self) -> None: ...


class Slow(ByteStream):
    """A stream without `send_nowait`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    async def send(self, item: bytes) -> None:
        await self._kernel.send(item)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        raise anyio.EndOfStream

    async def send_eof(self) -> None: ...

    async def aclose(self) -> None: ...


@asynccontextmanager
async def running(stream: ByteStream, chunk: int = 4) -> AsyncIterator[LineWriter]:
    writer = LineWriter(stream, chunk=chunk, stall_s=3600)
    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(writer.run)
            yield writer
            writer.close()


async def test_a_line_that_fits_is_written_without_the_task() -> None:
    kernel = Kernel(room=100)
    writer = LineWriter(kernel, chunk=4, stall_s=1)
    await writer.send(b"one\n")
    await writer.send(b"two\n")
    assert kernel.taken == b"one\ntwo\n"


async def test_a_line_written_in_parts_ends_before_the_next_begins() -> None:
    kernel = Kernel(room=2)
    async with running(kernel) as writer, anyio.create_task_group() as group:
        for line in (b"first\n", b"second\n", b"third\n"):
            group.start_soon(writer.send, line)
        for _ in range(10):
            await anyio.wait_all_tasks_blocked()
            kernel.make_room(3)
    assert kernel.taken == b"first\nsecond\nthird\n"


async def test_canceling_a_sender_does_not_cut_a_line_short() -> None:
    kernel = Kernel(room=2)
    async with running(kernel) as writer:
        async with anyio.create_task_group() as group:
            group.start_soon(writer.send, b"first\n")
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        kernel.make_room(100)
        await writer.send(b"second\n")
    assert kernel.taken == b"first\nsecond\n"


async def test_closing_writes_the_remaining_lines() -> None:
    kernel = Kernel(room=0)
    async with anyio.create_task_group() as group:
        writer = LineWriter(kernel, chunk=4, stall_s=3600)
        group.start_soon(writer.send, b"line\n")
        await anyio.wait_all_tasks_blocked()
        writer.close()
        group.start_soon(writer.run)
        await anyio.wait_all_tasks_blocked()
        kernel.make_room(100)
    assert kernel.taken == b"line\n"


async def test_a_stream_without_non_blocking_writes_gets_chunks() -> None:
    kernel = Kernel(room=100)
    slow = Slow(kernel)
    async with running(slow) as writer:
        await writer.send(b"a line\n")
    assert kernel.taken == b"a line\n"
    assert kernel.waited == 2


async def test_a_peer_that_reads_nothing_for_too_long_has_stalled() -> None:
    kernel = Kernel(room=2)
    writer = LineWriter(kernel, chunk=4, stall_s=0.01)
    async with anyio.create_task_group() as group:
        group.start_soon(writer.send, b"a line\n")
        with pytest.raises(PeerStalled):
            await writer.run()
        group.cancel_scope.cancel()


async def test_nothing_is_written_after_the_task_has_ended() -> None:
    kernel = Kernel(room=100)
    writer = LineWriter(kernel, chunk=4, stall_s=1)
    async with anyio.create_task_group() as group:
        group.start_soon(writer.run)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    with pytest.raises(anyio.BrokenResourceError):
        await writer.send(b"late\n")
    assert kernel.taken == b""
