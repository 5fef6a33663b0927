"""The single writer: what is published when, whatever the disk and other callers do meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from random import Random

import anyio
import pytest

from rootsd.app.ledger import Ledger, Overtaken
from rootsd.core.catalog import Catalog
from rootsd.core.errors import IdentityChanged, OrderRefused, RootsdError
from rootsd.core.inputs import (
    Approve,
    Observation,
    Order,
    RemoveRule,
    Unreachable,
    Unsafe,
    Vanished,
)
from rootsd.core.model import Access, LapseReason, Published, Root, Verdict
from support.decisions import NOON, PERSON, approved, denied, granted, identity, project
from support.fakes import (
    HANG_GUARD,
    SOURCES,
    DiskRefuses,
    World,
    add_rule,
    approve,
    at,
    deny,
    forget,
    path,
    rule,
    sight,
)
from support.sizes import Sizes

AT_ONCE = (0.0,)


@asynccontextmanager
async def saving_again(ledger: Ledger) -> AsyncIterator[None]:
    """The ledger's own task, which asks the disk again without a pause."""
    async with anyio.create_task_group() as group:
        group.start_soon(ledger.keep_saving, AT_ONCE)
        yield
        group.cancel_scope.cancel()


async def until_kept(world: World) -> None:
    with anyio.fail_after(HANG_GUARD):
        while world.ledger.unsaved:
            await anyio.lowlevel.checkpoint()


async def test_a_waiting_client_wakes_when_a_root_is_approved() -> None:
    world = World(project(1))
    woken: list[Published] = []

    async def wait() -> None:
        woken.append(await world.ledger.wait_past(world.ledger.revision))

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert woken == []
            await world.ledger.obey([approve(1)])
    assert [[root.name for root in published.roots] for published in woken] == [["p1"]] * 3


async def test_whoever_is_behind_does_not_wait() -> None:
    world = World(approved(1))
    with anyio.fail_after(HANG_GUARD):
        assert [root.name for root in (await world.ledger.wait_past(0)).roots] == ["p1"]


async def test_an_approve_that_the_disk_refuses_raises_and_changes_nothing() -> None:
    world = World(approved(1), project(2))
    before, published = world.ledger.catalog, await world.ledger.current()
    world.saver.refusing = True
    for orders in ([approve(2)], [replace(approve(1), access=Access.READ)]):
        with pytest.raises(DiskRefuses):
            await world.ledger.obey(orders)
        assert world.ledger.catalog is before
        assert await world.ledger.current() is published
    assert world.ledger.unsaved == 0


async def test_a_deny_that_the_disk_refuses_holds_and_is_written_later() -> None:
    world = World(approved(1), approved(2))
    world.saver.refusing = True
    async with saving_again(world.ledger):
        await world.ledger.obey([deny(1)])
        assert await world.told() == {path(2)}
        assert world.ledger.unsaved == 1
        assert not world.is_kept()
        world.saver.refusing = False
        await until_kept(world)
    assert await world.told() == {path(2)}
    assert world.is_kept()


async def test_a_deny_that_was_refused_goes_along_with_the_next_write() -> None:
    world = World(approved(1), project(2))
    world.saver.refusing = True
    await world.ledger.obey([deny(1)])
    world.saver.refusing = False
    await world.ledger.obey([approve(2)])
    assert world.ledger.unsaved == 0
    assert [change.verb for change in world.saver.batches[-1]] == ["denied", "approved"]
    assert world.is_kept()


async def test_a_last_attempt_before_the_end_saves_what_the_disk_had_refused() -> None:
    world = World(approved(1))
    world.saver.refusing = True
    await world.ledger.obey([deny(1)])
    await world.ledger.save_now()
    assert world.ledger.unsaved == 1
    world.saver.refusing = False
    await world.ledger.save_now()
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
async def test_every_order_that_only_narrows_holds_where_the_disk_refuses(
    order: Order, verdict: Verdict
) -> None:
    by_rule = isinstance(order, RemoveRule)
    known = granted(1) if by_rule else approved(1)
    world = World(known, rules=[rule(Verdict.APPROVED, number=7)] if by_rule else [])
    assert await world.told() == {path(1)}
    world.saver.refusing = True
    await world.ledger.obey([order])
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
    world = World(denied(1), rules=[rule(Verdict.DENIED)])
    before = world.ledger.catalog
    world.saver.refusing = True
    with pytest.raises(DiskRefuses):
        await world.ledger.obey([order])
    assert world.ledger.catalog is before


