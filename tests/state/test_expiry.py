"""Approvals with an end, through the ledger: on time, with any change of the clocks."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.inputs import Approve, Deny
from rootsd.core.model import LapseReason, Verdict
from rootsd.state.expiry import ExpiryTracker
from rootsd.state.ledger import Ledger
from support.ledger_harness import (
    HANG_GUARD,
    PLACES,
    SOURCES,
    LedgerHarness,
    approve,
    path,
    rule,
    saving_again,
    until_kept,
)
from support.sample_decisions import NOON, PERSON, approved, identity, project

HOUR = 3_600


async def _approve_for(world: LedgerHarness, number: int, seconds: int) -> None:
    expires = world.ledger.expiries.after(seconds)
    order = Approve(path(number), identity(number), PERSON, access=Access.READ, expires=expires)
    await world.ledger.execute([order])


async def _restarted(world: LedgerHarness) -> LedgerHarness:
    """Another daemon, with what the store of the first one holds, and the same clock."""
    after = LedgerHarness(*world.saver.projects.values(), rules=list(world.saver.rules.values()))
    after.clock = world.clock
    catalog = after.ledger.catalog
    expiries = ExpiryTracker(world.clock.now, world.clock)
    after.ledger = Ledger(catalog, after.saver, after.disk, expiries=expiries, now=lambda: NOON)
    return after


async def test_an_approval_ends_and_the_project_is_pending_again() -> None:
    world = LedgerHarness(project(1), approved(2))
    await _approve_for(world, 1, HOUR)
    world.clock.pass_time(HOUR - 1)
    assert await world.told() == {path(1), path(2)}
    world.clock.pass_time(1)
    assert await world.told() == {path(2)}
    known = world.ledger.catalog.projects[path(1)]
    assert world.ledger.catalog.is_pending(known)
    assert known.ruling.lapse is not None
    assert known.ruling.lapse.reason is LapseReason.EXPIRED
    assert not known.ruling.is_lapsed
    assert (known.ruling.name, known.ruling.kept_access) == ("p1", Access.READ)
    await world.ledger.save_now()
    assert world.is_kept()


async def test_waiting_clients_are_notified_at_the_end() -> None:
    world = LedgerHarness(project(1), project(2))
    async with anyio.create_task_group() as group:
        group.start_soon(world.ledger.keep_expiring)
        await _approve_for(world, 1, HOUR)
        await _approve_for(world, 2, 2 * HOUR)
        for left in ({path(2)}, set()):
            revision = world.ledger.revision
            world.clock.pass_time(HOUR)
            with anyio.fail_after(HANG_GUARD):
                await world.ledger.wait_for_revision_past(revision)
            assert world.published() == left
        group.cancel_scope.cancel()


async def test_the_alarm_is_set_only_for_the_next_end() -> None:
    world = LedgerHarness(project(1), project(2), project(3))
    start = world.clock.since_boot_ns
    assert world.clock.alarm is None
    for number, hours in ((1, 3), (2, 1), (3, 2)):
        await _approve_for(world, number, hours * HOUR)
    assert world.clock.alarm == start + HOUR * 10**9
    await world.ledger.execute([Deny(path(2), PERSON)])
    assert world.clock.alarm == start + 2 * HOUR * 10**9
    await world.ledger.execute([approve(3), approve(1)])  # without an end
    assert world.clock.alarm is None


@pytest.mark.parametrize("seconds", [HOUR - 1, HOUR])
async def test_the_end_survives_a_restart_of_the_daemon(seconds: int) -> None:
    world = LedgerHarness(project(1))
    await _approve_for(world, 1, HOUR)
    world.clock.pass_time(seconds)
    world.clock.wall -= timedelta(days=400)  # and it does not depend on the wall clock
    after = await _restarted(world)
    assert await after.told() == ({path(1)} if seconds < HOUR else set())


async def test_after_a_reboot_the_remaining_time_is_kept() -> None:
    world = LedgerHarness(project(1))
    await _approve_for(world, 1, HOUR)
    world.clock.boot_again(HOUR // 2)
    after = await _restarted(world)
    assert await after.told() == {path(1)}
    world.clock.wall -= timedelta(days=400)  # a jump while it runs changes nothing
    world.clock.since_boot_ns += (HOUR // 2) * 10**9 - 1
    assert await after.told() == {path(1)}
    world.clock.since_boot_ns += 1
    assert await after.told() == set()


async def test_an_end_holds_even_if_the_disk_refuses_it() -> None:
    world = LedgerHarness(project(1))
    await _approve_for(world, 1, HOUR)
    world.clock.pass_time(HOUR)
    world.saver.refusing = True
    assert await world.told() == set()
    await world.ledger.save_now()
    assert world.ledger.unsaved == 1
    assert not world.is_kept()
    world.saver.refusing = False
    async with saving_again(world.ledger):
        await until_kept(world)
    assert world.is_kept()


async def test_a_grant_of_a_rule_continues() -> None:
    world = LedgerHarness(project(1), rules=[rule(Verdict.APPROVED, SOURCES)])
    await _approve_for(world, 1, HOUR)
    world.clock.pass_time(HOUR)
    assert await world.told() == {path(1)}
    root = world.ledger.catalog.roots[path(1)]
    assert root.access is Access.READ
    assert world.ledger.catalog.projects[path(1)].ruling.lapse is None


def test_a_catalog_without_ends_does_not_read_the_clock() -> None:
    def never() -> object:
        raise AssertionError("asked for the time")

    world = LedgerHarness(approved(1))
    expiries = ExpiryTracker(never, world.clock)  # type: ignore[arg-type]
    catalog = Catalog.of([approved(1)], (), PLACES, 1)
    expiries.follow(catalog)
    assert expiries.ended(catalog) == []
