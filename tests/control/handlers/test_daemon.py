"""Control requests about the daemon as a whole."""

from __future__ import annotations

from msgspec.structs import replace

from rootsd.core.model import IncompleteReason, Inspection, Presence, Project, Verdict
from rootsd.wire.daemon import (
    ReloadRequest,
    SessionsQuery,
    SessionView,
    StatusQuery,
    StatusResult,
    StopRequest,
)
from rootsd.wire.decisions import DecisionVerb
from support.control_harness import ControlHarness
from support.ledger_harness import lapsed, path, rule
from support.sample_decisions import approved, denied, granted, project


def suspended(known: Project) -> Project:
    return replace(known, observed=replace(known.observed, presence=Presence.SUSPENDED))


async def test_the_status_has_all_parts_and_counts() -> None:
    incomplete = replace(project(5).observed, incomplete=IncompleteReason.NO_HEAD)
    inspection = Inspection(b"", None, "", (("mcp", "1"), ("a\nb", "1")))
    changed = replace(
        approved(1),
        observed=replace(approved(1).observed, inspection=inspection),
        ruling=replace(approved(1).ruling, files=()),
    )
    control = ControlHarness(
        changed, suspended(approved(2)), denied(3), lapsed(project(4)),
        replace(project(5), observed=incomplete), project(6), granted(7),
        rules=[rule(Verdict.APPROVED, path(7)), rule(Verdict.PENDING, number=2)],
    )  # fmt: skip
    status = await control.ask(StatusQuery())
    assert status.keys() == StatusResult.__annotations__.keys()
    assert status["counts"] == {
        "published": 2,
        "approved": 3,
        "waiting": 2,
        "unpublishable": 0,
        "denied": 1,
        "lapsed": 1,
        "lapsed_rules": 1,
        "incomplete": 1,
        "changed": 1,
        "projects": 7,
    }
    (files,) = status["changed_files"]
    assert files.startswith("p1: mcp, ")
    assert files.isprintable()
    assert status["revision"] == control.world.ledger.revision
    assert status["daemon"]["pid"] == 4
    assert status["parents"][0]["path"] == "/home/ann/src"
    assert status["sessions"][0]["client"] == "an editor"
    assert status["closed_connections"] == {"of another user": 3}
    assert status["degraded"] == []


async def test_the_status_lists_disk_errors_and_degraded_parts() -> None:
    control = ControlHarness(approved(1))
    control.daemon.troubles = ["polling"]
    control.world.saver.refusing = True
    await control.decide(DecisionVerb.DENY, "p1")
    for _ in range(2):
        degraded = (await control.ask(StatusQuery()))["degraded"]
        assert degraded[0] == "polling"
        assert "the disk refuses 1" in degraded[1]
        assert len(degraded) == 2
    control.world.saver.refusing = False
    await control.world.ledger.save_now()
    assert (await control.ask(StatusQuery()))["degraded"] == ["polling"]


async def test_what_a_session_left_behind_is_no_trouble_of_rootsd() -> None:
    control = ControlHarness(approved(1))
    control.daemon.left = ["claude changed files that tools outside run: /src/p1/.mcp.json"]
    status = await control.ask(StatusQuery())
    assert (status["left_behind"], status["degraded"]) == (control.daemon.left, [])


async def test_a_reload_is_answered_with_the_status() -> None:
    control = ControlHarness(project(1))
    assert (await control.ask(ReloadRequest()))["counts"]["projects"] == 1
    assert control.daemon.told == ["reload"]


async def test_the_daemon_stops_only_after_the_answer_is_sent() -> None:
    control = ControlHarness()
    assert await control.ask(StopRequest()) == {}
    assert control.daemon.told == []
    control.dispatcher.finish(StatusQuery())
    assert control.daemon.told == []
    control.dispatcher.finish(StopRequest())
    assert control.daemon.told == ["stop"]


async def test_sessions_lists_open_sessions_or_recent_ones_with_history() -> None:
    control = ControlHarness()
    assert [item["id"] for item in (await control.ask(SessionsQuery()))["items"]] == ["open"]
    query = SessionsQuery(SessionView.HISTORY, last=2)
    assert [item["id"] for item in (await control.ask(query))["items"]] == ["old0", "old1"]