async def test_orders_are_never_carried_out_in_part() -> None:
    world = World(approved(1), project(2))
    before = world.ledger.catalog
    with pytest.raises(OrderRefused):
        await world.ledger.obey([deny(1), approve(9)])
    world.saver.refusing = True
    with pytest.raises(DiskRefuses):
        await world.ledger.obey([deny(1), approve(2)])
    assert world.ledger.catalog is before
    assert await world.told() == {path(1)}
    assert world.saver.batches == []


async def test_what_narrows_takes_effect_before_it_is_saved() -> None:
    world = World(approved(1), approved(2), approved(3))
    seen: list[set[bytes]] = []
    world.saver.look_around = lambda: seen.append(world.published())
    await world.ledger.obey([deny(1)])
    await world.ledger.observe([Vanished(path(2))])
    await world.ledger.observe([sight(3, now=30)])
    assert seen == [{path(2), path(3)}, {path(3)}, set()]


async def test_what_widens_is_saved_before_it_takes_effect() -> None:
    world = World(project(1), rules=[rule(Verdict.APPROVED, SOURCES + b"/p2")])
    seen: list[set[bytes]] = []
    world.saver.look_around = lambda: seen.append(world.published())
    world.disk.folders[path(2)] = identity(2)
    await world.ledger.obey([approve(1)])
    await world.ledger.observe([sight(2)])
    assert seen == [set(), {path(1)}]
    assert await world.told() == {path(1), path(2)}


async def test_a_replaced_root_of_a_rule_is_not_published_until_its_new_grant_is_saved() -> None:
    world = World(granted(1), rules=[rule(Verdict.APPROVED)])
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
async def test_a_caller_that_is_cancelled_leaves_store_and_memory_in_agreement(
    order: Order, told: set[bytes]
) -> None:
    world = World(approved(1), project(2))
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with world.saver.held_up() as busy:
                group.start_soon(world.ledger.obey, [order])
                await busy.wait()
                group.cancel_scope.cancel()
    assert await world.told() == told
    assert world.is_kept()


async def test_a_cancelled_deny_that_the_disk_refuses_holds_all_the_same() -> None:
    world = World(approved(1))
    world.saver.refusing = True
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with world.saver.held_up() as busy:
                group.start_soon(world.ledger.obey, [deny(1)])
                await busy.wait()
                group.cancel_scope.cancel()
    assert await world.told() == set()
    assert world.ledger.unsaved == 1


@pytest.mark.parametrize("order", [approve(2), deny(1)], ids=["widen", "narrow"])
async def test_a_caller_that_is_cancelled_just_before_the_write_leaves_nothing_half_done(
    order: Order,
) -> None:
    world = World(approved(1), project(2))
    with anyio.CancelScope() as caller:

        def cancel() -> datetime:
            caller.cancel()
            return NOON

        world.ledger._now = cancel
        await world.ledger.obey([order])
    assert world.is_kept()
    assert world.ledger.unsaved == 0
    assert await world.told() in ({path(1), path(2)}, set())


async def test_a_caller_that_is_cancelled_while_it_waits_for_another_did_nothing() -> None:
    world = World(project(1), project(2))
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as others:
            with world.saver.held_up() as busy:
                others.start_soon(world.ledger.obey, [approve(1)])
                await busy.wait()
                async with anyio.create_task_group() as group:
                    group.start_soon(world.ledger.obey, [approve(2)])
                    await anyio.wait_all_tasks_blocked()
                    group.cancel_scope.cancel()
    assert await world.told() == {path(1)}
    assert world.is_kept()


async def test_a_grant_that_the_disk_refuses_comes_later() -> None:
    world = World(rules=[rule(Verdict.APPROVED)])
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
    world = World(granted(1), approved(2), rules=[rule(Verdict.APPROVED)])
    world.saver.refusing = True
    world.disk.folders[path(1)] = identity(10)
    assert await world.told() == {path(2)}
    await world.ledger.obey([deny(2)])
    assert await world.told() == set()
    world.saver.refusing = False
    await world.ledger.save_now()
    assert await world.told() == {path(1)}
    assert world.ledger.unsaved == 0
    assert world.is_kept()


