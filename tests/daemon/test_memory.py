"""What is held for work that is over is given back: after the start, and after more work."""

from __future__ import annotations

import anyio
import pytest
from anyio import from_thread

from rootsd.daemon.memory import keep_releasing_memory
from support.fakes import HANG_GUARD, World, sight


class FakeStore:
    """Tells when its pages were given back."""

    def __init__(self) -> None:
        self.forgot = anyio.Event()

    def forget_pages(self) -> None:
        from_thread.run_sync(self.forgot.set)

    async def forgets(self) -> None:
        with anyio.fail_after(HANG_GUARD):
            await self.forgot.wait()
        self.forgot = anyio.Event()


@pytest.fixture
async def store() -> FakeStore:
    return FakeStore()


async def test_the_store_gives_its_pages_back_after_the_start_and_after_what_is_written(
    store: FakeStore,
) -> None:
    ledger = World().ledger
    async with anyio.create_task_group() as group:
        group.start_soon(keep_releasing_memory, ledger, store, 0.01)
        await store.forgets()
        await ledger.observe([sight(1)])
        await store.forgets()
        await ledger.observe([sight(2)])
        await store.forgets()
        group.cancel_scope.cancel()


async def test_nothing_is_given_back_while_more_may_follow(store: FakeStore) -> None:
    ledger = World().ledger
    async with anyio.create_task_group() as group:
        group.start_soon(keep_releasing_memory, ledger, store, HANG_GUARD)
        for number in range(1, 4):
            await anyio.wait_all_tasks_blocked()
            await ledger.observe([sight(number)])
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert not store.forgot.is_set()
