"""Changes that took effect early are written later, in order, and once."""

from __future__ import annotations

import anyio
import pytest

from rootsd.core.changes import ChangeVerb, ProjectChange
from rootsd.state.write_behind import WriteBehindQueue
from support.ledger_harness import HANG_GUARD, DiskRefuses, FakeSaver, path
from support.sample_decisions import NOON, project


def change(number: int) -> ProjectChange:
    """Project `number` was found."""
    return ProjectChange(path(number), None, project(number), ChangeVerb.OBSERVED)


async def test_queued_changes_are_written_before_new_ones() -> None:
    saver = FakeSaver()
    backlog = WriteBehindQueue(saver, lambda: NOON)
    backlog.put([change(1)])
    backlog.put([change(2)])
    assert saver.batches == []
    assert len(backlog) == 2
    await backlog.write([change(3)])
    assert saver.batches == [(change(1), change(2), change(3))]
    await backlog.write()
    assert len(saver.batches) == 1, "nothing waits, so nothing is written"
    assert len(backlog) == 0


async def test_refused_changes_stay_queued_except_the_new_ones() -> None:
    saver = FakeSaver()
    backlog = WriteBehindQueue(saver, lambda: NOON)
    backlog.put([change(1)])
    saver.refusing = True
    with pytest.raises(DiskRefuses):
        await backlog.write([change(2)])
    assert backlog.is_refused
    saver.refusing, saved = False, backlog.next_save()
    await backlog.write()
    assert saver.batches == [(change(1),)]
    assert not backlog.is_refused
    assert saved.is_set()


async def test_changes_during_a_write_are_left_to_the_next_one() -> None:
    saver = FakeSaver()
    backlog = WriteBehindQueue(saver, lambda: NOON)
    backlog.put([change(1)])
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with saver.held_up() as busy:
                group.start_soon(backlog.write)
                await busy.wait()
                backlog.put([change(2)])
                group.start_soon(backlog.write, [change(3)])
                await anyio.wait_all_tasks_blocked()
    assert saver.batches == [(change(1),), (change(2), change(3))]


async def test_a_write_is_not_interrupted_and_nothing_is_written_twice() -> None:
    saver = FakeSaver()
    backlog = WriteBehindQueue(saver, lambda: NOON)
    backlog.put([change(1)])
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with saver.held_up() as busy:
                group.start_soon(backlog.write)
                await busy.wait()
                group.cancel_scope.cancel()
    await backlog.write()
    assert saver.batches == [(change(1),)]


async def test_only_one_caller_uses_the_store_at_a_time() -> None:
    saver = FakeSaver()
    backlog = WriteBehindQueue(saver, lambda: NOON)
    backlog.put([change(1)])
    seen: list[int] = []
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with saver.held_up() as busy:
                group.start_soon(backlog.write)
                await busy.wait()
                group.start_soon(backlog.run_exclusively, lambda: seen.append(len(saver.batches)))
                await anyio.wait_all_tasks_blocked()
                assert seen == []
    assert seen == [1]
