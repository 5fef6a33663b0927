"""The messages of a healthy and an unhealthy daemon to its supervisor."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import anyio
import pytest
from anyio import to_thread

from rootsd.control.process_view import ProcessView
from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.daemon.health import HealthReporter, HelperProbe, check_daemon
from rootsd.helper.client import UnavailableHelper
from rootsd.helper.protocol import HelperTask
from rootsd.net.acceptor import Acceptor
from rootsd.net.listener import Listener, listen
from rootsd.service.notify import ServiceNotifier
from support.ledger_harness import HANG_GUARD, DiskRefuses, LedgerHarness, approve
from support.sample_decisions import approved, project

QUICK = 0.01


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return the daemon's end and the supervisor's end of a socket pair."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    theirs.settimeout(HANG_GUARD)
    with ours, theirs:
        yield ours, theirs


async def hear(theirs: socket.socket) -> str:
    return (await to_thread.run_sync(theirs.recv, 4096)).decode()


async def well() -> None:
    """Report no problem."""


@asynccontextmanager
async def telling(health: HealthReporter) -> AsyncIterator[None]:
    async with anyio.create_task_group() as group:
        group.start_soon(health.keep_reporting)
        with anyio.fail_after(HANG_GUARD):
            yield
        group.cancel_scope.cancel()


async def test_the_status_follows_the_published_set(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    world = LedgerHarness(approved(1), project(2))
    health = HealthReporter(ServiceNotifier(ours), world.ledger, clients=lambda: 3, check=well)
    async with telling(health):
        assert await hear(theirs) == "STATUS=1 published, 1 pending, 3 connected"
        await world.ledger.execute([approve(2)])
        assert await hear(theirs) == "STATUS=2 published, 0 pending, 3 connected"


@pytest.mark.parametrize("wrong", [RootsdError("the store cannot be read"), OSError("no socket")])
async def test_the_watchdog_is_notified_repeatedly_except_during_a_problem(
    ends: tuple[socket.socket, socket.socket],
    caplog: pytest.LogCaptureFixture,
    wrong: Exception,
) -> None:
    ours, theirs = ends
    checks = 0

    async def check() -> None:
        nonlocal checks
        checks += 1
        if checks <= 3:
            raise wrong

    world = LedgerHarness()
    health = HealthReporter(
        ServiceNotifier(ours, QUICK), world.ledger, clients=lambda: 0, check=check
    )
    async with telling(health):
        assert (await hear(theirs)).startswith("STATUS=")
        assert [await hear(theirs) for _ in range(3)] == ["WATCHDOG=1"] * 3
    assert checks >= 6
    assert caplog.text.count(f"no heartbeat: {wrong}") == 3


async def test_a_check_that_hangs_stops_the_notifications(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    begun = anyio.Event()

    async def check() -> None:
        begun.set()
        await anyio.Event().wait()

    world = LedgerHarness(project(1))
    health = HealthReporter(
        ServiceNotifier(ours, QUICK), world.ledger, clients=lambda: 0, check=check
    )
    async with telling(health):
        await begun.wait()
        assert (await hear(theirs)).startswith("STATUS=")
        await world.ledger.execute([approve(1)])  # the event loop runs, but:
        assert (await hear(theirs)).startswith("STATUS=1")
    theirs.settimeout(0)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


async def test_without_a_supervisor_no_check_runs() -> None:
    async def check() -> None:
        raise AssertionError("looked")

    with anyio.fail_after(HANG_GUARD):
        await HealthReporter(
            ServiceNotifier(), LedgerHarness().ledger, clients=lambda: 0, check=check
        ).keep_reporting()


def able() -> None:
    """Read the store successfully."""


def unable() -> None:
    """Fail to read the store."""
    raise DiskRefuses("cannot be read")


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    with listen(bytes(tmp_path / "run" / "ctl" / "control.sock")) as listener:
        yield listener


async def test_a_daemon_that_accepts_and_closes_connections_is_healthy(listener: Listener) -> None:
    async def serve(stream: anyio.abc.SocketStream, *_: object) -> None:
        async with stream:
            async for _data in stream:
                pass

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(Acceptor(listener.socket, serve).serve)
            await check_daemon(LedgerHarness().ledger, able, lambda: listener.path)
            group.cancel_scope.cancel()


async def test_a_daemon_that_reads_or_accepts_nothing_is_unhealthy(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.daemon.health._ACCEPT_TIMEOUT_S", QUICK)
    ledger = LedgerHarness().ledger
    with pytest.raises(DiskRefuses):
        await check_daemon(ledger, unable, lambda: listener.path)
    with pytest.raises(TimeoutError):
        await check_daemon(ledger, able, lambda: listener.path)
    listener.close()
    with pytest.raises(DaemonUnreachable):
        await check_daemon(ledger, able, lambda: listener.path)


async def test_without_a_helper_callers_are_unknown_and_the_status_says_so() -> None:
    absent = UnavailableHelper("no room")
    assert await ProcessView(absent).look_up([1], (), ()) is None
    (sentence,) = await HelperProbe(absent).problems()
    assert sentence.startswith("the helper process could not be started: no room: ")
    assert "refuses every command that decides something" in sentence


class StoppedHelper:
    """A helper that runs and answers only once it may go on."""

    def __init__(self) -> None:
        self.asked, self.may_go_on = Event(), Event()
        self.has_answered = False

    def ask(self, task: HelperTask, question: bytes, seconds: float) -> bytes:
        self.asked.set()
        assert self.may_go_on.wait(HANG_GUARD)
        return b'{"lineages": {}, "terminals": {}}'

    def problem(self) -> str | None:
        return None

    def has_just_answered(self) -> bool:
        return self.has_answered

    def close(self) -> None:
        return


async def test_a_helper_that_is_stopped_degrades_the_daemon_until_it_answers() -> None:
    stopped = StoppedHelper()
    probe = HelperProbe(stopped, patience_s=0.01)
    with anyio.fail_after(HANG_GUARD):
        (sentence,) = await probe.problems()
        assert sentence.startswith("the helper process does not answer, and is being replaced: ")
        assert await probe.problems(), "the question is still open, and no second one is asked"
        stopped.may_go_on.set()
        patient = HelperProbe(stopped, HANG_GUARD)
        assert await patient.problems() == []


async def test_a_helper_that_has_just_answered_is_not_asked() -> None:
    helper = StoppedHelper()
    helper.has_answered = True
    assert await HelperProbe(helper).problems() == []
    assert not helper.asked.is_set()
