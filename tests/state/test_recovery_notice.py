"""The notice about lost decisions stays until a person has dealt with it."""

from __future__ import annotations

from msgspec.structs import replace

from rootsd.core.inputs import ApproveRule
from rootsd.core.model import Lapse, LapseReason, Project, Ruling, Verdict
from rootsd.state.recovery_notice import RecoveryNotice
from support.ledger_harness import LedgerHarness, approve, deny, missing, rule
from support.sample_decisions import NOON, PERSON, project

NOTE = "decisions.db was damaged and has been rebuilt."


def _lost(number: int) -> Project:
    lapse = Lapse(LapseReason.STORE_RESTORED, NOON)
    return replace(project(number), ruling=Ruling(lapse=lapse))


async def test_the_notice_stays_until_all_lapsed_projects_are_decided() -> None:
    world = LedgerHarness(_lost(1), _lost(2), rules=[rule(Verdict.PENDING)])
    repairs = RecoveryNotice(world.ledger, NOTE)
    for order in (approve(1), deny(2), ApproveRule(1, PERSON)):
        assert repairs.report() == [NOTE]
        repairs.mark_seen()
        assert repairs.report() == [NOTE], "to look decides nothing"
        await world.ledger.execute([order])
    assert repairs.report() == []


def test_without_lapsed_projects_the_notice_stays_until_it_is_seen() -> None:
    repairs = RecoveryNotice(LedgerHarness(project(1)).ledger, NOTE)
    assert repairs.report() == [NOTE]
    assert repairs.report() == [NOTE]
    repairs.mark_seen()
    assert repairs.report() == []


def test_a_lapse_of_an_earlier_start_is_still_reported() -> None:
    (sentence,) = RecoveryNotice(LedgerHarness(_lost(1)).ledger, "").report()
    assert "rootsd approve --lapsed --all" in sentence


def test_other_lapses_cause_no_notice() -> None:
    replaced = replace(project(2), ruling=Ruling(lapse=Lapse(LapseReason.REPLACED, NOON)))
    repairs = RecoveryNotice(LedgerHarness(missing(_lost(1)), replaced).ledger, "")
    assert repairs.report() == []
