"""A person's order on references: the projects it covers, refusals, and the answer."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.changes import ProjectChange
from rootsd.core.errors import (
    DeniedHere,
    IdentityChanged,
    NameTaken,
    NotPresent,
    OrderRefused,
    RefusedPlace,
    RootsdError,
    UnknownProject,
)
from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import (
    IncompleteReason,
    Inspection,
    Lapse,
    LapseReason,
    Project,
    Rule,
    Ruling,
    Verdict,
)
from rootsd.wire.decisions import DecisionVerb
from rootsd.wire.projects import ProjectsQuery, Selection
from rootsd.wire.request import ApplyMode, BadRequest
from support.control_harness import ACCEPT, APPROVE, DENY, FORGET, ControlHarness, names
from support.ledger_harness import (
    HOME,
    SOURCES,
    DiskRefuses,
    at,
    lapsed,
    missing,
    path,
    rule,
)
from support.sample_decisions import NOON, approved, denied, granted, identity, project


async def test_an_order_publishes_withdraws_and_forgets_a_project() -> None:
    control = ControlHarness(project(1))
    done = await control.decide(
        APPROVE, "p1", name="hammer", tags=("work", "a"), access=Access.READ
    )
    (item,) = done["items"]
    assert (item["name"], item["verdict"], item["published"]) == ("hammer", "approved", True)
    assert (item["tags"], item["access"]) == (["a", "work"], "read")
    assert done["unchanged"] == []
    assert done["revision"] == control.world.ledger.revision
    assert await control.world.told() == {path(1)}
    for verb, verdict in ((DENY, "denied"), (FORGET, "pending")):
        done = await control.decide(verb, "p1")
        assert [item["verdict"] for item in done["items"]] == [verdict]
        assert await control.world.told() == set()


async def test_an_approval_records_the_origin_of_the_project() -> None:
    control = ControlHarness(project(1), project(2))

    async def origins_of(projects: Iterable[Project]) -> dict[bytes, str]:
        return {known.path: f"origin of {known.id}" for known in projects if known.id == "r1"}

    control.reader.origins = origins_of  # type: ignore[method-assign]
    await control.decide(APPROVE, "p1", "p2")
    known = control.world.ledger.catalog.projects
    assert known[path(1)].ruling.origin == "origin of r1"
    assert known[path(2)].ruling.origin is None


@pytest.mark.parametrize("step", ["look", "worktrees"])
async def test_an_error_while_an_approval_reads_the_projects_refuses_it(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group of errors would end the connection without an answer."""
    control = ControlHarness(project(1))
    refusal = OrderRefused("the disk is full", "df")

    async def refuse(*_: object) -> NoReturn:
        raise refusal

    if step == "look":
        monkeypatch.setattr(control.inspector, "look", refuse)
    else:
        monkeypatch.setattr(control.discovery, "refresh_worktrees", refuse)
    with pytest.raises(OrderRefused) as caught:
        await control.decide(APPROVE, "p1")
    assert caught.value is refusal


@pytest.mark.parametrize(
    ("verb", "known", "refs"),
    [
        (APPROVE, approved(1), ("p*",)),
        (DENY, denied(1), ("p1", "p2")),
        (FORGET, project(1), ("p1", "p2")),
    ],
)
async def test_unchanged_projects_are_reported_separately(
    verb: DecisionVerb, known: Project, refs: tuple[str, ...]
) -> None:
    control = ControlHarness(known, project(2))
    done = await control.decide(verb, *refs)
    assert "p1" in names(done["unchanged"])
    assert path(1) not in {
        change.path
        for batch in control.world.saver.batches
        for change in batch
        if isinstance(change, ProjectChange)
    }


@pytest.mark.parametrize(
    ("more", "field", "value"),
    [
        ({"tags": ("new",)}, "tags", ["new", "work"]),
        ({"access": Access.READ}, "access", "read"),
        ({"name": "other"}, "name", "other"),
    ],
)
async def test_an_approval_with_a_change_is_carried_out(
    more: dict[str, Any], field: str, value: object
) -> None:
    (item,) = (await ControlHarness(approved(1)).decide(APPROVE, "p1", **more))["items"]
    assert (item["published"], item[field]) == (True, value)


