"""A scan on request."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.control.routes import RequestContext
from rootsd.core.errors import UnknownProject
from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved
from rootsd.core.model import ProjectKind
from rootsd.wire.scans import ScanProgressItem, ScanRequest, ScanResponse
from support.control_harness import ControlHarness, names
from support.ledger_harness import HOME, SOURCES, path, sight
from support.sample_decisions import PERSON, approved, denied, identity, project


async def scanned(
    control: ControlHarness, *finds: Observation, parent: str | None = None
) -> dict[str, Any]:
    control.discovery.finds = finds
    return await control.ask(ScanRequest(parent))


async def test_a_scan_lists_new_gone_and_changed_projects() -> None:
    control = ControlHarness(
        project(1), project(2), approved(3), approved(4), denied(5), project(6)
    )
    # A complete project may be observed again; an incomplete one is still being created.
    control.discovery.being_made = frozenset({path(6), path(8), path(9)})
    done = await scanned(
        control,
        sight(1),
        ProjectGone(path(2)),
        ProjectGone(path(3)),
        sight(4, now=40),
        ProjectGone(path(5)),
        replace(sight(6), kind=ProjectKind.JJ),
        sight(7),
    )
    assert done.keys() == ScanResponse.__annotations__.keys()
    assert names(done["items"]) == ["p7"]
    assert names(done["gone"]) == ["p3", "p5", "p2"]
    assert names(done["changed"]) == ["p4", "p6"]
    assert {item["presence"] for item in done["gone"]} == {"missing"}
    assert [item["verdict"] for item in done["gone"]] == ["approved", "denied", "pending"]
    assert done["changed"][0]["lapsed"] == "replaced"
    assert (done["projects"], done["folders"], done["seconds"]) == (6, 7, 0.123)
    assert done["being_made"] == 2
    assert done["revision"] == control.world.ledger.revision


async def test_a_returned_project_is_changed_and_a_missing_one_is_not() -> None:
    control = ControlHarness(approved(1), approved(2))
    await scanned(control, ProjectGone(path(1)), ProjectGone(path(2)))
    done = await scanned(control, sight(1), ProjectGone(path(2)))
    assert (names(done["changed"]), done["items"], done["gone"]) == (["p1"], [], [])


async def test_the_scan_of_one_parent_lists_only_its_projects() -> None:
    control = ControlHarness()
    elsewhere = ProjectObserved(HOME + b"/else/where", ProjectKind.GIT, identity(9))
    done = await scanned(control, sight(1), elsewhere, parent="/home/ann/src/")
    assert control.discovery.scanned == [SOURCES]
    assert names(done["items"]) == ["p1"]


@pytest.mark.parametrize("parent", ["/home/ann/else", "/home/ann", "/home/ann/src\x1b/p1"])
async def test_a_folder_that_is_not_a_parent_is_not_scanned(parent: str) -> None:
    control = ControlHarness()
    with pytest.raises(UnknownProject) as refusal:
        await scanned(control, parent=parent)
    assert refusal.value.remedy == "rootsd parent ls"
    assert refusal.value.message.isprintable()
    assert control.discovery.scanned == []


async def test_a_scan_reports_its_progress() -> None:
    control = ControlHarness()
    reports: list[ScanProgressItem] = []
    control.discovery.finds = [sight(1)]
    await control.dispatcher.answer(ScanRequest(), RequestContext(PERSON, reports.append))
    assert [report["projects"] for report in reports] == [1]


async def test_a_scan_names_what_it_leaves_out_with_the_command_that_includes_it() -> None:
    control = ControlHarness(project(1))
    disk = SOURCES + b"/my disk"
    control.discovery.exclusions[disk] = Exclusion(ExclusionReason.MOUNT, disk, SOURCES)
    done = await control.ask(ScanRequest())
    assert done["left_out"] == [
        "another file system is mounted at"
        " /home/ann/src/my disk, and rootsd stays on that of the parent"
        " (rootsd parent set /home/ann/src --mounts local)"
    ]
