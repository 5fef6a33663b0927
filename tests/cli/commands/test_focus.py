"""`rootsd focus`: from arguments to a request, and its output."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.fake_daemon import FakeDaemon
from support.terminal import Shell


def told(tag: str | None, *roots: str, **changes: object) -> dict[str, Any]:
    return {"revision": 8, "tag": tag, "roots": list(roots), "warnings": [], **changes}


def test_the_arguments_become_a_request(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["set-focus"] = told("work", "api", "web")
    done = shell.run("focus", "work")
    assert done.out == "api\nweb\n"
    assert done.err == "Focus on work: sessions see 2 of the roots.\n"
    daemon.answers["set-focus"] = told(None)
    done = shell.run("focus", "--clear", "--now")
    assert done.err == "No focus: sessions see all roots (0).\n"
    done = shell.run("focus", "x", "--dry-run")
    assert done.err == "Dry run: a new session would see these roots; nothing was changed.\n"
    assert daemon.asked("set-focus") == [
        {"tag": "work"},
        {"reach": "all"},
        {"tag": "x", "effect": "dry-run"},
    ]


def test_alone_it_shows_the_focus(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["focus"] = told("work", "api", warnings=["careful"])
    done = shell.run("focus", "--json")
    shown = json.loads(done.out)
    assert (shown["tag"], shown["items"], shown["warnings"]) == (
        "work",
        [{"name": "api"}],
        ["careful"],
    )
    assert "api" in shell.run_on_terminal("focus").out


@pytest.mark.parametrize("words", [("work", "--clear"), ("--now",), ("--dry-run",)])
def test_contradictory_arguments_are_a_usage_error(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...]
) -> None:
    assert shell.run("focus", *words).status == 2
    assert daemon.requests == []