async def test_approving_a_named_root_again_renews_its_approval() -> None:
    control = ControlHarness(project(1), project(2))
    await control.decide(APPROVE, "p1", access=Access.READ, name="one", tags=("work",))
    before = control.world.ledger.catalog.roots[path(1)]
    would = await control.decide(APPROVE, "one", effect=ApplyMode.DRY_RUN)
    assert control.world.ledger.catalog.roots[path(1)] is before
    done = await control.decide(APPROVE, "one")
    for told in (would, done):
        assert told["renewed"] == [item["id"] for item in told["items"]] != []
        assert told["unchanged"] == []
    after = control.world.ledger.catalog.roots[path(1)]
    assert after == replace(before, approval=before.approval + 1)
    assert "renewed" not in await control.decide(APPROVE, "p2")


async def test_a_person_may_approve_what_a_rule_has_approved() -> None:
    control = ControlHarness(granted(1), rules=[rule(Verdict.APPROVED)])
    assert names((await control.decide(APPROVE, "p1"))["items"]) == ["p1"]


@pytest.mark.parametrize("verb", [APPROVE, DENY, FORGET])
async def test_a_dry_run_reports_the_effect_and_changes_nothing(verb: DecisionVerb) -> None:
    control = ControlHarness(approved(1), denied(2), project(3))
    before, revision = control.world.ledger.catalog, control.world.ledger.revision
    done = await control.decide(verb, "p1", "p2", "p3", effect=ApplyMode.DRY_RUN)
    told = {item["name"]: item["verdict"] for item in done["items"]}
    would = {APPROVE: "approved", DENY: "denied", FORGET: "pending"}[verb]
    assert len(told) == (3 if verb is APPROVE else 2)
    assert set(told.values()) == {would}
    assert done["revision"] == revision
    assert control.world.ledger.catalog is before
    assert control.world.saver.batches == []


async def test_changed_files_are_accepted_as_they_were_shown() -> None:
    control = ControlHarness(approved(1), project(2))

    async def listed(*files: tuple[str, str]) -> list[dict[str, Any]]:
        control.reader.seen = {path(1): Inspection(repr(files).encode(), None, "", files)}
        query = ProjectsQuery("/", select=Selection.CHANGED)
        items: list[dict[str, Any]] = (await control.ask(query))["items"]
        return items

    assert await listed() == []
    (shown,) = await listed(("mcp", "1"))
    assert shown["changed"] == {"mcp": "new"}
    (now,) = await listed(("mcp", "2"))
    root = control.world.ledger.catalog.roots[path(1)]
    with pytest.raises(IdentityChanged, match="changed after you were shown them"):
        await control.decide(ACCEPT, "p1", changes_shown=(shown["changes"],))
    done = await control.decide(ACCEPT, "p1", changes_shown=(now["changes"],))
    assert names(done["items"]) == ["p1"]
    assert await listed(("mcp", "2")) == []
    assert control.world.ledger.catalog.roots[path(1)] == root
    again = await control.decide(ACCEPT, "p1", changes_shown=(now["changes"],))
    assert names(again["unchanged"]) == ["p1"]
    with pytest.raises(UnknownProject, match="not approved"):
        await control.decide(ACCEPT, "p2", changes_shown=("",))


async def test_a_glob_of_paths_that_matches_nothing_is_no_missing_folder() -> None:
    with pytest.raises(UnknownProject, match="no project matches"):
        await ControlHarness(project(1)).decide(APPROVE, f"{os.fsdecode(path(1))}-*")


async def test_an_order_without_references_is_refused() -> None:
    with pytest.raises(UnknownProject) as refusal:
        await ControlHarness(project(1)).decide(APPROVE)
    assert refusal.value.remedy == "rootsd pending"


