"""`rootsd check` with options that need click: JSON and help."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.fake_daemon import FakeDaemon
from support.terminal import Shell

IN_ROOT = {"published": True, "verdict": "approved", "root": "api", "access": "read"}
UNKNOWN = {"published": False, "verdict": None, "root": None, "access": None}


@pytest.mark.parametrize(
    ("answer", "words", "status"),
    [
        (IN_ROOT, (), 0),
        (IN_ROOT, ("--write",), 4),
        ({**UNKNOWN, "verdict": "pending"}, (), 3),
        ({**UNKNOWN, "verdict": "denied"}, (), 4),
        (UNKNOWN, (), 5),
    ],
)
def test_json_agrees_with_the_exit_status(
    daemon: FakeDaemon, shell: Shell, answer: dict[str, Any], words: tuple[str, ...], status: int
) -> None:
    daemon.answers["check"] = answer
    done = shell.run("check", "/src/api", *words, "--json")
    assert (done.status, done.err) == (status, "")
    assert json.loads(done.out)["items"] == [{"path": "/src/api", **answer}]


def test_without_json_it_prints_nothing(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["check"] = IN_ROOT
    done = shell.run("check", "--", "-odd")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert daemon.asked("check")[0]["path"].endswith("/-odd")


def test_the_help_lists_the_statuses(shell: Shell) -> None:
    out = shell.run("check", "--help").out
    told = [line.split()[0] for line in out.splitlines() if line[:4].strip().isdigit()]
    assert told == ["0", "3", "4", "5", "6", "69"]
