"""The single writer: what it publishes, with any disk and other callers."""

from __future__ import annotations

from datetime import datetime

import anyio
import pytest
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.changes import ProjectChange
from rootsd.core.errors import IdentityChanged, RefusedPlace
from rootsd.core.inputs import Approve, Order, ProjectGone, ProjectUnsafe
from rootsd.core.model import Lapse, LapseReason, PublishedSet, Verdict
from rootsd.state.ledger import Conflict
from support.ledger_harness import (
    HANG_GUARD,
    PLACES,
    SOURCES,
    LedgerHarness,
    approve,
    deny,
    path,
    rule,
    sight,
)
from support.sample_decisions import NOON, PERSON, approved, denied, granted, identity, project


async def test_an_empty_set_has_the_first_revision_and_a_loaded_set_the_next() -> None:
    assert LedgerHarness(project(1)).ledger.revision == 1
    world = LedgerHarness(approved(1))
    assert world.ledger.revision == 2
    with anyio.fail_after(HANG_GUARD):  # a client with an older revision does not wait
        published = await world.ledger.wait_for_revision_past(0)
    assert [root.name for root in published.roots] == ["p1"]


async def test_a_narrowing_change_takes_effect_before_it_is_saved() -> None:
    world = LedgerHarness(approved(1), approved(2), approved(3))
    seen: list[set[bytes]] = []
    world.saver.look_around = lambda: seen.append(world.published())
    await world.ledger.execute([deny(1)])
    await world.ledger.observe([ProjectGone(path(2))])
    await world.ledger.observe([sight(3, now=30)])
    assert seen == [{path(2), path(3)}, {path(3)}, set()]


@pytest.mark.parametrize("order", [deny(1), approve(2), replace(approve(1), access=Access.READ)])
async def test_waiting_clients_run_before_an_order_is_answered(order: Order) -> None:
    world = LedgerHarness(approved(1), project(2))
    before = world.ledger.revision
    woken: list[PublishedSet] = []

    async def wait() -> None:
        woken.append(await world.ledger.wait_for_revision_past(before))

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert woken == []
            await world.ledger.execute([order])
            assert [published.revision for published in woken] == [before + 1] * 50
    assert {root.path for root in woken[0].roots} == world.published()


async def test_a_widening_change_is_saved_before_it_takes_effect() -> None:
    world = LedgerHarness(project(1), rules=[rule(Verdict.APPROVED, SOURCES + b"/p2")])
    seen: list[set[bytes]] = []
    world.saver.look_around = lambda: seen.append(world.published())
    world.disk.folders[path(2)] = identity(2)
    await world.ledger.execute([approve(1)])
    await world.ledger.observe([sight(2)])
    assert seen == [set(), {path(1)}]
    assert await world.told() == {path(1), path(2)}


async def test_a_grant_to_a_new_project_wakes_those_who_watch_the_catalog_once() -> None:
    world = LedgerHarness(granted(2), rules=[rule(Verdict.APPROVED)])
    woken: list[set[bytes]] = []

    async def watch() -> None:
        catalog = world.ledger.catalog
        while True:
            catalog = await world.ledger.wait_for_change(catalog)
            woken.append(set(catalog.roots))

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await anyio.wait_all_tasks_blocked()
        await world.ledger.observe([sight(1)])
        await anyio.wait_all_tasks_blocked()
        assert woken == [{path(1), path(2)}]
        woken.clear()
        await world.ledger.observe([sight(3), sight(2, now=20)])
        await anyio.wait_all_tasks_blocked()
        control = "a root that was replaced goes at once"
        assert woken == [{path(1)}, {path(1), path(2), path(3)}], control
        group.cancel_scope.cancel()


async def test_a_replaced_root_of_a_rule_is_not_published_until_its_new_grant_is_saved() -> None:
    world = LedgerHarness(granted(1), rules=[rule(Verdict.APPROVED)])
    seen: list[set[bytes]] = []
    world.saver.look_around = lambda: seen.append(world.published())
    world.disk.folders[path(1)] = identity(10)
    assert await world.told() == {path(1)}
    assert seen == [set()]
    assert [change.verb for change in world.saver.batches[-1]] == ["lapsed", "granted"]


