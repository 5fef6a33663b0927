"""What each control request does, and the answer it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from rootsd.core.errors import AmbiguousReference, UnknownProject
from rootsd.core.inputs import Observation, Sighted, Vanished
from rootsd.core.model import (
    Access,
    Decision,
    Incomplete,
    Presence,
    Project,
    ProjectKind,
    Verdict,
)
from rootsd.wire.control import (
    BadRequest,
    DecisionVerb,
    Item,
    Listing,
    Progress,
    ProjectsQuery,
    Reload,
    Scanned,
    ScanOrder,
    Selection,
    Status,
    StatusQuery,
    Stop,
)
from rootsd.wire.facts import ShowQuery
from rootsd.wire.sessions import SessionsQuery, SessionView
from support.decisions import NOON, PERSON, approved, denied, granted, identity, project
from support.desks import CWD, Office, names
from support.fakes import HANG_GUARD, HOME, SOURCES, at, deny, lapsed, path, rule, sight


def suspended(known: Project) -> Project:
    return replace(known, sighting=replace(known.sighting, presence=Presence.SUSPENDED))


def read_only(known: Project) -> Project:
    decision = Decision(Verdict.APPROVED, PERSON, NOON, known.sighting.identity, Access.READ)
    return replace(known, ruling=replace(known.ruling, decision=decision))


async def test_the_status_tells_everything_and_how_many() -> None:
    incomplete = replace(project(5).sighting, incomplete=Incomplete.NO_HEAD)
    office = Office(
        approved(1), suspended(approved(2)), denied(3), lapsed(project(4)),
        replace(project(5), sighting=incomplete), project(6), granted(7),
        rules=[rule(Verdict.APPROVED, path(7))],
    )  # fmt: skip
    status = await office.ask(StatusQuery())
    assert list(status) == list(Status.__annotations__)
    assert status["counts"] == {
        "published": 2,
        "approved": 3,
        "waiting": 2,
        "denied": 1,
        "lapsed": 1,
        "incomplete": 1,
        "projects": 7,
    }
    assert status["revision"] == office.world.ledger.revision
    assert status["daemon"]["pid"] == 4
    assert status["parents"][0]["path"] == "/home/ann/src"
    assert status["sessions"][0]["client"] == "an editor"
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
    assert (await office.ask(Reload()))["counts"]["projects"] == 1
    assert office.host.told == ["reload"]


async def test_the_daemon_is_stopped_only_once_the_answer_is_out() -> None:
    office = Office()
    assert await office.ask(Stop()) == {}
    assert office.host.told == []
    office.desk.answered(StatusQuery())
    assert office.host.told == []
    office.desk.answered(Stop())
    assert office.host.told == ["stop"]


EVERYTHING = (
    replace(approved(1), ruling=replace(approved(1).ruling, tags=("home", "work"))),
    denied(2),
    lapsed(project(3)),
    project(4),
    at(SOURCES + b"/sub/p5", approved(5)),
)


@pytest.mark.parametrize(
    ("more", "listed"),
    [
        ({}, ["p1", "p2", "p3", "p4", "p5"]),
        ({"select": Selection.WAITING}, ["p3", "p4"]),
        ({"select": Selection.LAPSED}, ["p3"]),
        ({"select": Selection.PUBLISHED}, ["p1", "p5"]),
        ({"verdict": Verdict.DENIED}, ["p2"]),
        ({"verdict": Verdict.PENDING, "select": Selection.LAPSED}, ["p3"]),
        ({"tag": "home"}, ["p1"]),
        ({"tag": "ho"}, []),
        ({"under": "sub"}, ["p5"]),
        ({"under": "/home/ann/link"}, ["p1"]),
        ({"under": "/home/ann/src/p"}, []),
        ({"refs": ("p4", "p1", "/home/ann/link")}, ["p4", "p1"]),
        ({"refs": ("p*",), "verdict": Verdict.APPROVED}, ["p1", "p5"]),
    ],
)
async def test_projects_are_listed_as_they_are_asked_for(
    more: dict[str, Any], listed: list[str]
) -> None:
    office = Office(*EVERYTHING)
    listing = await office.ask(ProjectsQuery(CWD, **more))
    assert list(listing) == list(Listing.__annotations__)
    assert names(listing["items"]) == listed
    assert all(set(item) == Item.__required_keys__ for item in listing["items"])


async def test_what_is_shown_is_what_the_references_mean_with_its_facts() -> None:
    office = Office(*EVERYTHING)

    async def facts_of(projects: Sequence[Project]) -> list[dict[str, Any]]:
        return [{"branch": f"of {project.id}"} for project in projects]

    office.desk = replace(office.desk, facts_of=facts_of)
    first, second = sorted(p.id for p in EVERYTHING if p.path.startswith(b"/"))[:2]
    listing = await office.ask(ShowQuery(CWD, (second, first)))
    assert [item["branch"] for item in listing["items"]] == [f"of {second}", f"of {first}"]
    with pytest.raises(UnknownProject):
        await office.ask(ShowQuery(CWD, ("none",)))


async def test_a_reference_that_fits_nothing_or_several_is_an_error_in_a_listing() -> None:
    office = Office(at(SOURCES + b"/a/api", project(1)), at(SOURCES + b"/b/api", project(2)))
    with pytest.raises(UnknownProject):
        await office.ask(ProjectsQuery(CWD, refs=("nope",)))
    with pytest.raises(AmbiguousReference):
        await office.ask(ProjectsQuery(CWD, refs=("api",)))
    with pytest.raises(BadRequest):
        await office.ask(ProjectsQuery(CWD, under="a\0b"))


async def test_a_listing_is_verified_and_of_the_revision_that_it_names() -> None:
    office = Office(approved(1), approved(2))
    office.world.disk.folders[path(1)] = identity(10)
    listing = await office.ask(ProjectsQuery(CWD, select=Selection.PUBLISHED))
    assert names(listing["items"]) == ["p2"]
    assert listing["revision"] == office.world.ledger.revision


async def test_a_listing_agrees_with_what_clients_are_told_while_a_denial_is_being_saved() -> None:
    office = Office(approved(1))
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with office.world.saver.held_up() as busy:
                group.start_soon(office.world.ledger.obey, [deny(1)])
                await busy.wait()
                listing = await office.ask(ProjectsQuery(CWD))
                told = await office.world.told()
    assert listing["items"][0]["published"] is (path(1) in told) is False
    assert listing["revision"] == office.world.ledger.revision


async def scanned(
    office: Office, *finds: Observation, parent: str | None = None
) -> dict[str, Any]:
    office.surveyor.finds = finds
    return await office.ask(ScanOrder(parent))


async def test_a_scan_tells_what_is_new_gone_and_changed() -> None:
    office = Office(project(1), project(2), approved(3), approved(4), denied(5), project(6))
    done = await scanned(
        office,
        sight(1),
        Vanished(path(2)),
        Vanished(path(3)),
        sight(4, now=40),
        Vanished(path(5)),
        replace(sight(6), kind=ProjectKind.JJ),
        sight(7),
    )
    assert list(done) == list(Scanned.__annotations__)
    assert names(done["new"]) == ["p7"]
    assert names(done["gone"]) == ["p3", "p5", "p2"]
    assert names(done["changed"]) == ["p4", "p6"]
    assert {item["presence"] for item in done["gone"]} == {"missing"}
    assert [item["verdict"] for item in done["gone"]] == ["approved", "denied", "pending"]
    assert done["changed"][0]["lapsed"] == "replaced"
    assert (done["projects"], done["folders"], done["seconds"]) == (6, 7, 0.123)
    assert done["revision"] == office.world.ledger.revision


async def test_a_scan_that_sees_the_same_again_tells_nothing() -> None:
    office = Office(approved(1), project(2))
    done = await scanned(office, sight(1), sight(2))
    assert (done["new"], done["gone"], done["changed"]) == ([], [], [])


async def test_what_comes_back_has_changed_and_what_stays_away_has_not() -> None:
    office = Office(approved(1), approved(2))
    await scanned(office, Vanished(path(1)), Vanished(path(2)))
    done = await scanned(office, sight(1), Vanished(path(2)))
    assert (names(done["changed"]), done["new"], done["gone"]) == (["p1"], [], [])


async def test_the_scan_of_one_parent_tells_of_that_parent_alone() -> None:
    office = Office()
    elsewhere = Sighted(HOME + b"/else/where", ProjectKind.GIT, identity(9))
    done = await scanned(office, sight(1), elsewhere, parent="/home/ann/src/")
    assert office.surveyor.scanned == [SOURCES]
    assert names(done["new"]) == ["p1"]


@pytest.mark.parametrize("parent", ["/home/ann/else", "/home/ann", "/home/ann/src\x1b/p1"])
async def test_only_a_parent_is_scanned(parent: str) -> None:
    office = Office()
    with pytest.raises(UnknownProject) as refusal:
        await scanned(office, parent=parent)
    assert refusal.value.remedy == "rootsd parent ls"
    assert refusal.value.message.isprintable()
    assert office.surveyor.scanned == []


async def test_a_scan_reports_its_progress() -> None:
    office = Office()
    reports: list[Progress] = []
    office.surveyor.finds = [sight(1)]
    await office.desk.answer(ScanOrder(), PERSON, reports.append)
    assert [report["projects"] for report in reports] == [1]


async def test_sessions_are_the_open_ones_or_the_last_with_their_history() -> None:
    office = Office()
    assert [item["id"] for item in (await office.ask(SessionsQuery()))["items"]] == ["open"]
    query = SessionsQuery(SessionView.HISTORY, last=2)
    assert [item["id"] for item in (await office.ask(query))["items"]] == ["old0", "old1"]


async def test_who_asked_for_a_folder_stands_beside_it() -> None:
    office = Office(project(1))
    office.desk = replace(office.desk, note_on=lambda _: "an agent asks")
    [item] = (await office.ask(ProjectsQuery("/")))["items"]
    assert item["note"] == "an agent asks"
