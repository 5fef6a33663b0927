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
from support.decisions import NOON, add, after, decide, project
from support.desks import APPROVE, Office
from support.fakes import path, rule


def _lost(number: int, by: ActorKind | None) -> Project:
    lapse = Lapse(LapseReason.STORE_RESTORED, NOON, by)
    return replace(project(number), ruling=Ruling(lapse=lapse))


def _ground(office: Office, number: int) -> VerdictReason:
    return office.world.ledger.catalog.judgments[path(number)].reason


async def test_what_a_rule_had_granted_is_the_rules_again_and_a_persons_approval_is_hers() -> None:
    lost = [_lost(1, ActorKind.RULE), _lost(2, ActorKind.PERSON), _lost(3, None)]
    office = Office(*lost, rules=[rule(Verdict.PENDING)])
    would = await office.decide(APPROVE, select=Selection.LAPSED, effect=ApplyMode.DRY_RUN)
    done = await office.decide(APPROVE, select=Selection.LAPSED)
    for told in (would, done):
        assert [(item["verdict"], item["note"]) for item in told["items"]] == [
            ("approved", "approve rule 1"),
            ("approved", None),
            ("approved", None),
        ]
    assert await office.world.told() == {path(1), path(2), path(3)}
    await office.ask(RemoveRuleRequest(1))
    assert await office.world.told() == {path(2), path(3)}, "what versions before did not tell"


@pytest.mark.parametrize(
    "more",
    [{"tags": ("work",)}, {"lasts": 60}, {"access": Access.READ}],
    ids=lambda m: next(iter(m)),
)
async def test_who_says_more_than_that_it_be_as_it_was_approves_in_person(
    more: dict[str, Any],
) -> None:
    office = Office(_lost(1, ActorKind.RULE), rules=[rule(Verdict.PENDING)])
    await office.decide(APPROVE, select=Selection.LAPSED, **more)
    assert _ground(office, 1) is VerdictReason.APPROVED


async def test_who_names_a_project_approves_it_in_person() -> None:
    office = Office(_lost(1, ActorKind.RULE), rules=[rule(Verdict.APPROVED)])
    assert await office.world.told() == set(), "a lost history may hold a denial"
    await office.decide(APPROVE, "p1")
    assert _ground(office, 1) is VerdictReason.APPROVED


async def test_of_some_that_lapsed_no_rule_is_restored_and_the_person_approves() -> None:
    office = Office(_lost(1, ActorKind.RULE), rules=[rule(Verdict.PENDING)])
    await office.decide(APPROVE, select=Selection.LAPSED, under="/home/ann/src")
    assert _ground(office, 1) is VerdictReason.APPROVED


async def test_what_was_restored_is_taken_back_in_one_piece() -> None:
    lost = _lost(1, ActorKind.RULE)
    office = Office(lost, rules=[rule(Verdict.PENDING)])
    office.events = events_for([add(rule(Verdict.PENDING)), decide(lost)], after(-60), CHAIN_START)
    await office.decide(APPROVE, select=Selection.LAPSED)
    await office.ask(UndoRequest(None))
    assert await office.world.told() == set()
    assert office.world.ledger.catalog.rules == (rule(Verdict.PENDING),)
    assert _ground(office, 1) is VerdictReason.LAPSED


async def test_a_root_that_went_meanwhile_is_not_restored() -> None:
    office = Office(_lost(1, ActorKind.RULE), rules=[rule(Verdict.PENDING)])
    office.world.disk.folders.clear()
    office.world.disk.is_trusting = False
    with pytest.raises(NotPresent):
        await office.decide(APPROVE, select=Selection.LAPSED)
    assert await office.world.told() == set()
