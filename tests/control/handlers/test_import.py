"""Imported projects are pending, whatever the file says."""

from __future__ import annotations

import pytest

from rootsd.wire.decisions import MAX_IMPORT_ITEMS, ApplyMode, DecisionVerb, ImportRequest
from rootsd.wire.request import BadRequest
from support.control_harness import ControlHarness, names
from support.ledger_harness import path
from support.sample_decisions import approved, identity, project

TOO_MANY = ("/a",) * (MAX_IMPORT_ITEMS + 1)


def an_import(
    *entries: tuple[str, str, str], tag: str = "", effect: ApplyMode = ApplyMode.APPLY
) -> ImportRequest:
    whats, all_names, tags = zip(*entries, strict=True)
    return ImportRequest(whats, all_names, tags, tag, effect)


async def test_an_imported_project_is_pending_with_its_name_and_tags() -> None:
    control = ControlHarness(project(1))
    control.world.disk.folders[path(2)] = identity(2)
    told = await control.ask(
        an_import(
            ("/home/ann/src/p1", "api", "go\nwork"),
            ("/home/ann/src/p2", "", ""),
            ("https://example.com/v1", "v1", ""),
        )
    )
    assert names(told["items"]) == ["api", "p2", "v1"]
    assert {item["verdict"] for item in told["items"]} == {"pending"}
    assert told["items"][0]["tags"] == ["go", "work"]
    assert await control.world.told() == set()


async def test_one_tag_for_all_stays_when_they_are_approved() -> None:
    control = ControlHarness(project(1), approved(2))
    for number in (1, 2):
        control.world.disk.folders[path(number)] = identity(number)
    both = ("/home/ann/src/p1", "", "go"), ("/home/ann/src/p2", "", "")
    told = await control.ask(an_import(*both, tag="shop"))
    assert [item["tags"] for item in told["items"]] == [["go", "shop"]]
    approval = await control.decide(DecisionVerb.APPROVE, "p1")
    assert approval["items"][0]["tags"] == ["go", "shop"]
    assert [item["tags"] for item in told["unchanged"]] == [["work"]]


@pytest.mark.parametrize("effect", ApplyMode)
async def test_with_a_tag_that_cannot_be_one_nothing_is_proposed(effect: ApplyMode) -> None:
    control = ControlHarness()
    for tag in ("a/b", "-x", "a*", "tag:x", "bad\x1b"):
        with pytest.raises(BadRequest):
            await control.ask(an_import(("/home/ann/x", "", ""), tag=tag, effect=effect))
    assert control.discovery.proposed == []


async def test_existing_decisions_are_kept() -> None:
    control = ControlHarness(approved(1))
    told = await control.ask(an_import(("/home/ann/src/p1", "evil", "evil")))
    assert (told["items"], names(told["unchanged"])) == ([], ["p1"])
    assert control.world.ledger.catalog.projects[path(1)].ruling == approved(1).ruling


async def test_unusable_entries_are_skipped_and_reported() -> None:
    control = ControlHarness(project(1), approved(2))
    told = await control.ask(
        an_import(
            ("relative", "", ""),
            ("/" + "x" * 5000, "", ""),
            ("/home/ann/src/none", "", ""),
            ("/home/ann/src/p1", "p2", "ok\nbad\x1b"),
            ("javascript://x", "", ""),
            ("/a\0b", "", ""),
        )
    )
    assert names(told["items"]) == ["p1"]
    assert told["items"][0]["tags"] == ["ok"]
    assert len(told["warnings"]) == 7
    assert all(warning.isprintable() for warning in told["warnings"])


async def test_a_dry_run_reads_no_folder() -> None:
    control = ControlHarness()
    told = await control.ask(an_import(("/home/ann/x", "x", ""), effect=ApplyMode.DRY_RUN))
    assert (told["items"], control.discovery.proposed) == ([], [])


@pytest.mark.parametrize(
    "request_",
    [
        ImportRequest(("/a",), (), ()),
        ImportRequest(("/a",), ("a",), ()),
        ImportRequest(TOO_MANY, TOO_MANY, TOO_MANY),
    ],
)
async def test_a_malformed_import_is_refused(request_: ImportRequest) -> None:
    with pytest.raises(BadRequest):
        await ControlHarness().ask(request_)


def test_an_import_is_an_order_and_a_dry_run_is_not() -> None:
    dispatcher = ControlHarness().dispatcher
    order = dispatcher.guarded_command(an_import(("/a", "", "")))
    assert order is not None
    assert order.text == "import (1 projects)"
    assert dispatcher.guarded_command(an_import(("/a", "", ""), effect=ApplyMode.DRY_RUN)) is None