@pytest.mark.parametrize(
    ("order", "told"),
    [(approve(2), {path(1), path(2)}), (deny(1), set())],
    ids=["widen", "narrow"],
)
async def test_a_canceled_caller_leaves_store_and_memory_in_agreement(
    order: Order, told: set[bytes]
) -> None:
    world = LedgerHarness(approved(1), project(2))
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with world.saver.held_up() as busy:
                group.start_soon(world.ledger.execute, [order])
                await busy.wait()
                group.cancel_scope.cancel()
    assert await world.told() == told
    assert world.is_kept()


@pytest.mark.parametrize("order", [approve(2), deny(1)], ids=["widen", "narrow"])
async def test_a_caller_canceled_just_before_the_write_leaves_nothing_half_done(
    order: Order,
) -> None:
    world = LedgerHarness(approved(1), project(2))
    with anyio.CancelScope() as caller:

        def cancel() -> datetime:
            caller.cancel()
            return NOON

        world.ledger._now = cancel
        await world.ledger.execute([order])
    assert world.is_kept()
    assert world.ledger.unsaved == 0
    assert await world.told() in ({path(1), path(2)}, set())


async def test_a_caller_canceled_while_it_waits_changes_nothing() -> None:
    world = LedgerHarness(project(1), project(2))
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as others:
            with world.saver.held_up() as busy:
                others.start_soon(world.ledger.execute, [approve(1)])
                await busy.wait()
                async with anyio.create_task_group() as group:
                    group.start_soon(world.ledger.execute, [approve(2)])
                    await anyio.wait_all_tasks_blocked()
                    group.cancel_scope.cancel()
    assert await world.told() == {path(1)}
    assert world.is_kept()


async def test_a_replaced_folder_is_missing_from_the_very_next_answer() -> None:
    world = LedgerHarness(approved(1), approved(2))
    world.disk.folders[path(1)] = identity(10)
    assert await world.told() == {path(2)}
    del world.disk.folders[path(2)]
    with anyio.fail_after(HANG_GUARD):
        assert (await world.ledger.current()).roots == ()
    world.disk.folders[path(1)] = identity(1)
    assert await world.told() == set(), "the first directory came back: a person must look at it"


async def test_a_root_published_during_a_verification_is_verified_too() -> None:
    world = LedgerHarness(approved(1), project(2))
    told: list[set[bytes]] = []

    async def ask() -> None:
        told.append(await world.told())

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with world.saver.held_up() as busy:
                group.start_soon(world.ledger.execute, [approve(2)])
                await busy.wait()
                del world.disk.folders[path(1)]
                group.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                world.disk.folders[path(2)] = identity(20)
    assert told == [set()]


async def test_the_answer_without_a_lost_root_does_not_wait_for_the_disk() -> None:
    world = LedgerHarness(approved(1), approved(2))
    del world.disk.folders[path(1)]
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with world.saver.held_up() as busy:
                group.start_soon(world.ledger.observe, [sight(3)])
                await busy.wait()
                assert await world.told() == {path(2)}
    assert len(world.disk.asked) == 1
    assert not world.is_kept()
    await world.ledger.save_now()
    assert world.is_kept()


async def test_no_approval_is_saved_and_no_store_read_before_earlier_changes_are_saved() -> None:
    world = LedgerHarness(approved(1), project(2))
    del world.disk.folders[path(1)]
    assert await world.told() == set()
    assert world.saver.batches == []
    await world.ledger.execute([approve(2)])
    (batch,) = world.saver.batches
    changed = [change.path for change in batch if isinstance(change, ProjectChange)]
    assert changed == [path(1), path(2)]
    world.disk.folders[path(2)] = identity(10)
    assert await world.told() == set()
    assert await world.ledger.run_exclusively(world.is_kept) is True


async def test_an_unchanged_observation_causes_no_verification() -> None:
    world = LedgerHarness(approved(1))
    revision = world.ledger.revision
    world.disk.says = [sight(1)]
    assert await world.told() == {path(1)}
    assert world.ledger.revision == revision
    assert world.saver.batches == []


async def test_a_folder_replaced_since_it_was_shown_is_not_approved() -> None:
    world = LedgerHarness(approved(1), project(2))
    world.disk.folders[path(2)] = identity(20)
    revision = world.ledger.revision
    with pytest.raises(IdentityChanged):
        await world.ledger.execute([approve(2)])
    assert world.ledger.revision == revision
    assert world.verdict(path(2)) is Verdict.PENDING
    assert world.disk.asked == [], "whoever is asked about a part alone forgets the others"


