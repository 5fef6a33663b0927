"""The folders of a workspace file are pending with its tag, whatever else the file says."""

from __future__ import annotations

import pytest

from rootsd.wire.decisions import MAX_ADDED_FOLDERS, AddFoldersRequest, DecisionVerb
from rootsd.wire.request import ApplyMode, BadRequest
from support.control_harness import ControlHarness, names
from support.ledger_harness import path
from support.sample_decisions import approved, identity, project


async def test_an_added_folder_is_pending_and_keeps_its_tag_when_it_is_approved() -> None:
    control = ControlHarness(project(1))
    control.world.disk.folders[path(2)] = identity(2)
    told = await control.ask(AddFoldersRequest(("/home/ann/src/p1", "/home/ann/src/p2"), "shop"))
    assert names(told["items"]) == ["p1", "p2"]
    assert [(item["verdict"], item["tags"]) for item in told["items"]] == [
        ("pending", ["shop"]), ("pending", ["shop"]),
    ]  # fmt: skip
    assert await control.world.told() == set()
    approval = await control.decide(DecisionVerb.APPROVE, "p1")
    assert approval["items"][0]["tags"] == ["shop"]


@pytest.mark.parametrize("effect", ApplyMode)
async def test_with_a_tag_that_cannot_be_one_nothing_is_proposed(effect: ApplyMode) -> None:
    control = ControlHarness()
    for tag in ("a/b", "-x", "a*", "tag:x", "bad\x1b", ""):
        with pytest.raises(BadRequest):
            await control.ask(AddFoldersRequest(("/home/ann/x",), tag, effect))
    assert control.discovery.proposed == []


async def test_existing_decisions_are_kept() -> None:
    control = ControlHarness(approved(1))
    told = await control.ask(AddFoldersRequest(("/home/ann/src/p1",), "evil"))
    assert (told["items"], names(told["unchanged"])) == ([], ["p1"])
    assert control.world.ledger.catalog.projects[path(1)].ruling == approved(1).ruling


async def test_unusable_entries_are_skipped_and_reported() -> None:
    control = ControlHarness(project(1), approved(2))
    unusable = (
        "relative", "/" + "x" * 5000, "/home/ann/src/none", "https://example.com/v1", "/a\0b",
    )  # fmt: skip
    told = await control.ask(AddFoldersRequest((*unusable, "/home/ann/src/p1"), "ok"))
    assert names(told["items"]) == ["p1"]
    assert len(told["warnings"]) == len(unusable)
    assert all(warning.isprintable() for warning in told["warnings"])


async def test_a_dry_run_reads_no_folder() -> None:
    control = ControlHarness()
    told = await control.ask(AddFoldersRequest(("/home/ann/x",), "x", ApplyMode.DRY_RUN))
    assert (told["items"], control.discovery.proposed) == ([], [])


async def test_too_many_folders_are_refused() -> None:
    with pytest.raises(BadRequest):
        await ControlHarness().ask(AddFoldersRequest(("/a",) * (MAX_ADDED_FOLDERS + 1), "x"))
