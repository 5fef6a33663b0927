"""`rootsd pending`."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.terminal import Shell

API = an_item("acme/api", note="approval lapsed: replaced")
ODD = an_item("we ird\t$(x)", id="q1zd", path="/src/we\n ird")


def test_a_pipe_gets_full_facts(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(API, ODD)
    done = shell.run("pending")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "r7k2\tacme/api\tgit\t/src/acme/api\t2026-11-20T08:11:02Z\tapproval lapsed: replaced",
        "q1zd\twe ird\\u{9}$(x)\tgit\t/src/we\\u{a} ird\t2026-11-20T08:11:02Z\t",
    ]
    assert daemon.asked("projects") == [{"cwd": str(Path.cwd()), "select": "waiting"}]


def test_a_terminal_gets_a_table_and_the_next_command(daemon: FakeDaemon, shell: Shell) -> None:
    found = (datetime.now(UTC) - timedelta(hours=2, minutes=1)).isoformat()
    daemon.answers["projects"] = a_listing(
        {**API, "discovered_at": found}, {**ODD, "discovered_at": found}
    )
    done = shell.terminal("pending", NO_COLOR="1")
    lines = [line.rstrip() for line in re.sub(r"\x1b\[\d*m", "", done.out).splitlines()]
    assert lines == [
        "ID    NAME             KIND  PATH              FOUND   NOTE",
        "r7k2  acme/api         git   /src/acme/api     2h ago  approval lapsed: replaced",
        "q1zd  we ird\\u{9}$(x)  git   /src/we\\u{a} ird  2h ago",
        "2 need a decision.  rootsd approve acme/api   |   rootsd deny acme/api",
    ]


@pytest.mark.parametrize("width", [56, 60, 79])
def test_a_narrow_terminal_folds_the_path_and_cuts_the_rest(
    daemon: FakeDaemon, shell: Shell, width: int
) -> None:
    long = "/src/" + "x" * 60
    daemon.answers["projects"] = a_listing(an_item("n" * 30, path=long, note="w" * 80))
    out = re.sub(r"\x1b\[\d*m", "", shell.terminal("pending", columns=width).out)
    assert all(len(line) <= width for line in out.splitlines()[:-1])
    assert "…" in out
    assert out.count("x") == 60


def test_a_name_that_a_shell_would_take_apart_is_offered_by_its_id(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["projects"] = a_listing(ODD)
    assert "1 needs a decision.  rootsd approve q1zd " in shell.terminal("pending").out


def test_nothing_pending_is_said_on_a_terminal_only(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing()
    assert shell.terminal("pending").out == "Nothing waits for a decision.\n"
    done = shell.run("pending")
    assert (done.status, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize(("items", "status"), [((), 0), ((API,), 3)])
def test_the_exit_code_can_tell(
    daemon: FakeDaemon, shell: Shell, items: tuple[dict[str, object], ...], status: int
) -> None:
    daemon.answers["projects"] = a_listing(*items)
    assert shell.run("pending", "--exit-code").status == status
    assert shell.run("pending", "--exit-code", "--json").status == status
    assert shell.run("pending").status == 0


def test_a_count_is_a_number_and_nothing_else(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(API, ODD)
    assert shell.run("pending", "--count").out == "2\n"
    whole = json.loads(shell.run("pending", "--count", "--json").out)
    assert (whole["count"], whole["items"]) == (2, [])


def test_json_has_the_items_as_they_are(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(API, ODD)
    assert json.loads(shell.run("pending", "--json").out)["items"] == [API, ODD]
