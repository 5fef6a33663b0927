"""One order restores what a lost history took back, and by whom it was approved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rootsd.core.decide import VerdictReason
from rootsd.core.errors import NotPresent
from rootsd.core.history import CHAIN_START, events_for
from rootsd.core.model import Access, ActorKind, Lapse, LapseReason, Project, Ruling, Verdict
from rootsd.wire.decisions import ApplyMode, RemoveRuleRequest
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import Selection
from support.control_harness import APPROVE, ControlHarness
from support.decisions import NOON, add, after, decide, project
from support.fakes import path, rule


def _lost(number: int, by: ActorKind | None) -> Project:
    lapse = Lapse(LapseReason.STORE_RESTORED, NOON, by)
    return replace(project(number), ruling=Ruling(lapse=lapse))


def _ground(control: ControlHarness, number: int) -> VerdictReason:
    return control.world.ledger.catalog.judgments[path(number)].reason


async def test_what_a_rule_had_granted_is_the_rules_again_and_a_persons_approval_is_hers() -> None:
    lost = [_lost(1, ActorKind.RULE), _lost(2, ActorKind.PERSON), _lost(3, None)]
    control = ControlHarness(*lost, rules=[rule(Verdict.PENDING)])
    would = await control.decide(APPROVE, select=Selection.LAPSED, effect=ApplyMode.DRY_RUN)
    done = await control.decide(APPROVE, select=Selection.LAPSED)
    for told in (would, done):
        assert [(item["verdict"], item["note"]) for item in told["items"]] == [
            ("approved", "approve rule 1"),
            ("approved", None),
            ("approved", None),
        ]
    assert await control.world.told() == {path(1), path(2), path(3)}
    await control.ask(RemoveRuleRequest(1))
    assert await control.world.told() == {path(2), path(3)}, "what versions before did not tell"


@pytest.mark.parametrize(
    "more",
    [{"tags": ("work",)}, {"lasts": 60}, {"access": Access.READ}],
    ids=lambda m: next(iter(m)),
)
async def test_who_says_more_than_that_it_be_as_it_was_approves_in_person(
    more: dict[str, Any],
) -> None:
    control = ControlHarness(_lost(1, ActorKind.RULE), rules=[rule(Verdict.PENDING)])
    await control.decide(APPROVE, select=Selection.LAPSED, **more)
    assert _ground(control, 1) is VerdictReason.APPROVED


async def test_who_names_a_project_approves_it_in_person() -> None:
    control = ControlHarness(_lost(1, ActorKind.RULE), rules=[rule(Verdict.APPROVED)])
    assert await control.world.told() == set(), "a lost history may hold a denial"
    await control.decide(APPROVE, "p1")
    assert _ground(control, 1) is VerdictReason.APPROVED


async def test_of_some_that_lapsed_no_rule_is_restored_and_the_person_approves() -> None:
    control = ControlHarness(_lost(1, ActorKind.RULE), rules=[rule(Verdict.PENDING)])
    await control.decide(APPROVE, select=Selection.LAPSED, under="/home/ann/src")
    assert _ground(control, 1) is VerdictReason.APPROVED


async def test_what_was_restored_is_taken_back_in_one_piece() -> None:
    lost = _lost(1, ActorKind.RULE)
    control = ControlHarness(lost, rules=[rule(Verdict.PENDING)])
    control.events = events_for(
        [add(rule(Verdict.PENDING)), decide(lost)], after(-60), CHAIN_START
    )
    await control.decide(APPROVE, select=Selection.LAPSED)
    await control.ask(UndoRequest(None))
    assert await control.world.told() == set()
    assert control.world.ledger.catalog.rules == (rule(Verdict.PENDING),)
    assert _ground(control, 1) is VerdictReason.LAPSED


async def test_a_root_that_went_meanwhile_is_not_restored() -> None:
    control = ControlHarness(_lost(1, ActorKind.RULE), rules=[rule(Verdict.PENDING)])
    control.world.disk.folders.clear()
    control.world.disk.is_trusting = False
    with pytest.raises(NotPresent):
        await control.decide(APPROVE, select=Selection.LAPSED)
    assert await control.world.told() == set()
