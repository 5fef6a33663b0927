"""A person's order on references: what is meant, what is refused, and what is told afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest

from rootsd.core.changes import ProjectChange
from rootsd.core.errors import (
    AmbiguousReference,
    DeniedHere,
    IdentityChanged,
    NameTaken,
    NotPresent,
    RefusedPlace,
    RootsdError,
    UnknownProject,
)
from rootsd.core.inputs import Sighted, Unsafe, Vanished
from rootsd.core.model import (
    Access,
    Incomplete,
    Lapse,
    LapseReason,
    Presence,
    Project,
    ProjectKind,
    Rule,
    Ruling,
    Verdict,
)
from rootsd.wire.control import BadRequest, DecisionVerb, Effect, Selection
from support.decisions import NOON, approved, denied, granted, identity, project
from support.desks import Office, names
from support.fakes import (
    HANG_GUARD,
    HOME,
    SOURCES,
    DiskRefuses,
    approve,
    at,
    deny,
    path,
    rule,
    sight,
)

APPROVE, DENY, FORGET = DecisionVerb.APPROVE, DecisionVerb.DENY, DecisionVerb.FORGET
DRY_RUN = Effect.DRY_RUN


def missing(known: Project) -> Project:
    gone = replace(known.sighting, presence=Presence.MISSING, absent_since=NOON)
    return replace(known, sighting=gone)


def lapsed(known: Project) -> Project:
    return replace(known, ruling=Ruling(lapse=Lapse(LapseReason.REPLACED, NOON), name="old"))


async def test_an_approved_project_is_published_under_its_name_with_tags_and_access() -> None:
    office = Office(project(1))
    done = await office.decide(
        APPROVE, "p1", name="hammer", tags=("work", "a"), access=Access.READ
    )
    (item,) = done["items"]
    assert (item["name"], item["verdict"], item["published"]) == ("hammer", "approved", True)
    assert (item["tags"], item["access"]) == (["a", "work"], "read")
    assert done["unchanged"] == []
    assert done["revision"] == office.world.ledger.revision
    assert await office.world.told() == {path(1)}


async def test_a_denial_and_its_end_are_told() -> None:
    office = Office(approved(1))
    done = await office.decide(DENY, "p1")
    assert [item["verdict"] for item in done["items"]] == ["denied"]
    assert await office.world.told() == set()
    done = await office.decide(FORGET, "p1")
    assert [item["verdict"] for item in done["items"]] == ["pending"]


@pytest.mark.parametrize(
    ("verb", "known"), [(APPROVE, approved(1)), (DENY, denied(1)), (FORGET, project(1))]
)
async def test_what_is_so_already_is_told_apart_and_not_done_again(
    verb: DecisionVerb, known: Project
) -> None:
    office = Office(known, project(2))
    done = await office.decide(verb, "p1", "p2")
    assert "p1" in names(done["unchanged"])
    assert path(1) not in {
        change.path
        for batch in office.world.saver.batches
        for change in batch
        if isinstance(change, ProjectChange)
    }


@pytest.mark.parametrize(
    "more", [{"tags": ("new",)}, {"access": Access.READ}, {"name": "other"}], ids=str
)
async def test_an_approval_with_something_new_in_it_is_carried_out(more: dict[str, Any]) -> None:
    (item,) = (await Office(approved(1)).decide(APPROVE, "p1", **more))["items"]
    assert item["published"]


async def test_a_person_may_approve_what_a_rule_has_approved() -> None:
    office = Office(granted(1), rules=[rule(Verdict.APPROVED)])
    assert names((await office.decide(APPROVE, "p1"))["items"]) == ["p1"]


async def test_an_approval_keeps_the_tags_that_were_there() -> None:
    office = Office(approved(1))
    done = await office.decide(APPROVE, "p1", tags=("new",))
    assert done["items"][0]["tags"] == ["new", "work"]


@pytest.mark.parametrize("verb", DecisionVerb)
async def test_a_dry_run_tells_what_would_be_and_changes_nothing(verb: DecisionVerb) -> None:
    office = Office(approved(1), denied(2), project(3))
    before, revision = office.world.ledger.catalog, office.world.ledger.revision
    done = await office.decide(verb, "p1", "p2", "p3", effect=DRY_RUN)
    told = {item["name"]: item["verdict"] for item in done["items"]}
    would = {APPROVE: "approved", DENY: "denied", FORGET: "pending"}[verb]
    assert len(told) == 2
    assert set(told.values()) == {would}
    assert done["revision"] == revision
    assert office.world.ledger.catalog is before
    assert office.world.saver.batches == []


async def test_a_dry_run_proposes_no_folder_either() -> None:
    office = Office()
    office.world.disk.folders[path(1)] = identity(1)
    with pytest.raises(UnknownProject, match="not known yet"):
        await office.decide(APPROVE, "/home/ann/src/p1", effect=DRY_RUN)
    assert office.surveyor.proposed == []
    assert office.world.ledger.catalog.projects == {}


async def test_a_dry_run_is_refused_as_the_order_would_be() -> None:
    office = Office(denied(1), at(path(1) + b"/in", project(2)))
    with pytest.raises(DeniedHere):
        await office.decide(APPROVE, "in", effect=DRY_RUN)


async def test_a_folder_that_no_scan_has_found_is_proposed_and_approved_in_one_step() -> None:
    office = Office()
    office.world.disk.folders[path(1)] = identity(1)
    done = await office.decide(APPROVE, "/home/ann/link")
    assert names(done["items"]) == ["p1"]
    assert office.surveyor.proposed == [path(1)]
    assert await office.world.told() == {path(1)}


async def test_the_folder_where_the_person_is_is_proposed_too() -> None:
    office = Office()
    office.world.disk.folders[path(1)] = identity(1)
    assert names((await office.decide(APPROVE, ".", cwd="/home/ann/src/p1"))["items"]) == ["p1"]


@pytest.mark.parametrize("verb", [DENY, FORGET])
async def test_only_an_approval_proposes(verb: DecisionVerb) -> None:
    office = Office()
    office.world.disk.folders[path(1)] = identity(1)
    with pytest.raises(UnknownProject):
        await office.decide(verb, "/home/ann/src/p1")
    assert office.surveyor.proposed == []


async def test_what_is_known_or_a_word_or_a_glob_is_not_proposed() -> None:
    office = Office(project(1))
    await office.decide(APPROVE, "/home/ann/src/p1", "src/p*")
    with pytest.raises(UnknownProject):
        await office.decide(APPROVE, "word")
    assert office.surveyor.proposed == []


async def test_an_order_with_a_word_that_means_nothing_proposes_nothing_before_it_fails() -> None:
    office = Office(project(2))
    office.world.disk.folders[path(1)] = identity(1)
    with pytest.raises(UnknownProject, match="word"):
        await office.decide(APPROVE, "/home/ann/src/p1", "p2", "word")
    assert office.surveyor.proposed == []
    assert await office.world.told() == set()


async def test_a_folder_that_is_not_there_is_refused_and_the_others_with_it() -> None:
    office = Office(project(2))
    with pytest.raises(NotPresent):
        await office.decide(APPROVE, "p2", "/home/ann/src/p1")
    assert await office.world.told() == set()


async def test_an_empty_reference_is_not_the_folder_where_the_person_is() -> None:
    office = Office(project(1))
    with pytest.raises(BadRequest):
        await office.decide(APPROVE, "", cwd="/home/ann/src/p1")
    with pytest.raises(BadRequest):
        await office.decide(APPROVE, select=Selection.WAITING, under="")
    assert await office.world.told() == set()


async def test_no_reference_at_all_is_refused() -> None:
    with pytest.raises(UnknownProject) as refusal:
        await Office(project(1)).decide(APPROVE)
    assert refusal.value.remedy == "rootsd pending"


REFUSALS: list[tuple[Project, tuple[Project, ...], tuple[Rule, ...], type[RootsdError]]] = [
    (missing(lapsed(project(1))), (), (), NotPresent),
    (
        replace(
            project(1),
            sighting=replace(project(1).sighting, incomplete=Incomplete.INTERRUPTED),
        ),
        (),
        (),
        NotPresent,
    ),
    (
        replace(project(1), sighting=replace(project(1).sighting, hazard=LapseReason.EXPOSED)),
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
async def test_what_cannot_be_approved_is_refused_with_a_reason_and_the_others_with_it(
    known: Project,
    others: tuple[Project, ...],
    rules: tuple[Rule, ...],
    refusal: type[RootsdError],
) -> None:
    office = Office(known, at(b"/home/ann/other/p9", project(9)), *others, rules=rules)
    before = office.world.ledger.catalog
    with pytest.raises(refusal) as refused:
        await office.decide(APPROVE, "p9", "r1")
    assert refused.value.message.isprintable()
    assert office.world.ledger.catalog is before


async def test_a_folder_that_was_replaced_after_it_was_found_is_not_approved() -> None:
    office = Office(project(1))
    office.world.disk.folders[path(1)] = identity(10)
    with pytest.raises(IdentityChanged) as refused:
        await office.decide(APPROVE, "p1")
    assert refused.value.remedy == "rootsd pending"
    assert await office.world.told() == set()
    await office.decide(APPROVE, "p1")
    assert await office.world.told() == {path(1)}


async def test_a_name_goes_with_one_project_alone() -> None:
    office = Office(project(1), project(2))
    for refs in (("p1", "p2"), ("p*",)):
        with pytest.raises(NameTaken):
            await office.decide(APPROVE, *refs, name="hammer")
    with pytest.raises(NameTaken):
        await office.decide(APPROVE, select=Selection.WAITING, name="hammer")
    assert await office.world.told() == set()


async def test_a_name_that_another_project_holds_is_refused() -> None:
    office = Office(approved(1), project(2))
    with pytest.raises(NameTaken):
        await office.decide(APPROVE, "p2", name="p1")


@pytest.mark.parametrize(
    "word", ["", " ", ".", "..", "/x", "a\nb", "a\x1b[m", "\u202eb", "\ud800"]
)
async def test_a_name_or_tag_that_clients_cannot_be_told_is_refused(word: str) -> None:
    office = Office(project(1))
    more: dict[str, Any]
    for more in ({"name": word}, {"tags": ("fine", word)}):
        with pytest.raises(BadRequest) as refusal:
            await office.decide(APPROVE, "p1", **more)
        assert refusal.value.message.isprintable()
    assert await office.world.told() == set()


async def test_an_ambiguous_reference_decides_nothing() -> None:
    office = Office(at(SOURCES + b"/a/api", project(1)), at(SOURCES + b"/b/api", project(2)))
    with pytest.raises(AmbiguousReference):
        await office.decide(DENY, "api")
    assert office.world.saver.batches == []


async def test_a_glob_overturns_no_denial_and_leaves_out_what_cannot_be_approved() -> None:
    office = Office(
        project(1),
        denied(2),
        missing(lapsed(project(3))),
        project(4),
        at(path(4) + b"/p5", denied(5)),
        at(path(4) + b"/p5/p6", project(6)),
        approved(7),
    )
    done = await office.decide(APPROVE, "p*")
    assert (names(done["items"]), names(done["unchanged"])) == (["p1"], ["p7"])
    assert await office.world.told() == {path(1), path(7)}
    with pytest.raises(UnknownProject):
        await office.decide(APPROVE, "p2*")
    await office.decide(APPROVE, "p2")
    assert path(2) in await office.world.told()


async def test_a_glob_denies_and_forgets_whatever_it_matches() -> None:
    office = Office(approved(1), denied(2), project(3))
    done = await office.decide(DENY, "p*")
    assert (names(done["items"]), names(done["unchanged"])) == (["p1", "p3"], ["p2"])
    assert names((await office.decide(FORGET, "p*"))["items"]) == ["p1", "p2", "p3"]


async def test_a_sweep_approves_what_waits_and_tells_what_it_left_out() -> None:
    office = Office(
        project(1), denied(2), lapsed(project(3)), project(4), at(path(4) + b"/in", denied(5))
    )
    done = await office.decide(APPROVE, select=Selection.WAITING)
    assert names(done["items"]) == ["p1", "old"]
    assert done["warnings"] == ["p4 is left out: it holds a denied project"]
    assert await office.world.told() == {path(1), path(3)}


async def test_a_sweep_that_denies_leaves_nothing_out() -> None:
    office = Office(project(4), at(path(4) + b"/in", denied(5)))
    done = await office.decide(DENY, select=Selection.WAITING)
    assert (names(done["items"]), done["warnings"]) == (["p4"], [])


async def test_a_sweep_may_be_narrowed_to_what_lapsed_and_to_a_folder() -> None:
    office = Office(project(1), lapsed(project(2)), at(SOURCES + b"/sub/p3", lapsed(project(3))))
    under = "/home/ann/src/sub"
    done = await office.decide(APPROVE, select=Selection.LAPSED, under=under, effect=DRY_RUN)
    assert [item["id"] for item in done["items"]] == ["r3"]
    done = await office.decide(APPROVE, select=Selection.WAITING, under="sub", effect=DRY_RUN)
    assert [item["id"] for item in done["items"]] == ["r3"]
    with pytest.raises(UnknownProject):
        await office.decide(APPROVE, select=Selection.WAITING, under="/home/ann/src/su")


async def test_a_selection_of_what_is_published_denies_just_that() -> None:
    office = Office(approved(1), project(2))
    assert names((await office.decide(DENY, select=Selection.PUBLISHED))["items"]) == ["p1"]


async def test_a_denial_inside_a_root_warns_that_the_root_is_withheld() -> None:
    office = Office(approved(1), at(path(1) + b"/in", project(2)))
    done = await office.decide(DENY, "in")
    assert done["warnings"] == ["p1 is withheld: it holds a denied project"]
    assert await office.world.told() == set()


async def test_a_project_that_is_forgotten_and_gone_is_told_a_last_time() -> None:
    office = Office(missing(denied(1)))
    (item,) = (await office.decide(FORGET, "p1"))["items"]
    assert (item["name"], item["verdict"], item["presence"]) == ("p1", "pending", "missing")
    assert office.world.ledger.catalog.projects == {}


async def test_a_denial_that_the_disk_refuses_is_told_with_a_warning() -> None:
    office = Office(approved(1), project(2))
    office.world.saver.refusing = True
    done = await office.decide(DENY, "p1")
    assert done["warnings"] == ["the disk refuses to keep this: it holds until the daemon ends"]
    assert [item["verdict"] for item in done["items"]] == ["denied"]
    with pytest.raises(DiskRefuses):
        await office.decide(APPROVE, "p2")
    assert (await office.decide(APPROVE, "p2", effect=DRY_RUN))["warnings"] == []


@pytest.mark.parametrize("sweep", [("p*",), ()])
async def test_a_denial_that_comes_first_is_not_overturned_by_a_sweep_on_its_way(
    sweep: tuple[str, ...],
) -> None:
    office = Office(project(1), project(2))
    select = Selection.NAMED if sweep else Selection.WAITING
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with office.world.saver.held_up() as busy:
                group.start_soon(office.world.ledger.obey, [deny(1)])
                # The denial is decided under the lock; the sweep chooses before it is known.
                group.start_soon(lambda: office.decide(APPROVE, *sweep, select=select))
                await busy.wait()
                await anyio.wait_all_tasks_blocked()
    assert office.world.verdict(path(1)) is Verdict.DENIED
    assert await office.world.told() == {path(2)}


async def test_an_order_that_somebody_overtook_is_chosen_again() -> None:
    office = Office(approved(1), project(2))
    answers: list[dict[str, Any]] = []

    async def forget() -> None:
        answers.append(await office.decide(FORGET, "p2"))

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with office.world.saver.held_up() as busy:
                group.start_soon(office.world.ledger.obey, [approve(2)])
                await busy.wait()
                group.start_soon(forget)
                await anyio.wait_all_tasks_blocked()
    assert names(answers[0]["items"]) == ["p2"]
    assert answers[0]["unchanged"] == []
    assert office.world.verdict(path(2)) is Verdict.PENDING


@pytest.mark.parametrize("moment", ["dropped", "unsafe"])
async def test_what_changes_on_disk_while_an_approval_waits_is_refused(moment: str) -> None:
    office = Office(project(1), project(2))
    seen = Vanished(path(2)) if moment == "dropped" else Unsafe(path(2), LapseReason.EXPOSED)
    refusals: list[type[RootsdError]] = []

    async def approve_it() -> None:
        try:
            await office.decide(APPROVE, "p2")
        except RootsdError as refusal:
            refusals.append(type(refusal))

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            with office.world.saver.held_up() as busy:
                group.start_soon(office.world.ledger.observe, [seen, sight(3)])
                await busy.wait()
                group.start_soon(approve_it)
                await anyio.wait_all_tasks_blocked()
    assert refusals == [UnknownProject if moment == "dropped" else NotPresent]
    assert await office.world.told() == set()


async def test_a_rule_speaks_for_a_proposed_folder_before_the_person_does() -> None:
    office = Office(rules=[rule(Verdict.APPROVED)])
    office.world.disk.folders[path(1)] = identity(1)
    await office.decide(APPROVE, "/home/ann/src/p1")
    assert [c.verb.value for batch in office.world.saver.batches for c in batch] == [
        "observed",
        "granted",
        "approved",
    ]
    assert Sighted(path(1), ProjectKind.GIT, identity(1)) == sight(1)
