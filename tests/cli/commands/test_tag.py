"""`rootsd tag`: from arguments to a request, and the list of tags."""

from __future__ import annotations

import json
from pathlib import Path

from support.fake_daemon import FakeDaemon, a_decision, a_listing, an_item
from support.terminal import Shell


def test_the_arguments_become_a_request(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["tag"] = a_decision(an_item(tags=["go", "work"]))
    done = shell.run("tag", "api*", "work", "go", "--rm", "home", "--rm", "x", "--dry-run")
    assert done.out == "r7k2\tapi\tpending\tgit\t/src/api\t#go #work\n"
    assert done.err == "Dry run: nothing was changed.\n"
    assert shell.run("tag", ".", "--rm", "x").status == 0
    order = {"cwd": str(Path.cwd())}
    assert daemon.asked("tag") == [
        {"refs": ["api*"], **order, "on": ["work", "go"], "off": ["home", "x"],
         "effect": "dry-run"},
        {"refs": ["."], **order, "off": ["x"]},
    ]  # fmt: skip


def test_an_unchanged_project_is_reported(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["tag"] = a_decision(unchanged=[an_item()])
    done = shell.run("tag", "api", "work")
    assert (done.status, done.out, done.err) == (0, "", "api: already has these tags\n")


def test_without_tags_it_lists_all_tags_or_those_of_a_project(
    daemon: FakeDaemon, shell: Shell
) -> None:
    tagged = an_item(tags=["work", "go"]), an_item("web", tags=["work"])
    daemon.answers["projects"] = a_listing(*tagged)
    assert shell.run("tag").out == "go\t1\nwork\t2\n"
    assert json.loads(shell.run("tag", "--json").out)["items"] == [
        {"tag": "go", "projects": 1},
        {"tag": "work", "projects": 2},
    ]
    assert shell.run_on_terminal("tag").out.split()[-4:] == ["go", "1", "work", "2"]
    assert shell.run("tag", "api").out.count("\n") == 2
    assert daemon.asked("projects")[-1]["refs"] == ["api"]
    assert daemon.asked("tag") == []


def test_an_empty_list_names_the_command_that_adds_a_tag(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing()
    assert shell.run_on_terminal("tag").out == "No tags yet. Try: rootsd tag REF TAG\n"
    assert shell.run("tag").out == ""
