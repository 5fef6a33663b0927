"""The daemon examines itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.control.handlers.doctor import DoctorHandlers
from rootsd.core.exclusion import Exclusion, ExclusionReason
from rootsd.core.model import Parent
from rootsd.wire.daemon import ParentItem, parent_item
from rootsd.wire.doctor import DoctorRequest
from support.control_harness import ControlHarness
from support.ledger_harness import SOURCES
from support.sample_decisions import project


def a_parent(path: Path, **changes: object) -> ParentItem:
    watched = parent_item(Parent(bytes(path)), state="watched", projects=3)
    return ParentItem(**{**watched, **changes})  # type: ignore[typeddict-item]


async def examined(
    control: ControlHarness, state: Path, *parents: ParentItem
) -> dict[str, tuple[str, str, str | None]]:
    """Return condition, finding, and remedy by topic; the last one if a topic has several."""
    control.discovery.parent_status = lambda catalog: list(parents)  # type: ignore[method-assign]
    examining = DoctorHandlers(replace(control.services, state=bytes(state)))
    found = await examining.examine(DoctorRequest())
    assert {item["seen_by"] for item in found["items"]} == {"daemon"}
    return {i["topic"]: (i["condition"], i["finding"], i["remedy"]) for i in found["items"]}


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder that others may not enter."""
    tmp_path.chmod(0o700)
    return tmp_path


async def test_topics_without_a_problem_are_listed_too(tmp_path: Path, closed: Path) -> None:
    found = await examined(ControlHarness(), closed, a_parent(tmp_path))
    assert found["parents"] == ("ok", f"{tmp_path} is watched; projects: 3", None)
    for topic in ("state", "disk", "clock", "watches", "identity"):
        assert found[topic][0] == "ok", topic
    assert found["confinement"][0] == "warning"


async def test_a_parent_that_is_not_watched_comes_with_its_remedy(tmp_path: Path) -> None:
    limit = a_parent(tmp_path, state="polled", note="the limit is reached", remedy="sudo sysctl x")
    assert (await examined(ControlHarness(), tmp_path, limit))["parents"] == (
        "warning", f"{tmp_path}: the limit is reached", "sudo sysctl x",
    )  # fmt: skip
    gone = a_parent(tmp_path / "x", state="missing", note="it is not there", remedy="rootsd p")
    assert (await examined(ControlHarness(), tmp_path, gone))["parents"][0] == "error"
    remote = a_parent(tmp_path, state="polled", note="its file system tells nothing")
    assert (await examined(ControlHarness(), tmp_path, remote))["parents"][2] == (
        f"findmnt --target {tmp_path}"
    )


async def test_a_daemon_without_parents_is_a_finding(tmp_path: Path) -> None:
    assert (await examined(ControlHarness(), tmp_path))["parents"][2] == "rootsd up ~/src"


async def test_degraded_parts_and_disk_errors_are_findings(tmp_path: Path) -> None:
    control = ControlHarness()
    control.daemon.troubles = ["the helper is lost"]
    found = await examined(control, tmp_path, a_parent(tmp_path))
    assert found["daemon"] == ("warning", "the helper is lost", "rootsd status")


async def test_what_a_scan_leaves_out_is_named_and_is_no_problem() -> None:
    control = ControlHarness(project(1))
    disk = SOURCES + b"/disk"
    control.discovery.exclusions[disk] = Exclusion(ExclusionReason.MOUNT, disk, SOURCES)
    done = await control.ask(DoctorRequest())
    [found] = [item for item in done["items"] if item["topic"] == "left out"]
    assert found["condition"] == "ok"
    assert found["finding"].startswith("another file system is mounted at /home/ann/src/disk")
    assert found["remedy"] == "rootsd parent set /home/ann/src --mounts local"
