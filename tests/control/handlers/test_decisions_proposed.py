"""Approvals of folders that no scan has found."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rootsd.core.changes import ChangeVerb
from rootsd.core.errors import NotPresent, UnknownProject
from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import Project, ProjectKind, Verdict
from rootsd.wire.decisions import DecisionVerb
from rootsd.wire.projects import Selection
from rootsd.wire.request import ApplyMode, BadRequest
from support.control_harness import APPROVE, DENY, FORGET, ControlHarness, names
from support.ledger_harness import (
    path,
    rule,
    sight,
)
from support.sample_decisions import approved, identity, project


@pytest.mark.parametrize(("verb", "verdict"), [(APPROVE, "approved"), (DENY, "denied")])
async def test_a_dry_run_proposes_no_folder_either(verb: DecisionVerb, verdict: str) -> None:
    control = ControlHarness()
    control.world.disk.folders[path(1)] = identity(1)
    would = await control.decide(verb, "/home/ann/src/p1", effect=ApplyMode.DRY_RUN)
    assert [(item["name"], item["verdict"]) for item in would["items"]] == [("p1", verdict)]
    assert (control.discovery.proposed, control.world.ledger.catalog.projects) == ([], {})


@pytest.mark.parametrize(
    ("typed", "cwd"), [("/home/ann/link", "/home/ann/src"), (".", "/home/ann/src/p1")]
)
async def test_a_folder_that_no_scan_has_found_is_proposed_and_approved_in_one_step(
    typed: str, cwd: str
) -> None:
    control = ControlHarness()
    control.world.disk.folders[path(1)] = identity(1)
    done = await control.decide(APPROVE, typed, cwd=cwd)
    assert names(done["items"]) == ["p1"]
    assert control.discovery.proposed == [path(1)]
    assert await control.world.told() == {path(1)}


async def test_a_folder_that_no_scan_has_found_is_denied_in_one_step() -> None:
    control = ControlHarness()
    control.world.disk.folders[path(1)] = identity(1)
    denied = await control.decide(DENY, "/home/ann/src/p1")
    assert [(item["name"], item["verdict"]) for item in denied["items"]] == [("p1", "denied")]
    assert control.discovery.proposed == [path(1)], "discovery is to look after it from now on"
    assert (await control.decide(DENY, "p1"))["unchanged"], "it is known by its name as well"


async def test_a_rule_does_not_publish_a_folder_before_its_denial() -> None:
    control = ControlHarness(rules=[rule(Verdict.APPROVED)])
    control.world.disk.folders[path(1)] = identity(1)
    revision = control.world.ledger.revision
    await control.decide(DENY, "/home/ann/src/p1")
    assert control.world.ledger.revision == revision
    assert {change.verb for batch in control.world.saver.batches for change in batch} == {
        ChangeVerb.OBSERVED,
        ChangeVerb.DENIED,
    }


async def test_a_folder_that_no_scan_has_found_is_denied_even_if_the_disk_refuses() -> None:
    control = ControlHarness(rules=[rule(Verdict.APPROVED)])
    control.world.disk.folders[path(1)] = identity(1)
    control.world.saver.refusing = True
    denied = await control.decide(DENY, "/home/ann/src/p1")
    assert [item["verdict"] for item in denied["items"]] == ["denied"]
    assert denied["warnings"] == ["the disk refuses to keep this: it holds until the daemon ends"]
    assert await control.world.told() == set()


@pytest.mark.parametrize(("verb", "known"), [(DENY, approved(2)), (APPROVE, project(2))])
async def test_a_missing_folder_refuses_the_whole_order(
    verb: DecisionVerb, known: Project
) -> None:
    control = ControlHarness(known)
    before = control.world.ledger.catalog
    with pytest.raises(NotPresent):
        await control.decide(verb, "p2", "/home/ann/src/p1")
    assert control.world.ledger.catalog is before


async def test_forget_proposes_nothing() -> None:
    control = ControlHarness()
    control.world.disk.folders[path(1)] = identity(1)
    with pytest.raises(UnknownProject):
        await control.decide(FORGET, "/home/ann/src/p1")
    assert control.discovery.proposed == []


@pytest.mark.parametrize("verb", [DENY, None])
async def test_forgetting_a_folder_that_undo_cannot_list_again_says_so(
    verb: DecisionVerb | None,
) -> None:
    named = replace(project(1), observed=replace(project(1).observed, named=True))
    control = ControlHarness(named)
    control.world.disk.folders[path(1)] = identity(1)
    if verb is not None:
        await control.decide(verb, "p1")
    forgotten = await control.decide(FORGET, "p1")
    assert control.world.ledger.catalog.projects == {}
    says = "undo does not list /home/ann/src/p1 again, because it was undecided; rootsd add does"
    assert forgotten["warnings"] == ([says] if verb is None else [])


async def test_known_paths_names_and_globs_are_not_proposed() -> None:
    control = ControlHarness(project(1))
    await control.decide(APPROVE, "/home/ann/src/p1", "src/p*")
    with pytest.raises(UnknownProject):
        await control.decide(APPROVE, "word")
    assert control.discovery.proposed == []


async def test_an_order_with_an_unknown_reference_fails_before_it_proposes_anything() -> None:
    control = ControlHarness(project(2))
    control.world.disk.folders[path(1)] = identity(1)
    with pytest.raises(UnknownProject, match="word"):
        await control.decide(APPROVE, "/home/ann/src/p1", "p2", "word")
    assert control.discovery.proposed == []
    assert await control.world.told() == set()


async def test_an_empty_reference_does_not_mean_the_working_directory() -> None:
    control = ControlHarness(project(1))
    with pytest.raises(BadRequest):
        await control.decide(APPROVE, "", cwd="/home/ann/src/p1")
    with pytest.raises(BadRequest):
        await control.decide(APPROVE, select=Selection.PENDING, under="")
    assert await control.world.told() == set()


async def test_a_rule_applies_to_a_proposed_folder_before_the_order() -> None:
    control = ControlHarness(rules=[rule(Verdict.APPROVED)])
    control.world.disk.folders[path(1)] = identity(1)
    await control.decide(APPROVE, "/home/ann/src/p1")
    assert [c.verb.value for batch in control.world.saver.batches for c in batch] == [
        "observed",
        "granted",
        "approved",
    ]
    assert ProjectObserved(path(1), ProjectKind.GIT, identity(1)) == sight(1)
