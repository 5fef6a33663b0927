"""`rootsd add`: from arguments to a request, and its output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.fake_daemon import FakeDaemon, an_item
from support.terminal import Shell


def added(item: dict[str, Any], **changes: object) -> dict[str, Any]:
    return {"revision": 7, "items": [item], "is_new": True, "warnings": [], **changes}


@pytest.mark.parametrize("what", ["~/notes", "https://api.example.com/v1"])
def test_an_added_project_is_pending_and_the_next_command_is_named(
    daemon: FakeDaemon, shell: Shell, what: str
) -> None:
    daemon.answers["add"] = added(an_item())
    done = shell.run("add", what, "--name", "api")
    assert done.out == "r7k2\tapi\tpending\tgit\t/src/api\t\n"
    assert done.err == "It needs your decision: rootsd approve r7k2\n"
    assert daemon.asked("add") == [{"what": what, "cwd": str(Path.cwd()), "name": "api"}]


def test_a_known_project_is_reported_with_its_verdict(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["add"] = added(an_item(verdict="denied"), is_new=False)
    assert shell.run("add", ".").err == "api is already known: it is denied.\n"


def test_a_dry_run_does_not_suggest_a_decision(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["add"] = added(an_item())
    done = shell.run("add", "~/notes", "--dry-run")
    assert done.err == "Dry run: nothing was changed.\n"
    assert daemon.asked("add")[0]["effect"] == "dry-run"


WORKSPACE = '{"folders": [{"path": "api"}, {"path": "/srv/web"}, {"uri": "vsls:/"}]}'


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    file = tmp_path.resolve() / "my work.code-workspace"
    file.write_text(WORKSPACE)
    return file


def test_the_folders_of_a_workspace_are_proposed_under_one_tag(
    daemon: FakeDaemon, shell: Shell, workspace: Path
) -> None:
    known = an_item("web", verdict="approved", id="w2w2")
    denied = an_item("no", verdict="denied")
    daemon.answers["add_folders"] = {
        "revision": 7, "items": [an_item(tags=["my-work"])], "unchanged": [known, denied],
        "warnings": ["x is left out", "x is left out"],
    }  # fmt: skip
    done = shell.run("add", str(workspace))
    assert (done.status, done.out) == (0, "r7k2\tapi\tpending\tgit\t/src/api\t#my-work\n")
    assert done.err == (
        "warning: vsls:/ is left out: it is not a folder of this computer\n"
        "warning: x is left out\n"
        "web is already approved; to add the tag: rootsd tag web my-work\n"
        "1 folder proposed with the tag my-work, 2 already known: rootsd review\n"
    )
    assert daemon.asked("add_folders") == [
        {"paths": [f"{workspace.parent}/api", "/srv/web"], "tag": "my-work"}
    ]


def test_a_tag_for_a_workspace_can_be_chosen(
    daemon: FakeDaemon, shell: Shell, workspace: Path
) -> None:
    nothing: list[object] = []
    daemon.answers["add_folders"] = {
        "revision": 7, "items": nothing, "unchanged": nothing, "warnings": nothing,
    }  # fmt: skip
    done = shell.run("add", str(workspace), "--tag", "go", "--dry-run")
    assert done.out == f"{workspace.parent}/api\n/srv/web\n"
    assert done.err.endswith("Dry run: they would get the tag go; nothing was changed.\n")
    (asked,) = daemon.asked("add_folders")
    assert (asked["tag"], asked["effect"]) == ("go", "dry-run")


def test_a_name_is_for_a_folder_and_a_tag_for_a_workspace(
    daemon: FakeDaemon, shell: Shell, workspace: Path
) -> None:
    assert shell.run("add", str(workspace), "--name", "x").status == 2
    assert shell.run("add", str(workspace.parent), "--tag", "x").status == 2
    assert shell.run("add", str(workspace.with_name("none.code-workspace"))).status == 1
    assert daemon.requests == []
