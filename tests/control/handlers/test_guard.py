"""Requests about the guard, and what agents tried."""

from __future__ import annotations

import pytest

from rootsd.control.routes import RequestContext
from rootsd.core.errors import CallerRefused
from rootsd.core.guard import Caller
from rootsd.core.guard_setting import Guard
from rootsd.core.model import Actor, ActorKind
from rootsd.core.processes import Lineage
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.guard import (
    GuardQuery,
    RemoteCommandRequest,
    SetGuardRequest,
)
from rootsd.wire.request import ApplyMode
from support.control_harness import ControlHarness
from support.sample_decisions import (
    PERSON,
)

CALLER = Actor(ActorKind.CALLER)


async def test_the_guard_is_shown_and_set() -> None:
    control = ControlHarness()
    rehearsed = await control.ask(SetGuardRequest(Guard.TERMINAL, ApplyMode.DRY_RUN))
    assert rehearsed["guard"] == "terminal"
    assert (await control.ask(GuardQuery()))["guard"] == "agents"
    assert (await control.ask(SetGuardRequest(Guard.TERMINAL)))["guard"] == "terminal"
    assert (await control.ask(StatusQuery()))["guard"] == "terminal"


async def test_an_agent_may_not_even_look_at_another_machine() -> None:
    dispatcher = ControlHarness().dispatcher
    looking = RemoteCommandRequest("pending --host build", ApplyMode.DRY_RUN)
    assert await dispatcher.answer(looking, RequestContext(PERSON)) == {}
    with pytest.raises(CallerRefused, match="would not let this program decide here"):
        await dispatcher.answer(looking, RequestContext(CALLER))


async def test_refused_commands_are_reported_until_a_person_sees_them() -> None:
    control = ControlHarness()
    await control.guard.refused.add("y", Caller(Lineage()), "w")
    for _ in range(2):
        assert (await control.ask(StatusQuery()))["refused"]["what"] == "y"
        await control.dispatcher.answer(StatusQuery(is_look=True), RequestContext(CALLER))
    assert (await control.ask(StatusQuery(is_look=True)))["refused"]["what"] == "y"
    assert (await control.ask(StatusQuery()))["refused"] is None
