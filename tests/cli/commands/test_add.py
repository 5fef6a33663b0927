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


def test_without_an_argument_it_is_a_usage_error(daemon: FakeDaemon, shell: Shell) -> None:
    assert shell.run("add").status == 2
    assert daemon.requests == []


def test_a_dry_run_does_not_suggest_a_decision(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["add"] = added(an_item())
    done = shell.run("add", "~/notes", "--dry-run")
    assert done.err == "Dry run: nothing was changed.\n"
    assert daemon.asked("add")[0]["effect"] == "dry-run"
