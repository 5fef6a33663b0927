"""A person may approve an incomplete project by name. Nothing else approves it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.core.errors import NotPresent, UnknownProject
from rootsd.core.model import IncompleteReason, Project, Verdict
from rootsd.wire.projects import ProjectsQuery, Selection, WhyQuery
from rootsd.wire.request import ApplyMode
from support.control_harness import APPROVE, FORGET, ControlHarness, names
from support.ledger_harness import lapsed, path, rule
from support.sample_decisions import approved, project

REASONS = list(IncompleteReason)


def cut(known: Project, reason: IncompleteReason = IncompleteReason.INTERRUPTED) -> Project:
    return replace(known, observed=replace(known.observed, incomplete=reason))


def listed(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an order from a person who saw the warnings of its plan."""
    return {
        "incomplete": tuple(each["id"] for each in plan["incomplete"]),
        "incomplete_shown": tuple(each["reason"] for each in plan["incomplete"]),
    }


async def plan_of(control: ControlHarness, *refs: str) -> dict[str, Any]:
    return await control.decide(APPROVE, *refs, effect=ApplyMode.DRY_RUN)


@pytest.mark.parametrize("reason", REASONS)
async def test_a_plan_says_what_is_missing_and_the_order_publishes_it(
    reason: IncompleteReason,
) -> None:
    control = ControlHarness(cut(project(1), reason))
    plan = await plan_of(control, "p1")
    (item,) = plan["incomplete"]
    assert item == {"id": "r1", "name": "p1", "reason": reason.value, "lacks": reason.lacks}
    with pytest.raises(NotPresent, match="is incomplete") as refusal:
        await control.decide(APPROVE, "p1")
    assert refusal.value.remedy == f"rootsd approve {path(1).decode()} --incomplete"
    assert await control.world.told() == set()
    done = await control.decide(APPROVE, "p1", **listed(plan))
    assert names(done["items"]) == ["p1"]
    assert await control.world.told() == {path(1)}
    assert control.world.is_kept()


async def test_what_a_person_saw_has_to_be_what_is_missing_now() -> None:
    control = ControlHarness(cut(project(1), IncompleteReason.LOCKED))
    seen: dict[str, Any] = {
        "incomplete": ("r1",),
        "incomplete_shown": (IncompleteReason.NO_HEAD.value,),
    }
    with pytest.raises(NotPresent, match="left locked"):
        await control.decide(APPROVE, "p1", **seen)


async def test_a_project_that_a_program_works_on_is_not_approved() -> None:
    control = ControlHarness(cut(project(1)))
    plan = await plan_of(control, "p1")
    control.discovery.at_work.add(path(1))
    for more in ({}, listed(plan)):
        with pytest.raises(NotPresent, match="a program still works on it"):
            await control.decide(APPROVE, "p1", **more)
    with pytest.raises(NotPresent, match="a program still works on it"):
        await plan_of(control, "p1")
    control.discovery.at_work.clear()
    await control.decide(APPROVE, "p1", **listed(plan))
    assert await control.world.told() == {path(1)}


async def test_only_a_name_approves_it() -> None:
    control = ControlHarness(cut(project(1)), rules=(rule(Verdict.APPROVED),))
    assert await control.world.told() == set()
    known: dict[str, Any] = {"incomplete": ("r1",), "incomplete_shown": ("interrupted",)}
    for refs, select in ((("p*",), Selection.NAMED), ((), Selection.PENDING)):
        with pytest.raises(UnknownProject):
            await control.decide(APPROVE, *refs, select=select, **known)
    assert await control.world.told() == set()


async def test_a_lapsed_approval_of_it_is_not_restored_with_all_others() -> None:
    control = ControlHarness(cut(lapsed(project(1))))
    with pytest.raises(UnknownProject, match="it is incomplete: interrupted"):
        await control.decide(APPROVE, select=Selection.LAPSED)


async def test_pending_and_why_name_it_and_the_command() -> None:
    control = ControlHarness(cut(project(1)), project(2), rules=(rule(Verdict.APPROVED),))
    pending = await control.ask(ProjectsQuery("/", select=Selection.PENDING))
    assert names(pending["incomplete"]) == ["p1"]
    assert "p1" not in names(pending["items"])
    (why,) = (await control.ask(WhyQuery(path(1).decode())))["obstacles"]
    assert "history or files are missing; no rule approves it until it is complete" in why
    assert f"rootsd approve {path(1).decode()} --incomplete" in why


async def test_an_approved_project_stays_published_while_it_is_incomplete() -> None:
    control = ControlHarness(cut(approved(1)))
    assert await control.world.told() == {path(1)}
    pending = await control.ask(ProjectsQuery("/", select=Selection.PENDING))
    assert pending["incomplete"] == []
    await control.decide(FORGET, "p1")
    assert await control.world.told() == set()
