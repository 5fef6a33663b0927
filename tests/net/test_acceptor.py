"""The accept loop under load: limits, descriptors, and other users."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from rootsd.link.connect import connect
from rootsd.net import acceptor as module
from rootsd.net.acceptor import AcceptLimits, Acceptor, MarkActive, RefusalReason
from rootsd.net.listener import Listener, listen
from rootsd.net.unix_socket import Peer

HANG_GUARD_S = 60


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return bytes(tmp_path / "run" / "pub" / "mcp.sock")


async def echo(stream: SocketStream, _: Peer, heard: MarkActive) -> None:
    """Answer until the peer leaves."""
    async with stream:
        async for data in stream:
            heard()
            await stream.send(data)


@asynccontextmanager
async def serving(listener: Listener, caps: AcceptLimits | None = None) -> AsyncIterator[Acceptor]:
    acceptor = Acceptor(listener.socket, echo, caps)
    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(acceptor.serve)
            yield acceptor
            group.cancel_scope.cancel()


async def answer_of(client: socket.socket) -> bytes:
    """What comes back for a byte: the byte, or nothing from a closed connection."""
    client.settimeout(0)
    try:
        client.send(b"x")
    except BrokenPipeError:
        return b""
    await anyio.wait_readable(client)
    try:
        return client.recv(1)
    except ConnectionResetError:
        return b""


async def test_connections_are_passed_on_and_counted_and_end_with_the_loop(path: bytes) -> None:
    with listen(path) as listener:
        async with serving(listener) as acceptor:
            one, other = connect(path), connect(path)
            assert [await answer_of(one), await answer_of(other)] == [b"x", b"x"]
            assert acceptor.open == 2
            one.close()
            while acceptor.open > 1:
                await anyio.lowlevel.checkpoint()
        with other:
            assert await answer_of(other) == b""


async def test_a_long_backlog_is_served_completely(path: bytes) -> None:
    with listen(path) as listener:
        clients = [connect(path) for _ in range(50)]
        async with serving(listener, AcceptLimits(per_wake=3)):
            for client in clients:
                assert await answer_of(client) == b"x"
                client.close()


@pytest.mark.parametrize(
    ("caps", "reason"),
    [
        (AcceptLimits(total=2), RefusalReason.FULL),
        (AcceptLimits(per_process=2), RefusalReason.PROCESS_FULL),
    ],
)
async def test_connections_above_a_limit_are_closed_until_one_ends_or_the_limit_is_raised(
    path: bytes, caps: AcceptLimits, reason: RefusalReason
) -> None:
    with listen(path) as listener:
        async with serving(listener, caps) as acceptor:
            with connect(path) as first:
                with connect(path) as second, connect(path) as third:
                    assert await answer_of(first) == b"x"
                    assert await answer_of(second) == b"x"
                    assert await answer_of(third) == b""
                    assert acceptor.refused == {reason: 1}
                while acceptor.open > 1:
                    await anyio.lowlevel.checkpoint()
                with connect(path) as fourth:
                    assert await answer_of(fourth) == b"x"
                    acceptor.limits = AcceptLimits(per_process=3)
                    with connect(path) as fifth:
                        assert [await answer_of(each) for each in (first, fifth)] == [b"x"] * 2


async def test_a_client_that_left_while_waiting_is_not_passed_on(path: bytes) -> None:
    with listen(path) as listener:
        for _ in range(50):
            connect(path).close()
        with connect(path) as client:
            async with serving(listener) as acceptor:
                assert await answer_of(client) == b"x"
                assert acceptor.refused == {RefusalReason.GONE: 50}
                assert acceptor.open == 1


class Counting:
    """A listening socket that tells how many were accepted between two looks of the test."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.accepted = 0

    def fileno(self) -> int:
        return self._listening.fileno()

    def accept(self) -> tuple[socket.socket, object]:
        accepted = self._listening.accept()
        self.accepted += 1
        return accepted


async def test_each_wakeup_accepts_few_and_refuses_more(path: bytes) -> None:
    with listen(path) as listener, ExitStack() as stack:
        clients = [stack.enter_context(connect(path)) for _ in range(20)]
        counting = Counting(listener.socket)
        caps = AcceptLimits(per_wake=2, refused_per_wake=5, per_process=6)
        acceptor = Acceptor(counting, echo, caps)  # type: ignore[arg-type]
        seen = [0]
        with anyio.fail_after(HANG_GUARD_S):
            async with anyio.create_task_group() as group:
                group.start_soon(acceptor.serve)
                while seen[-1] < len(clients):
                    await anyio.lowlevel.checkpoint()
                    seen.append(counting.accepted)
                group.cancel_scope.cancel()
        at_a_wake = {later - before for before, later in pairwise(seen)} - {0}
        assert at_a_wake <= {2, 5, 4}, "the last ones are fewer"
        assert acceptor.refused == {RefusalReason.PROCESS_FULL: 14}


