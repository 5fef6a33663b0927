"""The single writer with a refusing disk: which changes hold, fail, or follow later."""

from __future__ import annotations

import anyio
import pytest
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.errors import OrderRefused
from rootsd.core.inputs import Deny, Order, ProjectGone, ProjectUnreachable, RemoveRule
from rootsd.core.model import Verdict
from support.ledger_harness import (
    HANG_GUARD,
    SOURCES,
    DiskRefuses,
    LedgerHarness,
    add_rule,
    approve,
    deny,
    forget,
    path,
    rule,
    saving_again,
    sight,
    until_kept,
)
from support.sample_decisions import PERSON, approved, denied, granted, identity, project


async def test_an_approve_that_the_disk_refuses_raises_and_changes_nothing() -> None:
    world = LedgerHarness(approved(1), project(2))
    before, published = world.ledger.catalog, await world.ledger.current()
    world.saver.refusing = True
    for orders in ([approve(2)], [replace(approve(1), access=Access.READ)]):
        with pytest.raises(DiskRefuses):
            await world.ledger.execute(orders)
        assert world.ledger.catalog is before
        assert await world.ledger.current() is published
    assert world.ledger.unsaved == 0


async def test_a_deny_that_the_disk_refuses_holds_and_is_saved_later_or_with_the_next_write() -> (
    None
):
    world = LedgerHarness(approved(1), approved(2), project(3))
    world.saver.refusing = True
    async with saving_again(world.ledger):
        await world.ledger.execute([deny(1)])
        assert await world.told() == {path(2)}
        assert world.ledger.unsaved == 1
        assert not world.is_kept()
        world.saver.refusing = False
        await until_kept(world)
    assert await world.told() == {path(2)}
    world.saver.refusing = True
    await world.ledger.execute([deny(2)])
    await world.ledger.save_now()
    assert world.ledger.unsaved == 1
    world.saver.refusing = False
    await world.ledger.execute([approve(3)])
    assert [change.verb for change in world.saver.batches[-1]] == ["denied", "approved"]
    assert world.ledger.unsaved == 0
    assert world.is_kept()


@pytest.mark.parametrize(
    ("order", "verdict"),
    [
        (forget(1), Verdict.PENDING),
        (add_rule(Verdict.DENIED), Verdict.DENIED),
        (RemoveRule(7, PERSON), Verdict.PENDING),
    ],
    ids=["forget", "deny rule", "approve rule removed"],
)
async def test_every_narrowing_order_holds_if_the_disk_refuses(
    order: Order, verdict: Verdict
) -> None:
    by_rule = isinstance(order, RemoveRule)
    known = granted(1) if by_rule else approved(1)
    world = LedgerHarness(known, rules=[rule(Verdict.APPROVED, number=7)] if by_rule else [])
    assert await world.told() == {path(1)}
    world.saver.refusing = True
    await world.ledger.execute([order])
    assert await world.told() == set()
    assert world.verdict(path(1)) is verdict
    world.saver.refusing = False
    await world.ledger.save_now()
    assert world.is_kept()


@pytest.mark.parametrize(
    "order",
    [forget(1), add_rule(Verdict.APPROVED), RemoveRule(1, PERSON)],
    ids=["a denial forgotten", "approve rule", "deny rule removed"],
)
async def test_an_order_that_may_widen_is_refused_with_the_disk(order: Order) -> None:
    world = LedgerHarness(denied(1), rules=[rule(Verdict.DENIED)])
    before = world.ledger.catalog
    world.saver.refusing = True
    with pytest.raises(DiskRefuses):
        await world.ledger.execute([order])
    assert world.ledger.catalog is before


async def test_orders_are_never_carried_out_in_part() -> None:
    world = LedgerHarness(approved(1), project(2))
    before = world.ledger.catalog
    with pytest.raises(OrderRefused):
        await world.ledger.execute([deny(1), approve(9)])
    world.saver.refusing = True
    with pytest.raises(DiskRefuses):
        await world.ledger.execute([deny(1), approve(2)])
    assert world.ledger.catalog is before
    assert await world.told() == {path(1)}
    assert world.saver.batches == []


async def test_a_canceled_deny_that_the_disk_refuses_still_holds() -> None:
    world = LedgerHarness(approved(1))
    world.saver.refusing = True
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with world.saver.held_up() as busy:
                group.start_soon(world.ledger.execute, [deny(1)])
                await busy.wait()
                group.cancel_scope.cancel()
    assert await world.told() == set()
    assert world.ledger.unsaved == 1


async def test_a_grant_that_the_disk_refuses_comes_later() -> None:
    world = LedgerHarness(rules=[rule(Verdict.APPROVED)])
    world.disk.folders[path(1)] = identity(1)
    world.saver.refusing = True
    async with saving_again(world.ledger):
        await world.ledger.observe([sight(1)])
        assert await world.told() == set()
        assert world.verdict(path(1)) is Verdict.PENDING
        assert world.ledger.unsaved > 0
        world.saver.refusing = False
        await until_kept(world)
    assert await world.told() == {path(1)}
    assert world.is_kept()


async def test_a_replaced_root_of_a_rule_stays_out_while_the_disk_refuses() -> None:
    world = LedgerHarness(granted(1), approved(2), rules=[rule(Verdict.APPROVED)])
    world.saver.refusing = True
    world.disk.folders[path(1)] = identity(10)
    assert await world.told() == {path(2)}
    await world.ledger.execute([deny(2)])
    assert await world.told() == set()
    world.saver.refusing = False
    await world.ledger.save_now()
    assert await world.told() == {path(1)}
    assert world.ledger.unsaved == 0
    assert world.is_kept()


async def test_no_withdrawn_root_returns_with_a_later_write() -> None:
    world = LedgerHarness(
        approved(1), approved(2), rules=[rule(Verdict.APPROVED, SOURCES + b"/p3")]
    )
    world.disk.folders[path(3)] = identity(3)
    world.saver.refusing = True
    await world.ledger.observe([ProjectGone(path(1)), sight(3)])
    assert world.published() == {path(2)}
    world.saver.refusing = False
    await world.ledger.execute([deny(2)])
    assert path(1) not in world.published()


@pytest.mark.parametrize("later", [ProjectGone(path(1)), deny(1)], ids=["gone", "denied"])
async def test_a_deferred_grant_is_not_given_to_a_changed_project(
    later: ProjectGone | Deny,
) -> None:
    world = LedgerHarness(rules=[rule(Verdict.APPROVED)])
    world.disk.folders[path(1)] = identity(1)
    world.saver.refusing = True
    await world.ledger.observe([sight(1)])
    if isinstance(later, ProjectGone):
        await world.ledger.observe([later])
    else:
        await world.ledger.execute([later])
    world.saver.refusing = False
    await world.ledger.save_now()
    assert world.published() == set()
    assert world.ledger.unsaved == 0
    assert world.is_kept()


async def test_a_returning_root_does_not_wait_for_the_disk() -> None:
    world = LedgerHarness(approved(1))
    await world.ledger.observe([ProjectUnreachable(path(1))])
    assert await world.told() == set()
    world.saver.refusing = True
    await world.ledger.observe([sight(1)])
    assert await world.told() == {path(1)}
