"""Orders that meet other orders, and changes on disk, on their way."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from rootsd.core.errors import IdentityChanged, NotPresent, RootsdError, UnknownProject
from rootsd.core.inputs import ProjectGone, ProjectUnsafe
from rootsd.core.model import LapseReason, Verdict
from rootsd.wire.projects import Selection
from support.control_harness import APPROVE, FORGET, ControlHarness, names
from support.decisions import approved, identity, project
from support.fakes import (
    HANG_GUARD,
    approve,
    deny,
    path,
    sight,
)


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
async def test_a_denial_that_comes_first_is_not_overturned_by_a_sweep_on_its_way(
    sweep: tuple[str, ...],
) -> None:
    control = ControlHarness(project(1), project(2))
    select = Selection.NAMED if sweep else Selection.PENDING
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with control.world.saver.held_up() as busy:
                group.start_soon(control.world.ledger.execute, [deny(1)])
                # The denial is decided under the lock; the sweep chooses before it is known.
                group.start_soon(lambda: control.decide(APPROVE, *sweep, select=select))
                await busy.wait()
                await anyio.wait_all_tasks_blocked()
    assert control.world.verdict(path(1)) is Verdict.DENIED
    assert await control.world.told() == {path(2)}


async def test_an_order_that_somebody_overtook_is_chosen_again() -> None:
    control = ControlHarness(approved(1), project(2))
    answers: list[dict[str, Any]] = []

    async def forget() -> None:
        answers.append(await control.decide(FORGET, "p2"))

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with control.world.saver.held_up() as busy:
                group.start_soon(control.world.ledger.execute, [approve(2)])
                await busy.wait()
                group.start_soon(forget)
                await anyio.wait_all_tasks_blocked()
    assert names(answers[0]["items"]) == ["p2"]
    assert answers[0]["unchanged"] == []
    assert control.world.verdict(path(2)) is Verdict.PENDING


@pytest.mark.parametrize("moment", ["dropped", "unsafe"])
async def test_what_changes_on_disk_while_an_approval_waits_is_refused(moment: str) -> None:
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