@pytest.mark.parametrize("first", [approve(1), deny(1)])
async def test_an_overtaken_order_is_not_carried_out(first: Order) -> None:
    world = LedgerHarness(project(1))
    seen = world.ledger.catalog.projects[path(1)]
    await world.ledger.execute([first])
    before = world.ledger.catalog
    with pytest.raises(Conflict):
        await world.ledger.execute([approve(1, name="other")], seen=[seen])
    assert world.ledger.catalog is before


async def test_a_lapse_stops_a_waiting_approval_of_the_same_project() -> None:
    world = LedgerHarness(approved(1))
    seen = world.ledger.catalog.projects[path(1)]
    await world.ledger.observe([sight(1, now=10)])
    world.disk.folders[path(1)] = identity(10)
    with pytest.raises(IdentityChanged):
        await world.ledger.execute([replace(approve(1), tags=("x",))], seen=[seen])
    await world.ledger.execute([deny(1)], seen=[seen])
    assert world.verdict(path(1)) is Verdict.DENIED


async def test_a_dry_run_changes_nothing_and_returns_the_effect() -> None:
    world = LedgerHarness(project(1))
    before = world.ledger.catalog
    assert set(world.ledger.dry_run([approve(1)]).catalog.roots) == {path(1)}
    assert world.ledger.catalog is before
    assert world.saver.batches == []


async def test_the_revision_grows_by_one_only_with_each_change_of_the_set() -> None:
    world = LedgerHarness(approved(1), project(2))
    ledger, first = world.ledger, world.ledger.revision
    await ledger.execute([approve(2)])
    assert ledger.revision == first + 1
    await ledger.observe([sight(1), sight(2), sight(3)])
    assert ledger.revision == first + 1
    await ledger.execute([deny(3)])
    assert ledger.revision == first + 1
    await ledger.execute([Approve(path(1), identity(1), PERSON, "other", ("tag",))])
    assert ledger.revision == first + 2
    await ledger.execute([deny(1), deny(2)])
    assert ledger.revision == first + 3
    await ledger.execute([])
    assert ledger.revision == first + 3


async def test_an_approval_in_a_newly_refused_place_lapses() -> None:
    rules = [rule(Verdict.APPROVED, SOURCES)]
    world = LedgerHarness(approved(1), granted(2), approved(3), denied(4), project(5), rules=rules)
    refused = tuple(path(number) for number in (1, 2, 4, 5))
    await world.ledger.set_places(PLACES._replace(refused=refused))
    assert await world.told() == {path(3)}
    for number in (1, 2):
        ruling = world.ledger.catalog.projects[path(number)].ruling
        assert (ruling.approves, ruling.lapse) == (False, Lapse(LapseReason.REFUSED_PLACE, NOON))
    assert world.is_kept()
    await world.ledger.observe([sight(1), sight(2)])  # also once the rule has seen them again
    assert await world.told() == {path(3)}
    with pytest.raises(RefusedPlace, match="the configuration refuses it"):
        await world.ledger.execute([approve(1)])
    await world.ledger.set_places(PLACES)
    await world.ledger.execute([approve(1)])
    assert await world.told() == {path(1), path(3)}


async def test_newly_refused_places_are_recognized_under_other_names() -> None:
    world = LedgerHarness(approved(1), approved(2))
    world.disk.says = [ProjectUnsafe(path(1), LapseReason.REFUSED_PLACE)]
    await world.ledger.set_places(PLACES._replace(refused=(b"/elsewhere",)))
    assert world.published() == {path(2)}


async def test_an_unpublished_change_is_noticed_too() -> None:
    world = LedgerHarness(project(1))
    ledger, before, revision = world.ledger, world.ledger.catalog, world.ledger.revision
    seen: list[object] = []

    async def wait() -> None:
        seen.append(await ledger.wait_for_change(before))

    async def wait_for_either() -> None:
        await ledger.wait_for_catalog_or_focus(before, ledger.focus)
        seen.append(ledger.catalog)

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait_for_either)
            await anyio.wait_all_tasks_blocked()
            assert seen == []
            await ledger.execute([deny(1)])
    assert seen == [ledger.catalog] * 2
    assert ledger.revision == revision