REFUSALS: list[tuple[Project, tuple[Project, ...], tuple[Rule, ...], type[RootsdError]]] = [
    (missing(lapsed(project(1))), (), (), NotPresent),
    (
        replace(
            project(1),
            observed=replace(project(1).observed, incomplete=IncompleteReason.INTERRUPTED),
        ),
        (),
        (),
        NotPresent,
    ),
    (
        replace(project(1), observed=replace(project(1).observed, hazard=LapseReason.EXPOSED)),
        (),
        (),
        NotPresent,
    ),
    (at(HOME + b"/.ssh/p1", project(1)), (), (), RefusedPlace),
    (at(SOURCES + b"/caf\xe9", project(1)), (), (), RefusedPlace),
    (at(path(2) + b"/p1", project(1)), (denied(2),), (), DeniedHere),
    (project(1), (at(path(1) + b"/in", denied(2)),), (), DeniedHere),
    (project(1), (), (rule(Verdict.DENIED),), DeniedHere),
    (approved(1), (), (rule(Verdict.DENIED),), DeniedHere),
    (at(path(2) + b"/p1", approved(1)), (denied(2),), (), DeniedHere),
]


@pytest.mark.parametrize(("known", "others", "rules", "refusal"), REFUSALS)
async def test_one_refused_project_refuses_the_whole_order_with_a_reason(
    known: Project,
    others: tuple[Project, ...],
    rules: tuple[Rule, ...],
    refusal: type[RootsdError],
) -> None:
    control = ControlHarness(known, at(b"/home/ann/other/p9", project(9)), *others, rules=rules)
    before = control.world.ledger.catalog
    with pytest.raises(refusal) as refused:
        await control.decide(APPROVE, "p9", "r1")
    assert refused.value.message.isprintable()
    if refusal is not NotPresent:  # the dry run is how a person sees what is missing
        with pytest.raises(refusal):
            await control.decide(APPROVE, "p9", "r1", effect=ApplyMode.DRY_RUN)
    assert control.world.ledger.catalog is before


async def test_a_name_can_be_given_to_one_project_only() -> None:
    control = ControlHarness(project(1), project(2), approved(3))
    for refs in (("p1", "p2"), ("p*",)):
        with pytest.raises(NameTaken):
            await control.decide(APPROVE, *refs, name="hammer")
    with pytest.raises(NameTaken):
        await control.decide(APPROVE, select=Selection.PENDING, name="hammer")
    with pytest.raises(NameTaken):
        await control.decide(APPROVE, "p2", name="p3")
    assert await control.world.told() == {path(3)}


async def test_a_forgotten_missing_project_is_reported_once_more() -> None:
    control = ControlHarness(missing(denied(1)))
    (item,) = (await control.decide(FORGET, "p1"))["items"]
    assert (item["name"], item["verdict"], item["presence"]) == ("p1", "pending", "missing")
    assert control.world.ledger.catalog.projects == {}


async def test_a_denial_that_the_disk_refuses_has_a_warning() -> None:
    control = ControlHarness(approved(1), project(2))
    control.world.saver.refusing = True
    done = await control.decide(DENY, "p1")
    assert done["warnings"] == ["the disk refuses to keep this: it holds until the daemon ends"]
    assert [item["verdict"] for item in done["items"]] == ["denied"]
    with pytest.raises(DiskRefuses):
        await control.decide(APPROVE, "p2")
    assert (await control.decide(APPROVE, "p2", effect=ApplyMode.DRY_RUN))["warnings"] == []


def _lost(known: Project, access: Access, reason: LapseReason = LapseReason.REPLACED) -> Project:
    return replace(known, ruling=Ruling(lapse=Lapse(reason, NOON), kept_access=access))


