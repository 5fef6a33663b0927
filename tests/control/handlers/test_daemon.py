"""The daemon as a whole, in control requests."""

from __future__ import annotations

from dataclasses import replace

from rootsd.core.model import IncompleteReason, Presence, Project, Verdict
from rootsd.wire.daemon import (
    ReloadRequest,
    SessionsQuery,
    SessionView,
    StatusQuery,
    StatusResult,
    StopRequest,
)
from rootsd.wire.decisions import DecisionVerb
from support.decisions import approved, denied, granted, project
from support.desks import Office
from support.fakes import lapsed, path, rule


def suspended(known: Project) -> Project:
    return replace(known, observed=replace(known.observed, presence=Presence.SUSPENDED))


async def test_the_status_tells_everything_and_how_many() -> None:
    incomplete = replace(project(5).observed, incomplete=IncompleteReason.NO_HEAD)
    office = Office(
        approved(1), suspended(approved(2)), denied(3), lapsed(project(4)),
        replace(project(5), observed=incomplete), project(6), granted(7),
        rules=[rule(Verdict.APPROVED, path(7)), rule(Verdict.PENDING, number=2)],
    )  # fmt: skip
    status = await office.ask(StatusQuery())
    assert list(status) == list(StatusResult.__annotations__)
    assert status["counts"] == {
        "published": 2,
        "approved": 3,
        "waiting": 2,
        "unpublishable": 0,
        "denied": 1,
        "lapsed": 1,
        "lapsed_rules": 1,
        "incomplete": 1,
        "projects": 7,
    }
    assert status["revision"] == office.world.ledger.revision
    assert status["daemon"]["pid"] == 4
    assert status["parents"][0]["path"] == "/home/ann/src"
    assert status["sessions"][0]["client"] == "an editor"
    assert status["closed_connections"] == {"of another user": 3}
    assert status["degraded"] == []


async def test_the_status_tells_what_the_disk_refuses_and_what_else_is_degraded() -> None:
    office = Office(approved(1))
    office.host.troubles = ["polling"]
    office.world.saver.refusing = True
    await office.decide(DecisionVerb.DENY, "p1")
    for _ in range(2):
        degraded = (await office.ask(StatusQuery()))["degraded"]
        assert degraded[0] == "polling"
        assert "the disk refuses 1" in degraded[1]
        assert len(degraded) == 2
    office.world.saver.refusing = False
    await office.world.ledger.save_now()
    assert (await office.ask(StatusQuery()))["degraded"] == ["polling"]


async def test_a_reload_is_answered_with_the_status() -> None:
    office = Office(project(1))
    assert (await office.ask(ReloadRequest()))["counts"]["projects"] == 1
    assert office.host.told == ["reload"]


async def test_the_daemon_is_stopped_only_once_the_answer_is_out() -> None:
    office = Office()
    assert await office.ask(StopRequest()) == {}
    assert office.host.told == []
    office.desk.answered(StatusQuery())
    assert office.host.told == []
    office.desk.answered(StopRequest())
    assert office.host.told == ["stop"]


async def test_sessions_are_the_open_ones_or_the_last_with_their_history() -> None:
    office = Office()
    assert [item["id"] for item in (await office.ask(SessionsQuery()))["items"]] == ["open"]
    query = SessionsQuery(SessionView.HISTORY, last=2)
    assert [item["id"] for item in (await office.ask(query))["items"]] == ["old0", "old1"]
