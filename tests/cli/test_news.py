"""The line about what is new, on the next interactive call."""

from __future__ import annotations

import pytest

from rootsd.core.errors import ErrorCode
from support.fake_daemon import FakeDaemon, Objection, a_listing, a_status, an_item
from support.terminal import Shell

NEW = "2 new projects need your decision: rootsd pending\n"


@pytest.fixture
def told(daemon: FakeDaemon) -> FakeDaemon:
    daemon.answers["projects"] = a_listing(an_item(verdict="approved"))
    daemon.answers["status"] = a_status()
    daemon.answers["news"] = {"revision": 7, "new": 2, "wanted": [], "warnings": []}
    return daemon


def test_on_a_terminal_news_stand_below_what_was_asked_for(told: FakeDaemon, shell: Shell) -> None:
    assert shell.terminal("ls").out.endswith(NEW)


def test_what_a_client_asks_for_is_named_and_made_safe(told: FakeDaemon, shell: Shell) -> None:
    wanted = {"id": "r7k2", "name": "api", "note": 'Goose\x1b[2J asks for it: "now"'}
    told.answers["news"] = {"revision": 7, "new": 0, "wanted": [wanted], "warnings": []}
    shown = shell.terminal("ls").out
    assert shown.endswith('Goose\\u{1b}[2J asks for it: "now": rootsd show r7k2\n')


@pytest.mark.parametrize("words", [("pending",), ("status",), ()])
def test_who_is_shown_what_waits_is_not_told_again(
    told: FakeDaemon, shell: Shell, words: tuple[str, ...]
) -> None:
    assert NEW not in shell.terminal(*words).out
    assert told.asked("news") == [{}]


@pytest.mark.parametrize("flag", ["--json", "-q"])
def test_who_wants_no_talk_is_told_nothing(told: FakeDaemon, shell: Shell, flag: str) -> None:
    assert NEW not in shell.terminal("ls", flag).out
    assert told.asked("news") == []


def test_on_a_pipe_nothing_is_asked(told: FakeDaemon, shell: Shell) -> None:
    assert shell.run("ls").err == ""
    assert told.asked("news") == []


def test_a_daemon_without_news_is_none_to_complain_about(told: FakeDaemon, shell: Shell) -> None:
    told.answers["news"] = Objection(ErrorCode.USAGE, "this daemon does not know the request")
    done = shell.terminal("ls")
    assert done.status == 0
    assert "know" not in done.out
