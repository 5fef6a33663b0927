"""A connection that takes what the kernel takes at once, and the rest in its time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import anyio
import pytest
from anyio.abc import UNIXSocketStream

from rootsd.system.ipc.stream import DirectSocketStream

HANG_GUARD_S = 10


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


async def prompt(end: socket.socket) -> DirectSocketStream:
    return DirectSocketStream(await UNIXSocketStream.from_socket(end))


async def test_a_line_goes_out_at_once(ends: tuple[socket.socket, socket.socket]) -> None:
    stream = await prompt(ends[0])
    assert stream.send_nowait(b"line\n") == 5
    assert ends[1].recv(100) == b"line\n"
    ends[1].sendall(b"answer")
    with anyio.fail_after(HANG_GUARD_S):
        assert await stream.receive() == b"answer"
    await stream.aclose()


async def test_what_the_kernel_does_not_take_is_left_for_send(
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


async def test_a_broken_connection_takes_nothing(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    ends[1].close()
    assert stream.send_nowait(b"line\n") == 0
    with pytest.raises(anyio.BrokenResourceError):
        await stream.send(b"line\n")
    await stream.aclose()


async def test_what_comes_is_read_whenever_it_comes(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    read: list[bytes] = []

    async def reader() -> None:
        while len(read) < 3:
            read.append(await stream.receive(4))

    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(reader)
            await anyio.wait_all_tasks_blocked()
            ends[1].sendall(b"one")
            await anyio.wait_all_tasks_blocked()
            ends[1].sendall(b"two and")
    assert b"".join(read) == b"onetwo and"
    await stream.aclose()


async def test_what_nobody_reads_does_not_keep_the_loop_busy(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(stream.receive)
            await anyio.wait_all_tasks_blocked()
            ends[1].sendall(b"read")
        ends[1].sendall(b"not read")
        # Whoever asks whether the descriptor is watched removes it: the loop has done so before.
        while stream._is_watched:
            await anyio.lowlevel.checkpoint()
        assert not asyncio.get_running_loop().remove_reader(ends[0].fileno())
        assert await stream.receive() == b"not read"
    await stream.aclose()


async def test_a_reader_that_is_given_up_leaves_what_comes_for_the_next(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(stream.receive)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        ends[1].sendall(b"line")
        assert await stream.receive() == b"line"
    await stream.aclose()


async def test_the_end_and_a_break_are_told_apart(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])
    ends[1].shutdown(socket.SHUT_WR)
    with anyio.fail_after(HANG_GUARD_S), pytest.raises(anyio.EndOfStream):
        await stream.receive()
    stream.send_nowait(b"never read")
    ends[1].close()  # with something unread, which the kernel counts as a break
    with anyio.fail_after(HANG_GUARD_S), pytest.raises(anyio.BrokenResourceError):
        await stream.receive()
    await stream.aclose()


async def test_closing_ends_the_wait_of_a_reader(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = await prompt(ends[0])

    async def reader() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await stream.receive()

    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(reader)
            await anyio.wait_all_tasks_blocked()
            await stream.aclose()
