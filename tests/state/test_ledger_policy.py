"""The ledger under the machine's policy: nothing widens without the disk, and nothing is lost."""

from __future__ import annotations

import pytest

from rootsd.core.errors import RefusedPlace
from rootsd.core.inputs import ProjectUnsafe
from rootsd.core.model import LapseReason, Verdict
from rootsd.core.paths import PolicyEntry
from rootsd.core.policy import NO_POLICY, MachinePolicy, broken_policy
from support.ledger_harness import (
    PLACES,
    SOURCES,
    LedgerHarness,
    approve,
    path,
    rule,
    saving_again,
    sight,
    until_kept,
)
from support.sample_decisions import approved, denied, granted, project

BROKEN = broken_policy("users other than root can write to the file")


def entry(pattern: bytes) -> PolicyEntry:
    return PolicyEntry(pattern, "the policy, line 4")


def refusing(*places: bytes) -> MachinePolicy:
    return MachinePolicy(refused=tuple(map(entry, places)), is_present=True)


def denying(*patterns: bytes) -> MachinePolicy:
    return MachinePolicy(denied=tuple(map(entry, patterns)), is_present=True)


def approving(*patterns: bytes) -> MachinePolicy:
    return MachinePolicy(approved=tuple(map(entry, patterns)), is_present=True)


@pytest.mark.parametrize("policy", [refusing(path(1)), denying(path(1)), BROKEN])
async def test_what_the_policy_denies_leaves_at_once_and_no_decision_changes(
    policy: MachinePolicy,
) -> None:
    rules = [rule(Verdict.APPROVED, path(3))]
    world = LedgerHarness(approved(1), approved(2), granted(3), denied(4), rules=rules)
    before = world.ledger.catalog
    world.saver.refusing = True  # the disk need not take anything
    await world.ledger.set_policy(policy)
    assert await world.told() == (set() if policy.problem else {path(2), path(3)})
    assert world.ledger.catalog.projects == before.projects
    assert world.is_kept()
    await world.ledger.set_policy(NO_POLICY)
    assert await world.told() == {path(1), path(2), path(3)}
    assert world.ledger.catalog == before


async def test_a_reload_of_the_configuration_keeps_the_places_of_the_policy() -> None:
    world = LedgerHarness(approved(1), project(2))
    await world.ledger.set_policy(refusing(SOURCES))
    await world.ledger.set_places(PLACES._replace(allowed=(SOURCES,)))
    assert await world.told() == set()
    with pytest.raises(RefusedPlace, match="the policy, line 4"):
        await world.ledger.execute([approve(2)])
    assert world.ledger.catalog.projects[path(1)].ruling == approved(1).ruling


async def test_a_place_that_the_configuration_refuses_too_lapses_as_before() -> None:
    world = LedgerHarness(approved(1))
    await world.ledger.set_policy(refusing(path(1)))
    await world.ledger.set_places(PLACES._replace(refused=(path(1),)))
    await world.ledger.set_policy(NO_POLICY)
    lapse = world.ledger.catalog.projects[path(1)].ruling.lapse
    assert lapse is not None
    assert lapse.reason is LapseReason.REFUSED_PLACE


async def test_another_name_of_a_refused_place_is_withheld_and_comes_back() -> None:
    world = LedgerHarness(approved(1), approved(2))
    world.disk.says = [ProjectUnsafe(path(1), LapseReason.POLICY)]
    await world.ledger.set_policy(refusing(b"/elsewhere"))
    assert world.published() == {path(2)}
    await world.ledger.save_now()
    assert world.is_kept()
    await world.ledger.set_policy(NO_POLICY)
    await world.ledger.observe([sight(1)])
    assert await world.told() == {path(1), path(2)}


async def test_the_policy_approves_only_what_the_disk_has_saved() -> None:
    world = LedgerHarness(project(1), project(2))
    world.saver.refusing = True
    await world.ledger.set_policy(approving(path(1)))
    assert world.published() == set()
    world.saver.refusing = False
    async with saving_again(world.ledger):
        await until_kept(world)
    assert await world.told() == {path(1)}
    assert world.is_kept()


async def test_an_approve_rule_of_the_policy_ends_and_begins_with_it() -> None:
    world = LedgerHarness(project(1), denied(2))
    for policy, told in (
        (approving(SOURCES), {path(1)}),
        (BROKEN, set()),
        (approving(SOURCES), {path(1)}),
        (NO_POLICY, set()),
        (approving(SOURCES), {path(1)}),
    ):
        await world.ledger.set_policy(policy)
        assert await world.told() == told
        assert world.is_kept()
    await world.ledger.set_policy(NO_POLICY)
    assert not world.ledger.catalog.projects[path(1)].ruling.grants