@pytest.mark.parametrize("how", ["one by one", "all that lapsed"])
async def test_a_reinstated_approval_has_its_former_access(how: str) -> None:
    control = ControlHarness(
        _lost(project(1), Access.READ),
        _lost(project(2), Access.READ_WRITE),
        _lost(project(3), Access.READ_WRITE),
    )
    await control.decide(APPROVE, "p3", access=Access.READ)
    if how == "one by one":
        await control.decide(APPROVE, "p1", "p2")
    else:
        await control.decide(APPROVE, select=Selection.LAPSED)
    roots = control.world.ledger.catalog.roots
    assert {root.name: root.access for root in roots.values()} == {
        "p1": Access.READ,
        "p2": Access.READ_WRITE,
        "p3": Access.READ,
    }
    await control.decide(APPROVE, "p1")
    assert control.world.ledger.catalog.roots[path(1)].access is Access.READ
    await control.decide(APPROVE, "p1", access=Access.READ_WRITE)
    assert control.world.ledger.catalog.roots[path(1)].access is Access.READ_WRITE


async def test_the_end_of_an_approval_can_be_set_changed_and_removed() -> None:
    control = ControlHarness(project(1))
    for lasts, expected in ((60, "12:01:00Z"), (120, "12:02:00Z"), (None, None)):
        done = await control.decide(APPROVE, "p1", lasts=lasts)
        told = done["items"][0]["expires_at"]
        assert told == (None if expected is None else f"2026-03-04T{expected}")
    assert (await control.decide(APPROVE, "p1"))["items"][0]["expires_at"] is None
    control.world.clock.pass_time(3_600)
    assert await control.world.told() == {path(1)}


async def test_an_expired_approval_is_not_selected_as_lapsed() -> None:
    control = ControlHarness(_lost(project(1), Access.READ, LapseReason.EXPIRED), project(2))
    with pytest.raises(UnknownProject):
        await control.decide(APPROVE, select=Selection.LAPSED)
    await control.decide(APPROVE, select=Selection.PENDING)
    assert await control.world.told() == {path(1), path(2)}


@pytest.mark.parametrize("lasts", [0, -1, 10**9, 2**63])
async def test_an_invalid_end_is_refused(lasts: int) -> None:
    control = ControlHarness(project(1))
    with pytest.raises(BadRequest, match="ten years"):
        await control.decide(APPROVE, "p1", lasts=lasts)


def _seen(known: Project) -> ProjectObserved:
    return ProjectObserved(known.path, known.observed.kind, known.observed.identity)


@pytest.mark.parametrize("effect", ApplyMode)
async def test_a_project_that_became_complete_a_moment_ago_is_approved(effect: ApplyMode) -> None:
    unfinished = replace(project(1).observed, incomplete=IncompleteReason.NO_HEAD)
    control = ControlHarness(replace(project(1), observed=unfinished))
    control.discovery.seen_again[path(1)] = _seen(project(1))
    done = await control.decide(APPROVE, "p1", effect=effect)
    assert names(done["items"]) == ["p1"]


async def test_a_project_that_appeared_a_moment_ago_is_approved_by_its_name() -> None:
    control = ControlHarness(project(1))
    control.discovery.appears = [_seen(project(2))]
    control.world.disk.folders[path(2)] = identity(2)
    done = await control.decide(APPROVE, "p2")
    assert names(done["items"]) == ["p2"]


async def test_a_denial_does_not_look_again() -> None:
    control = ControlHarness(project(1))
    control.discovery.appears = [_seen(project(2))]
    with pytest.raises(UnknownProject):
        await control.decide(DENY, "p2")
    assert path(2) not in control.world.ledger.catalog.projects


async def test_a_refusal_says_what_is_wrong_with_this_folder() -> None:
    exposed = replace(project(1).observed, hazard=LapseReason.EXPOSED)
    control = ControlHarness(replace(project(1), observed=exposed))
    with pytest.raises(NotPresent, match="cannot be published: others can write"):
        await control.decide(APPROVE, "p1")
    control.discovery.hazards[path(1)] = "it belongs to another user"
    with pytest.raises(NotPresent, match="cannot be published: it belongs to another user"):
        await control.decide(APPROVE, "p1")
