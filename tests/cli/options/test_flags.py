"""Global flags work on both sides of the verb, and every command shows examples."""

from __future__ import annotations

import json

import pytest

from support.fake_daemon import FakeDaemon, a_listing, a_scan, a_status, an_item
from support.terminal import Shell


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("--json ls", "ls"), ("ls --json", "ls"), ("--json ls --json", "ls"),
        ("--json parent ls", "parent ls"), ("parent --json ls", "parent ls"),
        ("parent ls --json", "parent ls"),
    ],
)  # fmt: skip
def test_json_may_stand_anywhere(
    daemon: FakeDaemon, shell: Shell, words: str, command: str
) -> None:
    daemon.answers |= {"projects": a_listing(an_item()), "status": a_status()}
    assert json.loads(shell.run(*words.split()).out)["command"] == command


@pytest.mark.parametrize("words", [("-q", "scan"), ("scan", "--quiet")])
def test_quiet_suppresses_messages(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...]
) -> None:
    daemon.answers["scan"] = a_scan(items=[])
    assert shell.run(*words).err == ""
    assert shell.run("scan").err != ""


@pytest.mark.parametrize("words", [("-v", "status"), ("status", "--verbose")])
def test_verbose_prints_each_request(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...]
) -> None:
    daemon.answers["status"] = a_status()
    assert "sent to the daemon: status" in shell.run(*words).err


def test_no_input_and_no_color_are_taken_everywhere(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["status"] = a_status()
    assert shell.run("--no-color", "status", "--no-input").status == 0


def test_a_flag_after_two_dashes_is_an_argument(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["decide"] = {"revision": 8, "items": [], "unchanged": [], "warnings": []}
    shell.run("deny", "--", "--json")
    assert daemon.asked("decide")[0]["refs"] == ["--json"]
