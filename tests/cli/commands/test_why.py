"""`rootsd why`: the reasons as a table, lines, or JSON, and a summary."""

from __future__ import annotations

from typing import Any

import pytest

from support.fake_daemon import FakeDaemon, an_item
from support.terminal import Shell

VOICES = [
    {"ground": "deny rule", "verdict": None, "by": None, "decides": False},
    {"ground": "approved", "verdict": "approved", "by": "/src/\x1b[2Japi", "decides": True},
]


def why(**changes: object) -> dict[str, Any]:
    return {
        "revision": 8, "path": "/src/api", "published": True, "root": "api", "voices": VOICES,
        "obstacles": [],
        "items": [an_item(verdict="approved", published=True)], "warnings": [], **changes,
    }  # fmt: skip


def test_in_a_pipe_each_reason_is_a_line(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["why"] = why()
    done = shell.run("why", "/src/api")
    assert done.status == 0
    assert done.out == ("deny rule\t-\t\t\napproved\tapproved\tdecides\tfile:///src/%1B%5B2Japi\n")
    assert done.err == "/src/api is api, which is published.\n"
    assert daemon.asked("why") == [{"path": "/src/api"}]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"path": "/src/api/x"}, "/src/api/x lies in api, which is published."),
        (
            {"root": "all", "items": [an_item(verdict="pending")]},
            "/src/api is api. Clients can read it, because it lies in the root all.",
        ),
        (
            {"published": False, "items": [an_item(verdict="pending")]},
            "/src/api is api, which is not published: it is pending.",
        ),
        (
            {"published": False, "obstacles": ["it is suspended"]},
            "/src/api is api, which is not published: it is suspended.",
        ),
    ],
)
def test_a_sentence_summarizes_the_reasons(
    daemon: FakeDaemon, shell: Shell, changes: dict[str, Any], sentence: str
) -> None:
    daemon.answers["why"] = why(**changes)
    assert shell.run("why", "/src/api").err == f"{sentence}\n"


def test_a_path_outside_all_projects_ends_with_nothing_matched(
    daemon: FakeDaemon, shell: Shell
) -> None:
    obstacles = ["no project is known at or above it", "it is your home folder"]
    daemon.answers["why"] = why(items=[], voices=[], published=False, obstacles=obstacles)
    done = shell.run("why", "/src/api")
    assert (done.status, done.out) == (5, "")
    assert done.err == (
        "/src/api is not published: no project is known at or above it; it is your home folder.\n"
    )
