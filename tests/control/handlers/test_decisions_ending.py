"""A reinstated approval keeps its former end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from rootsd.core.encoding import ProjectRecord
from rootsd.core.errors import UnknownProject
from rootsd.core.history import CHAIN_START, events_for, fold, lapse_all_approvals
from rootsd.core.inputs import ProjectGone
from rootsd.core.model import Expiry, LapseReason
from rootsd.wire.projects import Selection
from support.control_harness import APPROVE, ControlHarness, names
from support.ledger_harness import approve, path, sight
from support.sample_decisions import NOON, identity, project

HOUR = 3_600
LATER = (NOON + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _replaced(control: ControlHarness, number: int) -> None:
    """Put directory 40 in the place of the approved one."""
    control.world.disk.folders[path(number)] = identity(40)
    await control.world.ledger.observe([sight(number, now=40)])


def _end(control: ControlHarness, number: int) -> Expiry | None:
    decision = control.world.ledger.catalog.projects[path(number)].ruling.decision
    assert decision is not None
    return decision.expires


@pytest.mark.parametrize("how", ["named", "all that lapsed"])
async def test_a_reinstated_approval_keeps_its_end(how: str) -> None:
    control = ControlHarness(project(1))
    await control.decide(APPROVE, "p1", lasts=HOUR)
    given = _end(control, 1)
    await _replaced(control, 1)
    assert await control.world.told() == set()
    if how == "named":
        (item,) = (await control.decide(APPROVE, "p1"))["items"]
    else:
        (item,) = (await control.decide(APPROVE, select=Selection.LAPSED))["items"]
    assert (item["expires_at"], _end(control, 1)) == (LATER, given)
    assert await control.world.told() == {path(1)}
    control.world.clock.pass_time(HOUR)
    assert await control.world.told() == set()


async def test_a_reinstated_approval_can_get_another_end() -> None:
    control = ControlHarness(project(1))
    await control.decide(APPROVE, "p1", lasts=HOUR)
    await _replaced(control, 1)
    await control.decide(APPROVE, "p1", lasts=2 * HOUR)
    control.world.clock.pass_time(HOUR)
    assert await control.world.told() == {path(1)}


async def test_an_approval_past_its_end_is_not_reinstated_with_all_others() -> None:
    control = ControlHarness(project(1), project(2))
    await control.decide(APPROVE, "p1", lasts=HOUR)
    await control.decide(APPROVE, "p2")
    await _replaced(control, 1)
    control.world.clock.pass_time(HOUR)
    with pytest.raises(UnknownProject, match="p1 is left out: its approval has ended"):
        await control.decide(APPROVE, select=Selection.LAPSED)
    control.world.disk.folders[path(2)] = identity(41)
    await control.world.ledger.observe([sight(2, now=41)])
    done = await control.decide(APPROVE, select=Selection.LAPSED)
    assert names(done["items"]) == ["p2"]
    assert done["warnings"] == ["p1 is left out: its approval has ended in the meantime"]
    assert await control.world.told() == {path(2)}
    await control.decide(APPROVE, "p1")  # naming it makes a new decision
    assert _end(control, 1) is None
    assert await control.world.told() == {path(1), path(2)}


async def test_an_approval_at_a_new_path_keeps_its_end() -> None:
    control = ControlHarness(project(1))
    await control.decide(APPROVE, "p1", lasts=HOUR)
    given = _end(control, 1)
    folders = control.world.disk.folders
    folders[path(2)] = folders.pop(path(1))
    await control.world.ledger.observe([ProjectGone(path(1)), sight(2, now=1)])
    await control.decide(APPROVE, "/home/ann/src/p2")
    assert _end(control, 2) == given


def test_a_lost_history_keeps_the_ends_of_approvals() -> None:
    control = ControlHarness(project(1))
    expires = control.world.ledger.expiries.after(HOUR)
    given = control.world.ledger.dry_run([replace(approve(1), expires=expires)]).changes
    events = events_for(given, NOON, CHAIN_START)
    (lost,) = lapse_all_approvals(fold(events), NOON)
    outcome = lost.outcome()
    assert isinstance(outcome, ProjectRecord)
    assert outcome.ruling.lapse is not None
    assert outcome.ruling.lapse.reason is LapseReason.STORE_RESTORED
    assert outcome.ruling.lapse.expires == expires