async def test_nothing_that_was_withdrawn_comes_back_with_a_later_write() -> None:
    world = World(approved(1), approved(2), rules=[rule(Verdict.APPROVED, SOURCES + b"/p3")])
    world.disk.folders[path(3)] = identity(3)
    world.saver.refusing = True
    await world.ledger.observe([Vanished(path(1)), sight(3)])
    assert world.published() == {path(2)}
    world.saver.refusing = False
    await world.ledger.obey([deny(2)])
    assert path(1) not in world.published()


@pytest.mark.parametrize(
    "later",
    [Vanished(path(1)), Unreachable(path(1)), Unsafe(path(1), LapseReason.EXPOSED), deny(1)],
    ids=lambda later: type(later).__name__,
)
async def test_a_grant_that_is_owed_is_not_given_to_what_has_changed_since(
    later: Vanished | Unreachable | Unsafe,
) -> None:
    world = World(rules=[rule(Verdict.APPROVED)])
    world.disk.folders[path(1)] = identity(1)
    world.saver.refusing = True
    await world.ledger.observe([sight(1)])
    if isinstance(later, Vanished | Unreachable | Unsafe):
        await world.ledger.observe([later])
    else:
        await world.ledger.obey([later])
    world.saver.refusing = False
    await world.ledger.save_now()
    assert world.published() == set()
    assert world.ledger.unsaved == 0
    assert world.is_kept()


async def test_a_deny_holds_also_while_grants_wait_for_the_disk() -> None:
    world = World(granted(1), rules=[rule(Verdict.APPROVED)])
    world.saver.refusing = True
    await world.ledger.observe([sight(2)])
    await world.ledger.obey([deny(1)])
    assert await world.told() == set()
    assert world.verdict(path(1)) is Verdict.DENIED


async def test_what_only_comes_back_needs_no_consent_of_the_disk() -> None:
    world = World(approved(1))
    await world.ledger.observe([Unreachable(path(1))])
    assert await world.told() == set()
    world.saver.refusing = True
    await world.ledger.observe([sight(1)])
    assert await world.told() == {path(1)}


async def test_a_folder_that_was_replaced_is_out_of_the_very_next_answer() -> None:
    world = World(approved(1), approved(2))
    world.disk.folders[path(1)] = identity(10)
    assert await world.told() == {path(2)}
    del world.disk.folders[path(2)]
    with anyio.fail_after(HANG_GUARD):
        assert (await world.ledger.wait_past(0)).roots == ()
    world.disk.folders[path(1)] = identity(1)
    assert await world.told() == set(), "the first directory came back: a person must look at it"


async def test_what_was_published_while_a_doubt_was_taken_in_is_verified_too() -> None:
    world = World(approved(1), project(2))
    told: list[set[bytes]] = []

    async def ask() -> None:
        told.append(await world.told())

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with world.saver.held_up() as busy:
                group.start_soon(world.ledger.obey, [approve(2)])
                await busy.wait()
                del world.disk.folders[path(1)]
                group.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                world.disk.folders[path(2)] = identity(20)
    assert told == [set()]


async def test_a_sighting_that_tells_nothing_new_is_no_doubt() -> None:
    world = World(approved(1))
    revision = world.ledger.revision
    world.disk.says = [sight(1)]
    assert await world.told() == {path(1)}
    assert world.ledger.revision == revision
    assert world.saver.batches == []


async def test_what_was_replaced_since_it_was_shown_is_not_approved() -> None:
    world = World(approved(1), project(2))
    world.disk.folders[path(2)] = identity(20)
    revision = world.ledger.revision
    with pytest.raises(IdentityChanged):
        await world.ledger.obey([approve(2)])
    assert world.ledger.revision == revision
    assert world.verdict(path(2)) is Verdict.PENDING
    assert path(1) in world.disk.asked[-1], "a verifier forgets what it is not asked about"


