"""`rootsd prune`: forgets missing projects, and says so if there are none."""

from __future__ import annotations

from pathlib import Path

from support.fake_daemon import FakeDaemon, a_decision, a_listing, an_item
from support.terminal import Shell


def test_missing_projects_are_forgotten(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(an_item(presence="missing"))
    daemon.answers["decide"] = a_decision(an_item(presence="missing"))
    assert shell.run("prune").out == "r7k2\tapi\tpending\tgit\t/src/api\tmissing\n"
    assert shell.run("prune", "--dry-run").err == "Dry run: nothing was changed.\n"
    order = {"verb": "forget", "cwd": str(Path.cwd()), "select": "missing"}
    assert daemon.asked("decide") == [order, {**order, "effect": "dry-run"}]


def test_without_a_missing_project_nothing_is_sent(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing()
    done = shell.run("prune")
    assert (done.status, done.err) == (0, "Nothing to prune: no approved folder is gone.\n")
    assert '"items": []' in shell.run("prune", "--json").out
    assert daemon.asked("decide") == []
