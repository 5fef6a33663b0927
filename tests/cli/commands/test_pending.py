"""`rootsd pending`."""

from __future__ import annotations

import json
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
        "r7k2\tacme/api\tgit\t/src/acme/api\t2026-11-20T08:11:02Z\t\t\tapproval lapsed: replaced",
        "q1zd\twe ird\\u{9}$(x)\tgit\tfile:///src/we%0A%20ird\t2026-11-20T08:11:02Z\t\t\t",
    ]
    assert daemon.asked("projects") == [
        {"cwd": str(Path.cwd()), "select": "waiting", "risks": "quick"}
    ]


@pytest.mark.parametrize("columns", ["100", "44"])
def test_risks_stand_out_on_a_terminal_with_colors(
    daemon: FakeDaemon, shell: Shell, columns: str
) -> None:
    daemon.answers["projects"] = a_listing(an_item(risk="secrets: .env", note="its note"))
    out = shell.run_in_color("pending", COLUMNS=columns).out
    assert "\x1b[35msecrets: .env\x1b[0m" in out
    assert "mits note" not in out


@pytest.mark.parametrize(
    ("words", "risks", "risk"),
    [
        (("--count",), None, None),
        (("--sort", "risk"), "quick", None),
        (("--risk", "none", "--risk", "secrets"), "thorough", ["none", "secrets"]),
        (("--count", "--risk", "any"), "thorough", ["any"]),
    ],
)
def test_risks_are_read_as_far_as_the_options_need_them(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...], risks: str, risk: list[str]
) -> None:
    daemon.answers["projects"] = a_listing()
    shell.run("pending", "--tag", "x", *words)
    (asked,) = daemon.asked("projects")
    assert (asked.get("risks"), asked.get("risk")) == (risks, risk)


def test_a_name_that_needs_quoting_is_suggested_by_its_id(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["projects"] = a_listing(ODD)
    assert "1 needs a decision.  rootsd approve q1zd " in shell.run_on_terminal("pending").out


def test_unpublishable_projects_are_listed_below_and_not_counted(
    daemon: FakeDaemon, shell: Shell
) -> None:
    odd = an_item("caf\udce9", id="o1", path=None, path_b64="L3NyYy9jYWbp", uri=None,
                  note="can never be published: its path is not UTF-8")  # fmt: skip
    daemon.answers["projects"] = {**a_listing(), "unpublishable": [odd]}
    shown = shell.run_on_terminal("pending", NO_COLOR="1").out.splitlines()
    assert shown == [
        "No project needs a decision.",
        "1 project can never be published:",
        "o1  caf\\xe9  /src/caf\\xe9  can never be published: its path is not UTF-8",
    ]
    assert shell.run("pending").out == ""
    assert shell.run("pending", "--exit-code").status == 0
    assert json.loads(shell.run("pending", "--json").out)["unpublishable"] == [odd]


def test_an_empty_list_is_reported_on_a_terminal_only(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing()
    assert shell.run_on_terminal("pending").out == "No project needs a decision.\n"
    done = shell.run("pending")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert shell.run_on_terminal("pending", "--kind", "hg").out == "No project matches.\n"


@pytest.mark.parametrize(("items", "status"), [((), 0), ((API,), 3)])
def test_with_exit_code_a_pending_project_ends_with_status_3(
    daemon: FakeDaemon, shell: Shell, items: tuple[dict[str, object], ...], status: int
) -> None:
    daemon.answers["projects"] = a_listing(*items)
    assert shell.run("pending", "--exit-code").status == status
    assert shell.run("pending", "--exit-code", "--json").status == status
    assert shell.run("pending").status == 0


def test_count_prints_only_a_number(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["projects"] = a_listing(API, ODD)
    assert shell.run("pending", "--count").out == "2\n"
    whole = json.loads(shell.run("pending", "--count", "--json").out)
    assert (whole["count"], whole["items"]) == (2, [])


def test_a_filter_applies_to_the_count_and_the_exit_status(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["projects"] = lambda params: a_listing(*([] if "kinds" in params else [API]))
    assert shell.run("pending", "--count", "--tag", "x").out == "1\n"
    done = shell.run("pending", "--count", "--exit-code", "--kind", "hg", "api")
    assert (done.out, done.status) == ("0\n", 0)
    assert daemon.asked("projects")[-1] == {
        "cwd": str(Path.cwd()), "select": "waiting", "refs": ["api"], "kinds": ["hg"],
    }  # fmt: skip
