"""One order reinstates the approvals that a lost history ended, with their actors."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.control import selection
from rootsd.core.access import Access
from rootsd.core.decide import VerdictReason
from rootsd.core.errors import NotPresent, UnknownProject
from rootsd.core.history import CHAIN_START, events_for
from rootsd.core.model import (
    ActorKind,
    Lapse,
    LapseReason,
    Project,
    Ruling,
    Verdict,
)
from rootsd.wire.decisions import RemoveRuleRequest
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import Selection
from rootsd.wire.request import ApplyMode
from support.control_harness import APPROVE, ControlHarness, names
from support.ledger_harness import path, rule
from support.sample_decisions import NOON, add, after, decide, project


def _lost(number: int, by: ActorKind | None) -> Project:
    lapse = Lapse(LapseReason.STORE_RESTORED, NOON, by)
    return replace(project(number), ruling=Ruling(lapse=lapse))


def _replaced(number: int, origin: str | None, why: LapseReason) -> Project:
    ruling = Ruling(lapse=Lapse(why, NOON), name=f"p{number}", origin=origin)
    return replace(project(number), ruling=ruling)


def _from(origins: dict[int, str], *lapsed: Project) -> ControlHarness:
    """Return a harness in which projects have these origins now."""
    control = ControlHarness(*lapsed)

    async def origins_of(_: object) -> dict[bytes, str]:
        return {path(number): origin for number, origin in origins.items()}

    control.reader.origins = origins_of  # type: ignore[method-assign,assignment]
    return control


ACME, EVIL = "https://example.com/acme/api", "https://example.com/evil/api"
CHANGED = [
    # origin before and now, the reason of the lapse, whether it is another repository
    (ACME, ACME, LapseReason.REPLACED, False),
    (ACME, EVIL, LapseReason.REPLACED, True),
    (ACME, None, LapseReason.REPLACED, True),
    (None, EVIL, LapseReason.REPLACED, True),
    (None, None, LapseReason.REPLACED, False),
    (ACME, EVIL, LapseReason.RETARGETED, True),
    (ACME, EVIL, LapseReason.STORE_RESTORED, True),
    (None, ACME, LapseReason.STORE_RESTORED, False),
    (None, ACME, LapseReason.EXPOSED, False),
]


@pytest.mark.parametrize(("before", "now", "why", "is_other"), CHANGED)
async def test_lapsed_approvals_are_not_given_to_another_repository(
    before: str | None, now: str | None, why: LapseReason, is_other: bool
) -> None:
    origins = {2: ACME} | ({1: now} if now is not None else {})
    control = _from(origins, _replaced(1, before, why), _replaced(2, ACME, why))
    done = await control.decide(APPROVE, select=Selection.LAPSED)
    assert names(done["items"]) == (["p2"] if is_other else ["p1", "p2"])
    left_out = [text for text in done["warnings"] if text.startswith("p1 is left out")]
    assert bool(left_out) is is_other
    if is_other:
        with pytest.raises(UnknownProject, match="p1 is left out: its origin is") as refused:
            await control.decide(APPROVE, "p1", select=Selection.LAPSED)
        assert refused.value.remedy == "rootsd approve PATH"
        assert await control.world.told() == {path(2)}
        await control.decide(APPROVE, "p1")
        assert await control.world.told() == {path(1), path(2)}


async def test_the_test_notices_a_restored_approval_of_another_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "_why_other_origin", lambda _project, _now: None)
    with pytest.raises(AssertionError):
        await test_lapsed_approvals_are_not_given_to_another_repository(*CHANGED[1])


async def test_one_lapsed_approval_is_restored_by_its_name() -> None:
    lapsed = [_replaced(number, ACME, LapseReason.REPLACED) for number in (1, 2)]
    control = _from({1: ACME, 2: ACME}, *lapsed, project(3))
    assert names((await control.decide(APPROVE, "p1", select=Selection.LAPSED))["items"]) == ["p1"]
    assert await control.world.told() == {path(1)}
    with pytest.raises(UnknownProject, match="no approval there has lapsed"):
        await control.decide(APPROVE, "p3", select=Selection.LAPSED)
    with pytest.raises(UnknownProject, match="no project is called nothing"):
        await control.decide(APPROVE, "nothing", select=Selection.LAPSED)


def _reasons(control: ControlHarness, number: int) -> VerdictReason:
    return control.world.ledger.catalog.judgments[path(number)].reason


async def test_one_order_reinstates_all_lapsed_approvals_and_rules() -> None:
    """A rule reinstates what it granted, and the person what a person had approved."""
    lost = [_lost(1, ActorKind.RULE), _lost(2, ActorKind.PERSON), _lost(3, None)]
    lapsed = [rule(Verdict.PENDING), rule(Verdict.DENIED, b"/home/ann/src/no/**", number=2)]
    control = ControlHarness(*lost, project(4), rules=lapsed)
    assert control.world.ledger.catalog.roots == {}, "a lapsed rule speaks for nothing"
    would = await control.decide(APPROVE, select=Selection.LAPSED, effect=ApplyMode.DRY_RUN)
    done = await control.decide(APPROVE, select=Selection.LAPSED)
    for told in (would, done):
        assert [(item["verdict"], item["note"]) for item in told["items"]] == [
            ("approved", "approve rule 1"),
            ("approved", None),
            ("approved", None),
        ]
        assert [(r["number"], r["verdict"], r["covers"]) for r in told["rules"]] == [
            (1, "approved", 4)
        ]
    assert await control.world.told() == {path(1), path(2), path(3), path(4)}
    with pytest.raises(UnknownProject, match=r"^no approval there has lapsed"):
        await control.decide(APPROVE, select=Selection.LAPSED)
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


@pytest.mark.parametrize(
    ("refs", "select", "under", "verdict"),
    [
        ((), Selection.PENDING, None, Verdict.PENDING),
        ((), Selection.LAPSED, "/home/ann/src", Verdict.PENDING),
        (("p1",), Selection.NAMED, None, Verdict.APPROVED),
    ],
)
async def test_a_narrower_order_reinstates_no_rule_and_approves_in_person(
    refs: tuple[str, ...], select: Selection, under: str | None, verdict: Verdict
) -> None:
    control = ControlHarness(_lost(1, ActorKind.RULE), rules=[rule(verdict)])
    assert await control.world.told() == set(), "a lost history may hold a denial"
    assert "rules" not in await control.decide(APPROVE, *refs, select=select, under=under)
    assert control.world.ledger.catalog.rules == (rule(verdict),)
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
