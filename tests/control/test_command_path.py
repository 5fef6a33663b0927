"""The path of a command through the control server: each step happens once."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from rootsd.control.guarded_connection import GuardedConnection
from rootsd.control.references import ReferenceResolver
from rootsd.control.routes import RequestContext
from rootsd.core.guard_setting import Guard
from rootsd.core.model import Actor, ActorKind, Verdict
from rootsd.core.plan import plan
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.request import ApplyMode
from support.control_harness import APPROVE, CWD, DENY, FORGET, ControlHarness, names
from support.ledger_harness import HANG_GUARD, path, rule, sight
from support.process_table import TERMINAL, FakePeer, process
from support.sample_decisions import PERSON, identity, project

SHELL = process(20, 1, "bash", terminal=TERMINAL)
CALLER = process(90, 20, "rootsd", terminal=TERMINAL)


class Steps:
    """Counts the plans and the resolved references during the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plans = 0
        self.resolved: Counter[str] = Counter()
        resolve = ReferenceResolver._resolve_one

        def counted_plan(*args: Any) -> Any:  # noqa: ANN401 - passes everything on
            self.plans += 1
            return plan(*args)

        def counted_resolve(resolver: ReferenceResolver, reference: str) -> object:
            self.resolved[reference] += 1
            return resolve(resolver, reference)

        monkeypatch.setattr(ReferenceResolver, "_resolve_one", counted_resolve)
        _replace_everywhere(monkeypatch, plan, counted_plan)


def _replace_everywhere(
    monkeypatch: pytest.MonkeyPatch, old: Callable[..., Any], new: Callable[..., Any]
) -> None:
    for name, module in [*sys.modules.items()]:
        if name.startswith("rootsd."):
            for attribute, value in inspect.getmembers(module, lambda each: each is old):
                assert value is old
                monkeypatch.setattr(module, attribute, new)


async def give(control: ControlHarness, request: DecideRequest) -> Actor:
    """Send the command as the control server does: through the guard, then to the handler."""
    command = control.dispatcher.guarded_command(request)
    assert command is not None
    with anyio.fail_after(HANG_GUARD):
        actor = await GuardedConnection(control.guard, FakePeer(90)).admit(command, None)
        await control.dispatcher.answer(request, RequestContext(actor))
    return actor


def control_with(*numbers: int) -> ControlHarness:
    control = ControlHarness(*map(project, numbers))
    control.process_table.add(SHELL, CALLER)
    return control


@pytest.mark.parametrize("reference", ["p1", "r1", "/home/ann/src/p1", "src/p1"])
@pytest.mark.parametrize("verb", [APPROVE, DENY])
async def test_a_command_resolves_plans_and_looks_up_its_caller_once(
    monkeypatch: pytest.MonkeyPatch, reference: str, verb: DecisionVerb
) -> None:
    control, steps = control_with(1, 2), Steps(monkeypatch)
    await give(control, DecideRequest(verb, CWD, (reference,)))
    assert steps.resolved == {reference: 1}
    assert steps.plans == 1
    assert control.process_table.looks == [[90]]
    expected = Verdict.APPROVED if verb is APPROVE else Verdict.DENIED
    assert control.world.verdict(path(1)) is expected


async def test_with_the_guard_off_the_caller_is_not_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control, steps = control_with(1), Steps(monkeypatch)
    await control.guard.set_guard(Guard.OFF, PERSON)
    actor = await give(control, DecideRequest(APPROVE, CWD, ("p1",)))
    assert control.process_table.looks == []
    assert (steps.resolved, steps.plans) == ({"p1": 1}, 1)
    assert actor == Actor(ActorKind.PERSON, "pid 90, with the guard off")
    assert await GuardedConnection(control.guard, FakePeer(90)).actor() == actor
    assert control.process_table.looks == []


async def test_each_reference_is_resolved_once_and_all_are_planned_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control = control_with(1, 2, 3)
    plan = await control.decide(APPROVE, "p1", "src/p*", effect=ApplyMode.DRY_RUN)
    listed = tuple(each["token"] for each in plan["confirmation"]["projects"])
    steps = Steps(monkeypatch)
    await give(control, DecideRequest(APPROVE, CWD, ("p1", "src/p*"), confirmed=listed))
    assert steps.resolved == {"p1": 1, "src/p*": 1}
    assert steps.plans == 1
    assert await control.world.told() == {path(1), path(2), path(3)}


async def test_a_dry_run_resolves_and_plans_once(monkeypatch: pytest.MonkeyPatch) -> None:
    control, steps = control_with(1), Steps(monkeypatch)
    await control.decide(APPROVE, "p1", effect=ApplyMode.DRY_RUN)
    assert (steps.resolved, steps.plans) == ({"p1": 1}, 1)


async def test_a_new_folder_is_resolved_once_and_planned_when_proposed_and_when_approved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control, steps = control_with(), Steps(monkeypatch)
    control.world.disk.folders[path(1)] = identity(1)
    await give(control, DecideRequest(APPROVE, CWD, ("/home/ann/link",)))
    assert steps.resolved == {"/home/ann/link": 1}
    assert steps.plans == 4, "twice to see what it covers, before it is proposed and approved"
    assert await control.world.told() == {path(1)}


async def test_a_grant_is_planned_with_the_observation_that_it_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control, steps = ControlHarness(rules=[rule(Verdict.APPROVED)]), Steps(monkeypatch)
    await control.world.ledger.observe([sight(1)])
    assert steps.plans == 1
    assert set(control.world.ledger.catalog.roots) == {path(1)}


async def test_an_overtaken_command_is_resolved_and_planned_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control, steps = control_with(1), Steps(monkeypatch)
    forgotten: list[dict[str, Any]] = []

    async def forget() -> None:
        forgotten.append(await control.decide(FORGET, "p1"))

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with control.world.saver.held_up() as busy:
                group.start_soon(lambda: control.decide(APPROVE, "p1"))
                await busy.wait()
                group.start_soon(forget)
                await anyio.wait_all_tasks_blocked()
    assert steps.resolved == {"p1": 3}
    assert (names(forgotten[0]["items"]), forgotten[0]["unchanged"]) == (["p1"], [])
    assert control.world.verdict(path(1)) is Verdict.PENDING
