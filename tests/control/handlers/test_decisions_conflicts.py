"""Orders that conflict with concurrent orders and with changes on the disk."""

from __future__ import annotations

import anyio
import pytest

from rootsd.core.errors import IdentityChanged, NotPresent, RootsdError, UnknownProject
from rootsd.core.inputs import ProjectGone, ProjectUnsafe
from rootsd.core.model import LapseReason, Verdict
from rootsd.wire.projects import Selection
from support.control_harness import APPROVE, ControlHarness
from support.ledger_harness import (
    HANG_GUARD,
    deny,
    path,
    sight,
)
from support.sample_decisions import identity, project


async def test_a_folder_that_was_replaced_after_it_was_found_is_not_approved() -> None:
    control = ControlHarness(project(1))
    control.world.disk.folders[path(1)] = identity(10)
    with pytest.raises(IdentityChanged) as refused:
        await control.decide(APPROVE, "p1")
    assert refused.value.remedy == "rootsd pending"
    assert await control.world.told() == set()
    await control.decide(APPROVE, "p1")
    assert await control.world.told() == {path(1)}


@pytest.mark.parametrize("sweep", [("p*",), ()])
async def test_a_concurrent_selection_does_not_override_a_denial(
    sweep: tuple[str, ...],
) -> None:
    control = ControlHarness(project(1), project(2))
    select = Selection.NAMED if sweep else Selection.PENDING
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with control.world.saver.held_up() as busy:
                group.start_soon(control.world.ledger.execute, [deny(1)])
                # The denial is decided under the lock; the selection is made before it is known.
                group.start_soon(lambda: control.decide(APPROVE, *sweep, select=select))
                await busy.wait()
                await anyio.wait_all_tasks_blocked()
    assert control.world.verdict(path(1)) is Verdict.DENIED
    assert await control.world.told() == {path(2)}


@pytest.mark.parametrize("moment", ["dropped", "unsafe"])
async def test_a_change_on_disk_during_an_approval_refuses_it(moment: str) -> None:
    control = ControlHarness(project(1), project(2))
    seen = (
        ProjectGone(path(2))
        if moment == "dropped"
        else ProjectUnsafe(path(2), LapseReason.EXPOSED)
    )
    refusals: list[type[RootsdError]] = []

    async def approve_it() -> None:
        try:
            await control.decide(APPROVE, "p2")
        except RootsdError as refusal:
            refusals.append(type(refusal))

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with control.world.saver.held_up() as busy:
                group.start_soon(control.world.ledger.observe, [seen, sight(3)])
                await busy.wait()
                group.start_soon(approve_it)
                await anyio.wait_all_tasks_blocked()
    assert refusals == [UnknownProject if moment == "dropped" else NotPresent]
    assert await control.world.told() == set()
