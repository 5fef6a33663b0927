"""A connection that writes at once what fits, and the rest later."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import anyio
import pytest
from anyio.abc import UNIXSocketStream

from rootsd.net.stream import DirectSocketStream

HANG_GUARD_S = 60


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


async def prompt(end: socket.socket) -> DirectSocketStream:
    return DirectSocketStream(await UNIXSocketStream.from_socket(end))


async def test_a_line_is_written_at_once_unless_the_connection_is_broken(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    assert stream.send_nowait(b"line\n") == 5
    assert ends[1].recv(100) == b"line\n"
    ends[1].sendall(b"answer")
    with anyio.fail_after(HANG_GUARD_S):
        assert await stream.receive() == b"answer"
    ends[1].close()
    assert stream.send_nowait(b"line\n") == 0
    with pytest.raises(anyio.BrokenResourceError):
        await stream.send(b"line\n")
    await stream.aclose()


async def test_the_rest_of_a_partial_write_is_left_for_send(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    much = b"x" * (1 << 22)
    taken = stream.send_nowait(much)
    assert 0 < taken < len(much)
    assert stream.send_nowait(much) == 0
    got = bytearray()

    def read() -> None:
        while data := ends[1].recv(1 << 20):
            got.extend(data)

    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, read)
            await stream.send(much[taken:])
            await stream.send_eof()
    assert got == much
    await stream.aclose()


async def test_data_is_read_whenever_it_arrives_and_none_by_a_canceled_reader(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    read: list[bytes] = []

    async def reader() -> None:
        with suppress(anyio.ClosedResourceError):
            while True:
                read.append(await stream.receive(4))
        read.append(b" closed")

    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(stream.receive)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        async with anyio.create_task_group() as group:
            ends[1].sendall(b"one")
            group.start_soon(reader)
            await anyio.wait_all_tasks_blocked()
            ends[1].sendall(b"two and")
            while b"".join(read) != b"onetwo and":
                await anyio.wait_all_tasks_blocked()
            await stream.aclose()
    assert b"".join(read) == b"onetwo and closed", "which ends the wait of the reader"


async def test_unread_data_does_not_keep_the_loop_busy(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(stream.receive)
            await anyio.wait_all_tasks_blocked()
            ends[1].sendall(b"read")
        ends[1].sendall(b"not read")
        # The check whether the descriptor is watched removes it; the loop has already done so.
        while stream._is_watched:
            await anyio.lowlevel.checkpoint()
        assert not asyncio.get_running_loop().remove_reader(ends[0].fileno())
        assert await stream.receive() == b"not read"
    await stream.aclose()


async def test_an_end_differs_from_a_broken_connection(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    ends[1].shutdown(socket.SHUT_WR)
    with anyio.fail_after(HANG_GUARD_S), pytest.raises(anyio.EndOfStream):
        await stream.receive()
    stream.send_nowait(b"never read")
    ends[1].close()  # with unread data, which the kernel treats as a broken connection
    with anyio.fail_after(HANG_GUARD_S), pytest.raises(anyio.BrokenResourceError):
        await stream.receive()
    await stream.aclose()