@pytest.mark.parametrize("first", [approve(1), deny(1)])
async def test_an_order_that_was_overtaken_is_not_carried_out(first: Order) -> None:
    world = World(project(1))
    seen = world.ledger.catalog.projects[path(1)]
    await world.ledger.obey([first])
    before = world.ledger.catalog
    with pytest.raises(Overtaken):
        await world.ledger.obey([approve(1, name="other")], seen=[seen])
    assert world.ledger.catalog is before


async def test_a_lapse_overtakes_no_order_and_stops_the_approval_of_what_lapsed() -> None:
    world = World(approved(1))
    seen = world.ledger.catalog.projects[path(1)]
    await world.ledger.observe([sight(1, now=10)])
    world.disk.folders[path(1)] = identity(10)
    with pytest.raises(IdentityChanged):
        await world.ledger.obey([replace(approve(1), tags=("x",))], seen=[seen])
    await world.ledger.obey([deny(1)], seen=[seen])
    assert world.verdict(path(1)) is Verdict.DENIED


async def test_a_rehearsal_changes_nothing_and_tells_what_would_be() -> None:
    world = World(project(1))
    before = world.ledger.catalog
    assert set(world.ledger.rehearse([approve(1)]).catalog.roots) == {path(1)}
    assert world.ledger.catalog is before
    assert world.saver.batches == []


async def test_the_revision_grows_by_one_with_each_change_of_the_set_and_never_else() -> None:
    world = World(approved(1), project(2))
    ledger, first = world.ledger, world.ledger.revision
    await ledger.obey([approve(2)])
    assert ledger.revision == first + 1
    await ledger.observe([sight(1), sight(2), sight(3)])
    assert ledger.revision == first + 1
    await ledger.obey([deny(3)])
    assert ledger.revision == first + 1
    await ledger.obey([Approve(path(1), identity(1), PERSON, "other", ("tag",))])
    assert ledger.revision == first + 2
    await ledger.obey([deny(1), deny(2)])
    assert ledger.revision == first + 3
    await ledger.obey([])
    assert ledger.revision == first + 3


def test_an_empty_set_has_the_first_revision_and_what_was_loaded_the_next() -> None:
    assert World(project(1)).ledger.revision == 1
    assert World(approved(1)).ledger.revision == 2


class _Owner:
    """Does at random what can be done to its own projects, and knows what clients may be told.

    Nobody else touches these, so what is to be told of them is certain between two steps.
    """

    def __init__(self, world: World, number: int, random: Random) -> None:
        self.world = world
        self.number = number
        self.random = random
        self.may_be_told = False
        self.directory = number

    async def live(self, steps: int) -> None:
        for _ in range(steps):
            await self.random.choice(
                [self.look, self.replace, self.vanish, self.approve, self.approve, self.deny,
                 self.forget, self.pause]
            )()  # fmt: skip
            told = await self.world.told()
            assert (path(self.number) in told) is self.may_be_told

    async def look(self) -> None:
        there = self.world.disk.folders.setdefault(path(self.number), identity(self.directory))
        known = self.world.ledger.catalog.projects.get(path(self.number))
        decision = known.ruling.decision if known else None
        held = decision is not None and decision.verdict is Verdict.APPROVED
        await self.world.ledger.observe([sight(self.number, now=self.directory)])
        self.may_be_told = held and decision is not None and decision.identity == there

    async def replace(self) -> None:
        self.directory += 1000
        self.world.disk.folders[path(self.number)] = identity(self.directory)
        self.may_be_told = False
        if self.random.random() < 0.5:
            await self.look()

    async def vanish(self) -> None:
        self.world.disk.folders.pop(path(self.number), None)
        self.may_be_told = False
        if self.random.random() < 0.5:
            await self.world.ledger.observe([Vanished(path(self.number))])

    async def approve(self) -> None:
        order = Approve(path(self.number), identity(self.directory), PERSON)
        try:
            await self.world.ledger.obey([order])
        except RootsdError:
            return
        self.may_be_told = True

    async def deny(self) -> None:
        try:
            await self.world.ledger.obey([deny(self.number)])
        except OrderRefused:
            return
        self.may_be_told = False

    async def forget(self) -> None:
        try:
            await self.world.ledger.obey([forget(self.number)])
        except RootsdError:
            return
        self.may_be_told = False

    async def pause(self) -> None:
        await self.world.ledger.observe([])


