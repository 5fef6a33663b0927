"""The line about new proposals after an interactive command."""

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
    daemon.answers["news"] = {"revision": 7, "new": 2, "wanted": {}, "warnings": []}
    return daemon


def test_on_a_terminal_the_line_follows_the_output(told: FakeDaemon, shell: Shell) -> None:
    assert shell.run_on_terminal("ls").out.endswith(NEW)


def test_a_root_request_is_named_and_escaped(told: FakeDaemon, shell: Shell) -> None:
    wanted = {"r7k2": 'Goose\x1b[2J asks for it: "now"'}
    told.answers["news"] = {"revision": 7, "new": 0, "wanted": wanted, "warnings": []}
    shown = shell.run_on_terminal("ls").out
    assert shown.endswith('Goose\\u{1b}[2J asks for it: "now": rootsd show r7k2\n')


@pytest.mark.parametrize("words", [("pending",), ("status",), ()])
def test_verbs_that_show_pending_projects_do_not_print_it(
    told: FakeDaemon, shell: Shell, words: tuple[str, ...]
) -> None:
    assert NEW not in shell.run_on_terminal(*words).out
    assert told.asked("news") == [{}]


@pytest.mark.parametrize("flag", ["--json", "-q"])
def test_quiet_and_json_suppress_it(told: FakeDaemon, shell: Shell, flag: str) -> None:
    assert NEW not in shell.run_on_terminal("ls", flag).out
    assert told.asked("news") == []


def test_in_a_pipe_no_request_is_sent(told: FakeDaemon, shell: Shell) -> None:
    assert shell.run("ls").err == ""
    assert told.asked("news") == []


def test_a_daemon_that_lacks_the_news_query_causes_no_error(
    told: FakeDaemon, shell: Shell
) -> None:
    told.answers["news"] = Objection(ErrorCode.USAGE, "this daemon does not know the request")
    done = shell.run_on_terminal("ls")
    assert done.status == 0
    assert "know" not in done.out
