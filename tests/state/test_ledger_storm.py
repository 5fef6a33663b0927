"""The single writer under many callers at once, with an unreliable disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import anyio
import pytest
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.catalog import Catalog
from rootsd.core.errors import OrderRefused, RootsdError
from rootsd.core.inputs import (
    Approve,
    Observation,
    Order,
    ProjectGone,
    ProjectUnreachable,
    ProjectUnsafe,
    RemoveRule,
)
from rootsd.core.model import Focus, LapseReason, PublishedRoot, Verdict
from rootsd.state.ledger import Ledger
from support.ledger_harness import (
    LedgerHarness,
    add_rule,
    at,
    deny,
    forget,
    path,
    saving_again,
    sight,
    until_kept,
)
from support.sample_decisions import PERSON, identity, project
from support.sizes import Sizes


class _Owner:
    """Does at random what can be done to its own projects, and knows what clients may be told.

    Nobody else touches these, so what is to be told of them is certain between two steps.
    """

    def __init__(self, world: LedgerHarness, number: int, random: Random) -> None:
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
            await self.world.ledger.observe([ProjectGone(path(self.number))])

    async def approve(self) -> None:
        order = Approve(path(self.number), identity(self.directory), PERSON)
        try:
            await self.world.ledger.execute([order])
        except RootsdError:
            return
        self.may_be_told = True

    async def deny(self) -> None:
        try:
            await self.world.ledger.execute([deny(self.number)])
        except OrderRefused:
            return
        self.may_be_told = False

    async def forget(self) -> None:
        try:
            await self.world.ledger.execute([forget(self.number)])
        except RootsdError:
            return
        self.may_be_told = False

    async def pause(self) -> None:
        await self.world.ledger.observe([])


def recorded_sets(
    world: LedgerHarness, monkeypatch: pytest.MonkeyPatch
) -> list[dict[bytes, PublishedRoot]]:
    """Every published set from now on, each compared with a catalog judged from nothing."""
    sets = [dict(world.ledger.catalog.roots)]
    publish = world.ledger._publish

    def record(roots: tuple[PublishedRoot, ...], focus: Focus) -> None:
        revision = world.ledger.revision
        publish(roots, focus)
        assert world.ledger.revision == revision + 1
        catalog = world.ledger.catalog
        anew = Catalog.of(
            catalog.projects.values(), catalog.rules, catalog.places, catalog.next_rule
        )
        assert roots == anew.sorted_roots
        sets.append({root.path: root for root in roots})

    monkeypatch.setattr(world.ledger, "_publish", record)
    return sets


@pytest.mark.parametrize("seed", range(5))
async def test_under_load_each_client_gets_exactly_the_approved_roots(
    seed: int, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = sizes.pick(test=30, check=600, soak=1_800)
    random = Random(seed)  # noqa: S311 - a storm that comes again with its seed
    world = LedgerHarness()
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
    # How many depends on which task comes first, and on which writes are refused.
    assert len(sets) > 1


@pytest.mark.parametrize("seed", range(5))
async def test_under_load_the_set_equals_a_fresh_judgment(
    seed: int, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = sizes.pick(test=60, check=1_500, soak=4_500)
    random = Random(seed)  # noqa: S311 - a storm that comes again with its seed
    inside = [at(path(1) + b"/in", project(11)), at(path(1) + b"/in/most", project(12))]
    world = LedgerHarness(project(1), project(2), *inside)
    sets = recorded_sets(world, monkeypatch)

    async def order_at_random() -> None:
        for _ in range(rounds):
            world.saver.refusing = random.random() < 0.3
            try:
                await world.ledger.execute([random_order(random, world.ledger)])
            except RootsdError:
                continue

    async def observe_at_random() -> None:
        for _ in range(rounds):
            known = random.choice([project(1), project(2), *inside])
            seen = replace(sight(1, now=random.choice([1, 1, 1, 2])), path=known.path)
            unsafe = ProjectUnsafe(known.path, LapseReason.EXPOSED)
            others: list[Observation] = [
                ProjectGone(known.path),
                ProjectUnreachable(known.path),
                unsafe,
            ]
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
    # How many depends on which order comes first; a denial may stand for most of the storm.
    assert len(sets) > 1


def random_order(random: Random, ledger: Ledger) -> Order:
    """An order on what is known or might be."""
    catalog = ledger.catalog
    known = random.choice(list(catalog.projects.values()) or [project(1)])
    rule_number = random.choice([known_rule.number for known_rule in catalog.rules] or [1])
    approval = Approve(known.path, known.observed.identity, PERSON)
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


def assert_each_differs_from_the_one_before(sets: Sequence[dict[bytes, PublishedRoot]]) -> None:
    for before, after in pairwise(sets):
        assert before != after