def recorded_sets(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[bytes, Root]]:
    """Every published set from now on, each compared with a catalogue judged from nothing."""
    sets = [dict(world.ledger.catalog.roots)]
    publish = world.ledger._publish

    def record(roots: dict[bytes, Root]) -> None:
        revision = world.ledger.revision
        publish(roots)
        assert world.ledger.revision == revision + 1
        catalog = world.ledger.catalog
        anew = Catalog.of(
            catalog.projects.values(), catalog.rules, catalog.places, catalog.next_rule
        )
        assert roots == anew.roots
        sets.append(dict(roots))

    monkeypatch.setattr(world.ledger, "_publish", record)
    return sets


@pytest.mark.parametrize("seed", range(5))
async def test_in_a_storm_each_client_is_told_just_what_is_approved_at_that_moment(
    seed: int, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = sizes.pick(test=60, check=600, soak=10_000)
    random = Random(seed)  # noqa: S311 - a storm that comes again with its seed
    world = World()
    sets = recorded_sets(world, monkeypatch)

    async def be_moody() -> None:
        while True:
            world.saver.refusing = random.random() < 0.3
            await world.ledger.observe([sight(99, now=random.randrange(10**6))])
            await world.ledger.save_now()

    async with saving_again(world.ledger), anyio.create_task_group() as group:
        group.start_soon(be_moody)
        async with anyio.create_task_group() as owners:
            for number in range(8):
                owners.start_soon(_Owner(world, number, random).live, steps)
        group.cancel_scope.cancel()
    world.saver.refusing = False
    await world.ledger.save_now()
    assert world.is_kept()
    assert_each_differs_from_the_one_before(sets)
    assert len(sets) > 10


@pytest.mark.parametrize("seed", range(5))
async def test_in_a_storm_below_rules_and_denials_the_set_is_what_a_fresh_judgement_gives(
    seed: int, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = sizes.pick(test=150, check=1_500, soak=20_000)
    random = Random(seed)  # noqa: S311 - a storm that comes again with its seed
    inside = [at(path(1) + b"/in", project(11)), at(path(1) + b"/in/most", project(12))]
    world = World(project(1), project(2), *inside)
    sets = recorded_sets(world, monkeypatch)

    async def order_at_random() -> None:
        for _ in range(rounds):
            world.saver.refusing = random.random() < 0.3
            try:
                await world.ledger.obey([random_order(random, world.ledger)])
            except RootsdError:
                continue

    async def observe_at_random() -> None:
        for _ in range(rounds):
            known = random.choice([project(1), project(2), *inside])
            seen = replace(sight(1, now=random.choice([1, 1, 1, 2])), path=known.path)
            unsafe = Unsafe(known.path, LapseReason.EXPOSED)
            others: list[Observation] = [Vanished(known.path), Unreachable(known.path), unsafe]
            world.disk.folders[known.path] = identity(1)
            await world.ledger.observe([seen, *random.choices(others, k=random.choice([0, 0, 1]))])

    async with saving_again(world.ledger):
        async with anyio.create_task_group() as group:
            group.start_soon(order_at_random)
            group.start_soon(order_at_random)
            group.start_soon(observe_at_random)
        world.saver.refusing = False
        await until_kept(world)
    assert world.is_kept()
    assert_each_differs_from_the_one_before(sets)
    assert len(sets) > 5


def random_order(random: Random, ledger: Ledger) -> Order:
    """An order on what is known or might be."""
    catalog = ledger.catalog
    known = random.choice(list(catalog.projects.values()) or [project(1)])
    rule_number = random.choice([rule.number for rule in catalog.rules] or [1])
    approval = Approve(known.path, known.sighting.identity, PERSON)
    orders: Sequence[Order] = (
        approval,
        approval,
        replace(approval, access=Access.READ),
        replace(deny(1), path=known.path),
        replace(forget(1), path=known.path),
        replace(forget(1), path=known.path),
        add_rule(random.choice([Verdict.APPROVED, Verdict.DENIED]), known.path),
        RemoveRule(rule_number, PERSON),
        RemoveRule(rule_number, PERSON),
    )
    return random.choice(orders)


def assert_each_differs_from_the_one_before(sets: Sequence[dict[bytes, Root]]) -> None:
    for before, after in pairwise(sets):
        assert before != after
