"""`rootsd rename`: from arguments to a request, and its output."""

from __future__ import annotations

from pathlib import Path

from rootsd.core.errors import ErrorCode
from support.fake_daemon import FakeDaemon, Objection, a_decision, an_item
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


def test_a_terminal_shows_name_and_path(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["rename"] = a_decision(an_item("notes"))
    assert shell.run_on_terminal("rename", "api", "notes").out.split() == ["notes", "/src/notes"]
    daemon.answers["rename"] = a_decision(unchanged=[an_item("notes")])
    assert shell.run_on_terminal("rename", "api", "notes").out == "notes: already has this name\n"


def test_a_name_in_use_is_refused(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["rename"] = Objection(ErrorCode.FAILED, "the name api belongs to /src/api")
    done = shell.run("rename", "b", "api")
    assert (done.status, done.out) == (1, "")
    assert done.err == "error: the name api belongs to /src/api\n"
