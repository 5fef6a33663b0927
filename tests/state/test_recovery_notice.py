"""That decisions were lost is told until a person has seen to it, and no longer."""

from __future__ import annotations

from dataclasses import replace

from rootsd.core.inputs import ApproveRule
from rootsd.core.model import Lapse, LapseReason, Project, Ruling, Verdict
from rootsd.state.recovery_notice import RecoveryNotice
from support.decisions import NOON, PERSON, project
from support.fakes import World, approve, deny, missing, rule

NOTE = "decisions.db was damaged and has been rebuilt."


def _lost(number: int) -> Project:
    lapse = Lapse(LapseReason.STORE_RESTORED, NOON)
    return replace(project(number), ruling=Ruling(lapse=lapse))


async def test_what_lapsed_is_told_until_all_of_it_was_decided_and_not_after() -> None:
    world = World(_lost(1), _lost(2), rules=[rule(Verdict.PENDING)])
    repairs = RecoveryNotice(world.ledger, NOTE)
    for order in (approve(1), deny(2), ApproveRule(1, PERSON)):
        assert repairs.told(is_look=True) == [NOTE], "to look decides nothing"
        await world.ledger.execute([order])
    assert repairs.told(is_look=False) == []


def test_where_nothing_lapsed_it_is_told_until_a_person_has_seen_it() -> None:
    repairs = RecoveryNotice(World(project(1)).ledger, NOTE)
    assert repairs.told(is_look=False) == [NOTE]
    assert repairs.told(is_look=True) == [NOTE]
    assert repairs.told(is_look=True) == []


def test_what_lapsed_at_an_earlier_start_is_still_told() -> None:
    (sentence,) = RecoveryNotice(World(_lost(1)).ledger, "").told(is_look=True)
    assert "rootsd approve --lapsed --all" in sentence


def test_what_nothing_can_restore_and_what_lapsed_otherwise_is_no_repair() -> None:
    replaced = replace(project(2), ruling=Ruling(lapse=Lapse(LapseReason.REPLACED, NOON)))
    repairs = RecoveryNotice(World(missing(_lost(1)), replaced).ledger, "")
    assert repairs.told(is_look=False) == []
