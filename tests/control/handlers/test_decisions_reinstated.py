"""One order reinstates the approvals that a lost history ended, with their actors."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.core.decide import VerdictReason
from rootsd.core.errors import NotPresent, UnknownProject
from rootsd.core.history import CHAIN_START, events_for
from rootsd.core.model import Access, ActorKind, Lapse, LapseReason, Project, Ruling, Verdict
from rootsd.wire.decisions import ApplyMode, RemoveRuleRequest
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import Selection
from support.control_harness import APPROVE, ControlHarness
from support.ledger_harness import path, rule
from support.sample_decisions import NOON, add, after, decide, project


def _lost(number: int, by: ActorKind | None) -> Project:
    lapse = Lapse(LapseReason.STORE_RESTORED, NOON, by)
    return replace(project(number), ruling=Ruling(lapse=lapse))


def _reasons(control: ControlHarness, number: int) -> VerdictReason:
    return control.world.ledger.catalog.judgments[path(number)].reason


async def test_a_rule_reinstates_its_grants_and_a_person_reinstates_approvals() -> None:
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
async def test_an_order_with_changed_settings_approves_in_person(
    more: dict[str, Any],
) -> None:
    control = ControlHarness(_lost(1, ActorKind.RULE), rules=[rule(Verdict.PENDING)])
    await control.decide(APPROVE, select=Selection.LAPSED, **more)
    assert _reasons(control, 1) is VerdictReason.APPROVED


async def test_an_order_by_name_approves_in_person() -> None:
    control = ControlHarness(_lost(1, ActorKind.RULE), rules=[rule(Verdict.APPROVED)])
    assert await control.world.told() == set(), "a lost history may hold a denial"
    await control.decide(APPROVE, "p1")
    assert _reasons(control, 1) is VerdictReason.APPROVED


async def test_a_narrower_selection_reinstates_no_rule_and_approves_in_person() -> None:
    control = ControlHarness(_lost(1, ActorKind.RULE), rules=[rule(Verdict.PENDING)])
    await control.decide(APPROVE, select=Selection.LAPSED, under="/home/ann/src")
    assert _reasons(control, 1) is VerdictReason.APPROVED


async def test_one_undo_reverts_the_whole_reinstatement() -> None:
    lost = _lost(1, ActorKind.RULE)
    control = ControlHarness(lost, rules=[rule(Verdict.PENDING)])
    control.events = events_for(
        [add(rule(Verdict.PENDING)), decide(lost)], after(-60), CHAIN_START
    )
    await control.decide(APPROVE, select=Selection.LAPSED)
    await control.ask(UndoRequest(None))
    assert await control.world.told() == set()
    assert control.world.ledger.catalog.rules == (rule(Verdict.PENDING),)
    assert _reasons(control, 1) is VerdictReason.LAPSED


async def test_a_root_that_disappeared_is_not_reinstated() -> None:
    control = ControlHarness(_lost(1, ActorKind.RULE), rules=[rule(Verdict.PENDING)])
    control.world.disk.folders.clear()
    control.world.disk.is_trusting = False
    with pytest.raises(NotPresent):
        await control.decide(APPROVE, select=Selection.LAPSED)
    assert await control.world.told() == set()


async def test_without_a_lapsed_approval_the_error_says_so() -> None:
    control = ControlHarness(project(1))
    with pytest.raises(UnknownProject, match=r"^no approval there has lapsed"):
        await control.decide(APPROVE, select=Selection.LAPSED)
