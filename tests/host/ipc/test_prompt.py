"""A connection that takes what the kernel takes at once, and the rest in its time."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import anyio
import pytest
from anyio.abc import UNIXSocketStream

from rootsd.host.ipc.prompt import PromptStream

HANG_GUARD_S = 10


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


async def prompt(end: socket.socket) -> PromptStream:
    return PromptStream(await UNIXSocketStream.from_socket(end))


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