class Processes:
    """Who connects, as the test has it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pid = 1
        monkeypatch.setattr(module, "peer_of", lambda _: Peer(self.pid, os.geteuid()))


async def test_the_last_places_are_for_processes_without_a_connection(
    path: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(monkeypatch)
    with listen(path) as listener, ExitStack() as stack:

        async def connects(pid: int) -> bytes:
            processes.pid = pid
            return await answer_of(stack.enter_context(connect(path)))

        async with serving(listener, AcceptLimits(total=32)) as acceptor:
            assert [await connects(1) for _ in range(31)] == [b"x"] * 30 + [b""]
            assert [await connects(2) for _ in range(2)] == [b"x", b""]
            assert [await connects(3), await connects(4)] == [b"x", b""]
            assert acceptor.refused == {RefusalReason.FULL: 3}


async def test_at_the_limit_the_oldest_silent_connection_is_closed_unless_it_is_new(
    path: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(monkeypatch)
    with listen(path) as listener:
        async with serving(listener, AcceptLimits(total=3, silent_s=3600)) as acceptor:
            with connect(path) as heard, connect(path) as first, connect(path) as second:
                assert await answer_of(heard) == b"x"
                while acceptor.open < 3:
                    await anyio.lowlevel.checkpoint()
                processes.pid = 2
                with connect(path) as early:
                    assert await answer_of(early) == b""
                acceptor.limits = AcceptLimits(total=3, silent_s=0)
                with connect(path) as newcomer:
                    assert await answer_of(newcomer) == b"x"
                    assert await answer_of(first) == b""
                    assert [await answer_of(each) for each in (heard, second)] == [b"x"] * 2
                    processes.pid = 3
                    with connect(path) as late:  # all have sent something by now
                        assert await answer_of(late) == b""
                    assert acceptor.refused == {RefusalReason.SILENT: 1, RefusalReason.FULL: 2}


async def test_clients_waiting_at_the_old_socket_are_accepted_before_the_move(
    path: bytes, tmp_path: Path
) -> None:
    with listen(path) as old, listen(bytes(tmp_path / "run" / "b" / "mcp.sock")) as new:
        async with serving(old, AcceptLimits(per_wake=3)) as acceptor:
            with connect(path) as before:
                assert await answer_of(before) == b"x"
                waiting = [connect(path) for _ in range(10)]
                await acceptor.move_to(new.socket)
                old.close()
                with connect(new.path) as after:
                    for client in (before, *waiting, after):
                        assert await answer_of(client) == b"x"
                for client in waiting:
                    client.close()


async def test_a_connection_of_another_user_or_an_unknown_peer_is_closed_before_a_byte_is_read(
    path: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(_: socket.socket) -> Peer:
        raise OSError(errno.ENOTCONN, "gone")

    stranger = os.geteuid() + 1
    with listen(path) as listener:
        async with serving(listener) as acceptor:
            for peer_of in (lambda _: Peer(1, stranger), gone):
                monkeypatch.setattr(module, "peer_of", peer_of)
                with connect_unchecked(path) as client:
                    assert await answer_of(client) == b""
            assert acceptor.refused == {RefusalReason.STRANGER: 1, RefusalReason.GONE: 1}
    assert caplog.messages == [f"refused a connection from user {stranger} (pid 1)"]


def connect_unchecked(path: bytes) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    return client


class OutOfDescriptors:
    """A listening socket that fails a number of times first."""

    def __init__(self, listening: socket.socket, failures: int) -> None:
        self._listening = listening
        self.failures = failures

    def fileno(self) -> int:
        return self._listening.fileno()

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listening.accept()


async def test_without_descriptors_it_pauses_logs_once_and_continues(
    path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with listen(path) as listener, connect(path) as first:
        starving = OutOfDescriptors(listener.socket, 3)
        acceptor = Acceptor(starving, echo, AcceptLimits(pause_s=0.01))  # type: ignore[arg-type]
        with anyio.fail_after(HANG_GUARD_S):
            async with anyio.create_task_group() as group:
                group.start_soon(acceptor.serve)
                assert await answer_of(first) == b"x"
                assert starving.failures == 0
                assert caplog.messages == ["cannot accept connections: Too many open files"]
                acceptor.limits = AcceptLimits(pause_s=3600)
                starving.failures = 1
                with connect(path) as second:
                    while starving.failures:
                        await anyio.lowlevel.checkpoint()
                    first.close()  # a closed connection ends the pause
                    assert await answer_of(second) == b"x"
                group.cancel_scope.cancel()
