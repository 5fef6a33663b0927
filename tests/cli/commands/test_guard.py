"""`rootsd guard`."""

from __future__ import annotations

import json

from support.fake_daemon import FakeDaemon
from support.terminal import Shell


def test_it_shows_and_sets_who_may_decide(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["guard"] = {"revision": 7, "guard": "agents", "warnings": []}
    daemon.answers["set-guard"] = {"revision": 7, "guard": "terminal", "warnings": []}
    done = shell.run("guard")
    assert (done.status, done.out) == (0, "agents\n")
    assert "Programs may decide, except those that a detected agent has started" in done.err
    done = shell.run("guard", "terminal")
    assert (done.status, done.out) == (0, "terminal\n")
    assert daemon.asked("set-guard") == [{"guard": "terminal"}]
    assert json.loads(shell.run("guard", "--json").out)["guard"] == "agents"


def test_an_unknown_guard_is_a_usage_error(shell: Shell) -> None:
    done = shell.run("guard", "on")
    assert done.status == 2
    assert "agents" in done.err


def test_a_dry_run_sets_nothing(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["set-guard"] = {"revision": 7, "guard": "off", "warnings": []}
    done = shell.run("guard", "off", "--dry-run")
    assert done.out == "off\n"
    assert done.err.endswith("nothing was changed.\n")
    assert daemon.asked("set-guard") == [{"guard": "off", "effect": "dry-run"}]
    assert shell.run("guard", "--dry-run").status == 2
