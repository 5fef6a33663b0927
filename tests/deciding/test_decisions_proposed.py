"""Approvals of folders that no scan has found."""

from __future__ import annotations

import pytest

from rootsd.core.errors import (
    NotPresent,
    UnknownProject,
)
from rootsd.core.inputs import Sighted
from rootsd.core.model import (
    ProjectKind,
    Verdict,
)
from rootsd.wire.deciding import DecisionVerb, Effect
from rootsd.wire.projects import Selection
from rootsd.wire.request import BadRequest
from support.decisions import identity, project
from support.desks import APPROVE, DENY, FORGET, Office, names
from support.fakes import (
    path,
    rule,
    sight,
)


async def test_a_dry_run_proposes_no_folder_either() -> None:
    office = Office()
    office.world.disk.folders[path(1)] = identity(1)
    with pytest.raises(UnknownProject, match="not known yet"):
        await office.decide(APPROVE, "/home/ann/src/p1", effect=Effect.DRY_RUN)
    assert office.surveyor.proposed == []
    assert office.world.ledger.catalog.projects == {}


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
