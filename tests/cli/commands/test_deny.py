"""`rootsd deny` and `rootsd forget`: from arguments to a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fake_daemon import FakeDaemon, a_decision, an_item
from support.terminal import Shell


@pytest.mark.parametrize("verb", ["deny", "forget"])
def test_the_arguments_become_a_request(daemon: FakeDaemon, shell: Shell, verb: str) -> None:
    daemon.answers["decide"] = a_decision(an_item())
    assert shell.run(verb, "api", "*/x").status == 0
    assert shell.run(verb, ".", "--dry-run").status == 0
    assert shell.run(verb).status == 2
    order = {"verb": verb, "cwd": str(Path.cwd())}
    assert daemon.asked("decide") == [
        {**order, "refs": ["api", "*/x"]},
        {**order, "refs": ["."], "effect": "dry-run"},
    ]


def test_a_forgotten_missing_project_is_no_longer_listed(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["decide"] = a_decision()
    done = shell.run("forget", "api")
    assert (done.status, done.out) == (0, "")
    assert done.err == "Done. Projects that are gone from the disk are no longer listed.\n"
