"""`rootsd forget`: from arguments to a request."""

from __future__ import annotations

from pathlib import Path

from support.fake_daemon import FakeDaemon, a_decision, an_item
from support.terminal import Shell


def test_the_arguments_become_a_request(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["decide"] = a_decision(an_item())
    assert shell.run("forget", "api", "*/x").status == 0
    assert shell.run("forget", ".", "--dry-run").status == 0
    order = {"verb": "forget", "cwd": str(Path.cwd())}
    assert daemon.asked("decide") == [
        {**order, "refs": ["api", "*/x"]},
        {**order, "refs": ["."], "effect": "dry-run"},
    ]


def test_without_an_argument_it_is_a_usage_error(daemon: FakeDaemon, shell: Shell) -> None:
    done = shell.run("forget")
    assert (done.status, done.out) == (2, "")
    assert done.err.endswith("  try: rootsd forget --help\n")
    assert daemon.requests == []


def test_a_forgotten_missing_project_is_no_longer_listed(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["decide"] = a_decision()
    done = shell.run("forget", "api")
    assert (done.status, done.out) == (0, "")
    assert done.err == "Done. Projects that are gone from the disk are no longer listed.\n"
