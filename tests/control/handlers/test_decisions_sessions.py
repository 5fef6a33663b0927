"""An approval of a folder that several sessions request."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.control.session_requests import (
    NoRequestingSession,
    SessionRequests,
    SeveralSessionsAsk,
)
from rootsd.core.errors import ErrorCode
from rootsd.core.model import SessionKey
from rootsd.wire.decisions import ApprovalScope
from rootsd.wire.request import ApplyMode
from support.control_harness import APPROVE, FORGET, ControlHarness
from support.ledger_harness import path
from support.sample_decisions import project

SQUATTER = SessionKey("process:boot:666:6", "evil, pid 666")
AGENT = SessionKey("process:boot:7:70", "claude, pid 7")


def harness(*running: SessionKey) -> ControlHarness:
    """Both sessions have requested the first project, the squatter first."""
    control = ControlHarness(project(1), project(2))

    async def track(key: SessionKey) -> bool:
        return key in (running or (SQUATTER, AGENT))

    asking = SessionRequests(lambda at: (SQUATTER, AGENT) if at == path(1) else (), track)
    control.services = replace(control.services, requests=asking)
    return control


def bound_to(control: ControlHarness) -> SessionKey | None:
    decision = control.world.ledger.catalog.projects[path(1)].ruling.decision
    assert decision is not None
    return decision.session


@pytest.mark.parametrize("span", [ApprovalScope.USUAL, ApprovalScope.SESSION])
@pytest.mark.parametrize("effect", ApplyMode)
async def test_it_is_refused_and_names_the_processes(
    span: ApprovalScope, effect: ApplyMode
) -> None:
    control = harness()
    with pytest.raises(SeveralSessionsAsk) as caught:
        await control.decide(APPROVE, "p1", span=span, effect=effect)
    assert caught.value.code is ErrorCode.AMBIGUOUS
    assert "666 (evil, pid 666), 7 (claude, pid 7)" in caught.value.message
    assert "--session-of" in caught.value.remedy
    assert "--always" in caught.value.remedy
    assert control.world.published() == set()


@pytest.mark.parametrize(("session", "key"), [("7", AGENT), ("666", SQUATTER)])
async def test_the_session_that_a_person_names_gets_it(session: str, key: SessionKey) -> None:
    control = harness()
    await control.decide(APPROVE, "p1", session=session)
    assert bound_to(control) == key


async def test_the_only_session_that_still_runs_gets_it() -> None:
    control = harness(AGENT)
    await control.decide(APPROVE, "p1")
    assert bound_to(control) == AGENT


async def test_an_approval_for_all_sessions_asks_nothing() -> None:
    for control, done in (
        (always := harness(), always.decide(APPROVE, "p1", span=ApprovalScope.ALWAYS)),
        (limited := harness(), limited.decide(APPROVE, "p1", lasts=3600)),
    ):
        await done
        assert bound_to(control) is None


@pytest.mark.parametrize(("name", "session"), [("p1", "8"), ("p2", "7")])
async def test_a_session_that_does_not_ask_gets_nothing(name: str, session: str) -> None:
    control = harness()
    with pytest.raises(NoRequestingSession, match=f"no running session {session} asks for"):
        await control.decide(APPROVE, name, session=session)
    assert control.world.published() == set()


async def test_control_if_the_first_one_wins_the_squatter_gets_it() -> None:
    control = harness()
    asking = control.services.requests
    first = replace(asking, sessions_requesting=lambda at: asking.sessions_requesting(at)[:1])
    control.services = replace(control.services, requests=first)
    await control.decide(APPROVE, "p1")
    assert bound_to(control) == SQUATTER


WALL = SessionKey("process:boot:9:90", "claude, pid 9")


async def test_a_wall_gets_a_folder_only_if_a_person_names_its_process() -> None:
    control = harness(AGENT, WALL)
    requests = replace(control.services.requests, walls=lambda: (WALL,))
    control.services = replace(control.services, requests=requests)
    await control.decide(APPROVE, "p1", session="9")
    assert bound_to(control) == WALL
    await control.decide(FORGET, "p1")
    await control.decide(APPROVE, "p1")
    assert bound_to(control) == AGENT, "the one that asks"
    await control.decide(APPROVE, "p2")
    decision = control.world.ledger.catalog.projects[path(2)].ruling.decision
    assert decision is not None
    assert decision.session is None
