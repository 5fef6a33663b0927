"""`rootsd undo`: from arguments to a request, and its output."""

from __future__ import annotations

from typing import Any

from rootsd.core.errors import ErrorCode
from support.fake_daemon import FakeDaemon, Objection, an_item
from support.terminal import Shell


def undone(*items: dict[str, Any]) -> dict[str, Any]:
    event = {
        "seq": 41, "at": "2026-11-20T08:11:02Z", "verb": "denied", "actor": "person", "by": "me",
        "path": "/src/api", "path_b64": None, "what": "api",
    }  # fmt: skip
    return {"revision": 8, "undone": [event], "items": list(items), "warnings": []}


def test_the_arguments_become_a_request(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["undo"] = undone(an_item(verdict="approved"))
    done = shell.run("undo")
    assert done.out == "r7k2\tapi\tapproved\tgit\t/src/api\t\n"
    assert done.err == "undone: 41 denied /src/api\n"
    assert shell.run("undo", "41", "--dry-run").err == "would be undone: 41 denied /src/api\n"
    assert daemon.asked("undo") == [{}, {"seq": 41, "effect": "dry-run"}]


def test_a_terminal_shows_the_restored_state(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["undo"] = undone(an_item(verdict="approved"))
    assert "/src/api" in shell.run_on_terminal("undo").out


def test_a_refused_undo_names_the_next_command(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["undo"] = Objection(
        ErrorCode.FAILED, "3 in the log was replaced by 5 (denied)", "rootsd undo 5"
    )
    done = shell.run("undo", "3")
    assert (done.status, done.out) == (1, "")
    assert done.err.endswith("  try: rootsd undo 5\n")


def test_an_argument_that_is_not_a_number_is_a_usage_error(
    daemon: FakeDaemon, shell: Shell
) -> None:
    assert shell.run("undo", "api").status == 2
    assert shell.run("undo", "0").status == 2
    assert daemon.requests == []
