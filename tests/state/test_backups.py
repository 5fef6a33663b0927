"""Backups are made when due, block nothing, and report failures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest

from rootsd.core.history import ChainHead
from rootsd.state.backups import MAX_PAUSE, RETRY_PAUSE, BackupScheduler, pause
from rootsd.state.store.database import DiskFull
from support.ledger_harness import HANG_GUARD, LedgerHarness, approve
from support.sample_decisions import NOON, project

HEAD = ChainHead(1, b"h" * 32)
DAY = timedelta(days=1)


class FakeStore:
    """A store with a clock that the test moves; `wrong` is raised instead of a copy."""

    def __init__(self) -> None:
        self.now = NOON
        self.made: list[datetime] = []
        self.is_empty = False
        self.wrong: Exception | None = None
        self.on_copy: Callable[[], None] = lambda: None
        self.on_verify: Callable[[], None] = lambda: None

    def backup_due_in(self, at: datetime) -> timedelta:
        return self.made[-1] + DAY - at if self.made else timedelta(0)

    def begin_backup(self) -> ChainHead | None:
        self.on_copy()
        if self.wrong is not None:
            raise self.wrong
        return None if self.is_empty else HEAD

    def finish_backup(self, head: ChainHead, at: datetime) -> Path:
        assert head == HEAD
        self.on_verify()
        self.made.append(at)
        return Path("backup")


class Enough(Exception):
    """The test has seen what it wanted."""


async def keep(
    backups: BackupScheduler,
    store: FakeStore,
    rounds: int,
    between: Callable[[], None] = lambda: None,
) -> list[timedelta]:
    """Keep backups for some rounds, the clock moving as fast as one waits; the pauses."""
    pauses: list[timedelta] = []

    async def jump(length: timedelta) -> None:
        pauses.append(length)
        store.now += length
        between()
        if len(pauses) == rounds:
            raise Enough

    with anyio.fail_after(HANG_GUARD), pytest.raises(Enough):
        await backups.keep(jump)
    return pauses


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
async def world() -> LedgerHarness:
    return LedgerHarness(project(1))


@pytest.fixture
async def backups(store: FakeStore, world: LedgerHarness) -> BackupScheduler:
    return BackupScheduler(store, world.ledger, lambda: store.now)


async def test_a_backup_is_made_at_the_start_and_once_a_day(
    store: FakeStore, backups: BackupScheduler
) -> None:
    assert await keep(backups, store, 9) == [MAX_PAUSE] * 9
    assert store.made == [NOON, NOON + DAY, NOON + 2 * DAY]
    assert backups.degraded() == []


async def test_without_decisions_there_is_no_backup(
    store: FakeStore, backups: BackupScheduler
) -> None:
    store.is_empty = True

    def decide() -> None:
        store.is_empty = store.now < NOON + 2 * MAX_PAUSE

    await keep(backups, store, 3, decide)
    assert store.made == [NOON + 2 * MAX_PAUSE]


async def test_a_failed_backup_is_reported_and_retried(
    store: FakeStore, backups: BackupScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    store.wrong = DiskFull("no room left", "free some space")
    assert await keep(backups, store, 2) == [RETRY_PAUSE, RETRY_PAUSE]
    assert backups.degraded() == ["the decisions could not be backed up: no room left"]
    assert "no room left" in caplog.text
    store.wrong = None
    await keep(backups, store, 1)
    assert backups.degraded() == []
    assert len(store.made) == 1


async def test_an_order_waits_for_the_copy_and_not_for_its_verification(
    store: FakeStore, world: LedgerHarness, backups: BackupScheduler
) -> None:
    copying, copied, obeyed = (threading.Event() for _ in range(3))
    order: list[str] = []

    def copy() -> None:
        copying.set()
        assert copied.wait(HANG_GUARD)
        order.append("copied")

    def verify() -> None:
        assert obeyed.wait(HANG_GUARD)
        order.append("verified")

    async def deny_one() -> None:
        await anyio.to_thread.run_sync(copying.wait, HANG_GUARD)
        copied.set()
        await world.ledger.execute([approve(1)])
        order.append("obeyed")
        obeyed.set()

    store.on_copy, store.on_verify = copy, verify
    async with anyio.create_task_group() as group:
        group.start_soon(deny_one)
        await keep(backups, store, 1)
    assert order == ["copied", "obeyed", "verified"]


async def test_a_pause_ends() -> None:
    with anyio.fail_after(HANG_GUARD):
        await pause(timedelta(milliseconds=1))
