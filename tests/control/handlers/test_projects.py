"""Listing and showing projects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import pytest

from rootsd.core.errors import AmbiguousReference, UnknownProject
from rootsd.core.model import Project, ProjectKind, Verdict
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.projects import (
    NextPendingQuery,
    ProjectItem,
    ProjectListing,
    ProjectsQuery,
    Selection,
    ShowQuery,
)
from rootsd.wire.request import BadRequest
from support.control_harness import CWD, ControlHarness, names
from support.ledger_harness import HANG_GUARD, SOURCES, at, deny, lapsed, path, sight
from support.sample_decisions import NOON, approved, denied, identity, project

EVERYTHING = (
    replace(approved(1), ruling=replace(approved(1).ruling, tags=("home", "work"))),
    denied(2),
    lapsed(project(3)),
    replace(
        project(4),
        observed=replace(
            project(4).observed, kind=ProjectKind.HG, first_seen=NOON + timedelta(days=1)
        ),
    ),
    at(SOURCES + b"/sub/p5", approved(5)),
)


@pytest.mark.parametrize(
    ("more", "listed"),
    [
        ({}, ["p1", "p2", "p3", "p4", "p5"]),
        ({"select": Selection.PENDING}, ["p3", "p4"]),
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
        ({"refs": ("p4", "p1"), "select": Selection.PENDING}, ["p4"]),
        ({"kinds": (ProjectKind.HG,)}, ["p4"]),
        ({"kinds": (ProjectKind.HG, ProjectKind.GIT)}, ["p1", "p2", "p3", "p4", "p5"]),
        ({"since": "2026-03-05T12:00:00Z"}, ["p4"]),
        ({"since": "2026-03-05T14:00:00+02:00"}, ["p4"]),
        ({"since": "2026-03-05T12:00:01Z"}, []),
        ({"since": "2026-03-05T12:00:00Z", "kinds": (ProjectKind.GIT,)}, []),
        ({"refs": ("p*",), "verdict": Verdict.APPROVED}, ["p1", "p5"]),
    ],
)
async def test_projects_are_listed_by_the_query(more: dict[str, Any], listed: list[str]) -> None:
    control = ControlHarness(*EVERYTHING)
    listing = await control.ask(ProjectsQuery(CWD, **more))
    assert set(listing) | {"unpublishable"} == set(ProjectListing.__annotations__)
    assert names(listing["items"]) == listed
    assert all(set(item) == ProjectItem.__required_keys__ for item in listing["items"])


async def test_unpublishable_projects_are_listed_beside_pending_ones_with_the_reason() -> None:
    odd = at(b"/home/ann/src/caf\xe9", project(9))
    control = ControlHarness(project(1), odd)
    listing = await control.ask(ProjectsQuery(CWD, select=Selection.PENDING))
    assert names(listing["items"]) == ["p1"]
    (unpublishable,) = listing["unpublishable"]
    assert (unpublishable["path"], unpublishable["path_b64"]) == (None, "L2hvbWUvYW5uL3NyYy9jYWbp")
    assert unpublishable["note"] == "can never be published: its path is not UTF-8"
    assert (await control.ask(StatusQuery()))["counts"]["unpublishable"] == 1
    decided = await control.ask(DecideRequest(DecisionVerb.APPROVE, CWD, select=Selection.PENDING))
    assert names(decided["items"]) == ["p1"]
    assert any("its path is not UTF-8" in warning for warning in decided["warnings"])


async def test_show_returns_the_referenced_projects_with_their_facts() -> None:
    control = ControlHarness(*EVERYTHING)

    async def facts_of(projects: Sequence[Project]) -> list[dict[str, Any]]:
        return [{"branch": f"of {project.id}"} for project in projects]

    control.services = replace(control.services, facts_of=facts_of)
    first, second = sorted(p.id for p in EVERYTHING if p.path.startswith(b"/"))[:2]
    listing = await control.ask(ShowQuery(CWD, (second, first)))
    assert [item["branch"] for item in listing["items"]] == [f"of {second}", f"of {first}"]
    with pytest.raises(UnknownProject):
        await control.ask(ShowQuery(CWD, ("none",)))


async def test_an_unknown_or_ambiguous_reference_is_an_error_in_a_listing() -> None:
    control = ControlHarness(
        at(SOURCES + b"/a/api", project(1)), at(SOURCES + b"/b/api", project(2))
    )
    with pytest.raises(UnknownProject):
        await control.ask(ProjectsQuery(CWD, refs=("nope",)))
    with pytest.raises(AmbiguousReference):
        await control.ask(ProjectsQuery(CWD, refs=("api",)))
    with pytest.raises(BadRequest):
        await control.ask(ProjectsQuery(CWD, under="a\0b"))


@pytest.mark.parametrize("since", ["", "yesterday", "2026-03-05", "2026-03-05T12:00:00", "\udcff"])
async def test_a_time_of_a_listing_needs_a_zone(since: str) -> None:
    with pytest.raises(BadRequest, match="RFC 3339"):
        await ControlHarness(project(1)).ask(ProjectsQuery(CWD, since=since))


async def test_a_listing_is_verified_and_matches_its_revision() -> None:
    control = ControlHarness(approved(1), approved(2))
    control.world.disk.folders[path(1)] = identity(10)
    listing = await control.ask(ProjectsQuery(CWD, select=Selection.PUBLISHED))
    assert names(listing["items"]) == ["p2"]
    assert listing["revision"] == control.world.ledger.revision


async def test_a_listing_agrees_with_clients_while_a_denial_is_saved() -> None:
    control = ControlHarness(approved(1))
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with control.world.saver.held_up() as busy:
                group.start_soon(control.world.ledger.execute, [deny(1)])
                await busy.wait()
                listing = await control.ask(ProjectsQuery(CWD))
                told = await control.world.told()
    assert listing["items"][0]["published"] is (path(1) in told) is False
    assert listing["revision"] == control.world.ledger.revision


async def test_origins_are_read_only_for_projects_that_may_have_returned() -> None:
    read: list[bytes] = []

    async def origins_of(projects: Iterable[Project]) -> dict[bytes, str]:
        read.extend(known.path for known in projects)
        return dict.fromkeys(read, "there")

    known = lapsed(approved(1))
    back = replace(known, ruling=replace(known.ruling, origin="there"))
    control = ControlHarness(back, approved(2), project(3))
    control.services = replace(control.services, origins_of=origins_of)
    items = (await control.ask(ProjectsQuery("/")))["items"]
    assert read == [path(1)]
    assert items[0]["note"].endswith("; same origin")


async def test_a_root_request_is_listed_beside_its_project() -> None:
    control = ControlHarness(project(1))
    control.services = replace(control.services, note_on=lambda _: "an agent asks")
    [item] = (await control.ask(ProjectsQuery("/")))["items"]
    assert item["note"] == "an agent asks"


async def test_a_waiting_listing_is_answered_when_a_new_project_is_pending() -> None:
    control = ControlHarness(project(1), approved(2))
    first = await control.ask(NextPendingQuery())
    assert names(first["items"]) == ["p1"]
    known = tuple(item["id"] for item in first["items"])
    assert (await control.ask(NextPendingQuery(known)))["items"] == []
    listings: list[dict[str, Any]] = []

    async def follow() -> None:
        listings.append(await control.ask(NextPendingQuery(known, wait_s=30)))

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            assert listings == []
            await control.world.ledger.observe([sight(3)])
    assert names(listings[0]["items"]) == ["p3"]
