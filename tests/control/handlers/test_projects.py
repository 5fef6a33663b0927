"""Listing and showing projects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from rootsd.control.handlers import projects
from rootsd.control.listing import unread_warnings
from rootsd.core.encoding import identity_fingerprint
from rootsd.core.errors import AmbiguousReference, UnknownProject
from rootsd.core.model import Presence, Project, ProjectKind, Verdict
from rootsd.core.risks import FindingItem
from rootsd.vcs.facts import CollectedRisks
from rootsd.wire.daemon import SessionsQuery, StatusQuery
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.projects import (
    NextPendingQuery,
    ProjectItem,
    ProjectListing,
    ProjectsQuery,
    RequestNote,
    RiskFilter,
    RiskReading,
    Selection,
    ShownFacts,
    ShowQuery,
)
from rootsd.wire.request import BadRequest, ControlRequest
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
        ({"tag": "none"}, []),
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
    assert set(listing) | {"unpublishable", "incomplete"} == set(ProjectListing.__annotations__)
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


async def test_a_short_request_does_not_wait_for_a_long_listing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(projects, "ITEMS_PER_TURN", 1)
    control = ControlHarness(*(project(number) for number in range(1, 21)))
    answered = []

    async def ask(query: ControlRequest) -> None:
        await control.ask(query)
        answered.append(type(query))

    async with anyio.create_task_group() as group:
        group.start_soon(ask, ProjectsQuery(CWD))
        group.start_soon(ask, SessionsQuery())
    assert answered == [SessionsQuery, ProjectsQuery]


async def test_show_returns_the_referenced_projects_with_their_facts() -> None:
    control = ControlHarness(*EVERYTHING)

    async def facts_of(projects: Sequence[Project]) -> list[ShownFacts]:
        return [
            ShownFacts(
                origin=None,
                branch=f"of {project.id}",
                project_files=None,
                declared_names=None,
                findings=None,
            )
            for project in projects
        ]

    control.reader.facts = facts_of  # type: ignore[method-assign]
    first, second = sorted(p.id for p in EVERYTHING if p.path.startswith(b"/"))[:2]
    listing = await control.ask(ShowQuery(CWD, (second, first)))
    assert [item["branch"] for item in listing["items"]] == [f"of {second}", f"of {first}"]
    with pytest.raises(UnknownProject):
        await control.ask(ShowQuery(CWD, ("none",)))


async def test_a_listing_has_all_projects_that_an_ambiguous_reference_means() -> None:
    control = ControlHarness(
        at(SOURCES + b"/a/api", project(1)), at(SOURCES + b"/b/api", project(2))
    )
    with pytest.raises(UnknownProject):
        await control.ask(ProjectsQuery(CWD, refs=("nope",)))
    for query in (
        ShowQuery(CWD, refs=("api",)),
        ProjectsQuery(CWD, refs=("api",), select=Selection.NAMED),
    ):
        with pytest.raises(AmbiguousReference):
            await control.ask(query)
    both = await control.ask(ProjectsQuery(CWD, refs=("api",)))
    assert [item["path"] for item in both["items"]] == [
        "/home/ann/src/a/api",
        "/home/ann/src/b/api",
    ]
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
    control.reader.origins = origins_of  # type: ignore[method-assign]
    items = (await control.ask(ProjectsQuery("/")))["items"]
    assert read == [path(1)]
    assert items[0]["note"].endswith("; same origin")


RUNS = FindingItem(concern="executed", path=".mcp.json", detail="")
SECRET = FindingItem(concern="sensitive", path=".env", detail="")


class FakeRisks:
    """Reads the risks of all projects except `unread`: those of p3 in full, p4 has none."""

    def __init__(self, *unread: bytes) -> None:
        self.unread = unread
        self.read: list[list[bytes]] = []

    async def of(self, projects: Sequence[Project], seconds: float) -> dict[bytes, CollectedRisks]:
        assert 0 < seconds < HANG_GUARD
        self.read.append([known.path for known in projects])
        found = {path(1): [SECRET], path(2): [], path(3): [RUNS, SECRET], path(4): []}
        return {
            known.path: CollectedRisks(
                "https://github.com/acme/x", found[known.path], 0, known.path != path(2)
            )
            for known in projects
            if known.path not in self.unread
        }


def _with_risks(*unread: bytes) -> tuple[ControlHarness, FakeRisks]:
    control, risks = (
        ControlHarness(*(project(number) for number in range(1, 5))),
        FakeRisks(*unread),
    )
    control.reader.risks = risks.of  # type: ignore[method-assign]
    return control, risks


async def test_a_listing_reads_risks_only_on_request_and_only_of_what_it_lists() -> None:
    control, risks = _with_risks()
    [item] = (await control.ask(ProjectsQuery("/", refs=("p3",))))["items"]
    assert "risk" not in item
    assert risks.read == []
    query = ProjectsQuery("/", refs=("p3",), risks=RiskReading.QUICK)
    [item] = (await control.ask(query))["items"]
    assert risks.read == [[path(3)]]
    assert item["risk"] == "runs code: .mcp.json; secrets: .env"
    assert item["findings"] == [RUNS, SECRET]
    assert (item["origin"], item["origin_owner"]) == (
        "https://github.com/acme/x",
        "github.com/acme",
    )


@pytest.mark.parametrize(
    ("filters", "listed"),
    [
        ((), ["p1", "p2", "p3", "p4"]),
        (("any",), ["p1", "p2", "p3"]),
        (("none",), ["p4"]),
        (("secrets",), ["p1", "p3"]),
        (("runs-code", "none"), ["p3", "p4"]),
        (("outside",), []),
        (("unread",), ["p2"]),
    ],
)
async def test_projects_are_filtered_by_risk(filters: tuple[str, ...], listed: list[str]) -> None:
    control, _ = _with_risks()
    risk = tuple(map(RiskFilter, filters))
    listing = await control.ask(ProjectsQuery("/", risks=RiskReading.THOROUGH, risk=risk))
    assert names(listing["items"]) == listed
    assert listing["warnings"] == []


async def test_a_project_that_was_not_read_may_have_any_risk() -> None:
    control, _ = _with_risks(path(3))
    listing = await control.ask(ProjectsQuery("/", risks=RiskReading.QUICK))
    unread = listing["items"][2]
    assert (unread["risk"], unread["origin_owner"], unread["findings"]) == (None, None, None)
    assert listing["warnings"] == [
        "the risks of 1 of 4 projects are not known, because reading them takes too long;"
        " use REF, --under, or --risk any"
    ]
    for risk, listed in ((RiskFilter.ANY, ["p1", "p2", "p3"]), (RiskFilter.NONE, ["p4"])):
        query = ProjectsQuery("/", risks=RiskReading.QUICK, risk=(risk,))
        answer = await control.ask(query)
        assert names(answer["items"]) == listed
        # The one that was not read may be missing from these.
        assert answer["warnings"] == listing["warnings"]


async def test_projects_without_a_folder_have_no_risk_to_read() -> None:
    away = replace(project(1), observed=replace(project(1).observed, presence=Presence.MISSING))
    listing = await ControlHarness(away).ask(ProjectsQuery("/", risks=RiskReading.QUICK))
    assert listing["items"][0]["risk"] is None
    assert listing["warnings"] == []


async def test_a_quick_listing_of_very_many_projects_reads_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(projects, "QUICK_PROJECTS", 3)
    control, risks = _with_risks()
    listing = await control.ask(ProjectsQuery("/", risks=RiskReading.QUICK))
    assert (risks.read, len(listing["warnings"])) == ([], 1)
    await control.ask(ProjectsQuery("/", risks=RiskReading.THOROUGH))
    assert len(risks.read) == 1


async def test_a_filter_for_risks_leaves_out_what_can_never_be_published() -> None:
    control = ControlHarness(at(b"/home/ann/src/caf\xe9", project(9)))
    for risk, shown in (((), 1), ((RiskFilter.ANY,), 0)):
        query = ProjectsQuery(CWD, select=Selection.PENDING, risks=RiskReading.QUICK, risk=risk)
        assert len((await control.ask(query))["unpublishable"]) == shown


async def test_a_root_request_is_listed_beside_its_project() -> None:
    control = ControlHarness(project(1))
    control.services = replace(control.services, note_on=lambda _: "an agent asks")
    [item] = (await control.ask(ProjectsQuery("/")))["items"]
    assert item["note"] == "an agent asks"


async def test_a_waiting_listing_is_answered_when_a_new_project_is_pending() -> None:
    first, second = project(1), project(4)
    control = ControlHarness(first, approved(2), second)
    note = RequestNote.of("an agent asks", ())
    control.services = replace(
        control.services, note_on=lambda path: note if path == first.path else None
    )
    listed = await control.ask(NextPendingQuery())
    assert listed["items"] == [
        {
            "id": each.id,
            "identity": identity_fingerprint(each.observed.identity),
            "requested": each is first,
        }
        for each in (first, second)
    ]
    known = tuple(item["id"] for item in listed["items"])
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
    [item] = listings[0]["items"]
    catalog = control.world.ledger.catalog
    assert catalog.ids[item["id"]] == path(3)


def test_a_listing_without_risks_counts_no_projects_for_a_warning() -> None:
    """Counting 20,000 takes 6 ms, in which nobody else gets an answer."""

    class Uncounted(list[Project]):
        def __iter__(self) -> Iterator[Project]:
            raise AssertionError("counted")

    many = Uncounted([project(1)])
    assert unread_warnings(many, {}, RiskReading.NEVER) == []
    with pytest.raises(AssertionError, match="counted"):
        unread_warnings(many, {}, RiskReading.QUICK)
