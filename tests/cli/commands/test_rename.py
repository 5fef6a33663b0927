"""`rootsd rename`: from arguments to a request, and its output."""

from __future__ import annotations

from pathlib import Path

from support.fake_daemon import FakeDaemon, a_decision, an_item
from support.terminal import Shell


def test_the_arguments_become_a_request(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["rename"] = a_decision(an_item("notes"))
    assert shell.run("rename", ".", "notes").out == "r7k2\tnotes\tpending\tgit\t/src/notes\t\n"
    done = shell.run("rename", "api", "notes", "--dry-run")
    assert done.err == "Dry run: nothing was changed.\n"
    order = {"name": "notes", "cwd": str(Path.cwd())}
    assert daemon.asked("rename") == [
        {"ref": ".", **order},
        {"ref": "api", **order, "effect": "dry-run"},
    ]


def test_an_unchanged_name_is_reported(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["rename"] = a_decision(unchanged=[an_item("notes")])
    assert shell.run_on_terminal("rename", "api", "notes").out == "notes: already has this name\n"
