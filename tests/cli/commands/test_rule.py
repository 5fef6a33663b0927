"""`rootsd rule`: from arguments to a request, and its output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.fake_daemon import FakeDaemon, an_item
from support.terminal import Shell


def a_rule(number: int = 3, **changes: object) -> dict[str, Any]:
    return {
        "number": number, "verdict": "approved", "pattern": "/src/**", "pattern_b64": None,
        "origin": None, "risk": None,
        "covers": 1, "added_at": "2026-11-20T08:11:02Z", "source": None, **changes,
    }  # fmt: skip


def ruled(*items: dict[str, Any], **changes: object) -> dict[str, Any]:
    return {
        "revision": 8, "rule": a_rule(), "is_new": True, "items": list(items), "warnings": [],
        **changes,
    }  # fmt: skip


@pytest.mark.parametrize(("verb", "verdict"), [("approve", "approved"), ("deny", "denied")])
def test_an_added_rule_is_printed_with_its_projects(
    daemon: FakeDaemon, shell: Shell, verb: str, verdict: str
) -> None:
    daemon.answers["rule-add"] = ruled(an_item(verdict=verdict))
    done = shell.run("rule", "add", verb, "~/src/**")
    assert done.status == 0
    assert done.out == f"r7k2\tapi\t{verdict}\tgit\t/src/api\t\n"
    assert done.err == f"Rule 3 added: {verb} /src/**. It covers 1 project now.\n"
    assert daemon.asked("rule-add") == [
        {"verdict": verdict, "pattern": "~/src/**", "cwd": str(Path.cwd())}
    ]


def test_a_rule_is_narrowed_by_a_folder_an_origin_and_a_risk(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["rule-add"] = ruled(rule=a_rule(origin="a.org/*", risk="none"))
    words = ("--below", "~/src", "--origin", "a.org/*", "--risk", "none")
    done = shell.run("rule", "add", "approve", *words)
    assert done.err.startswith("Rule 3 added: approve /src/** (origin a.org/*, risk none). ")
    (sent,) = daemon.asked("rule-add")
    assert {key: sent[key] for key in ("pattern", "below", "origin", "risk")} == {
        "pattern": "", "below": "~/src", "origin": "a.org/*", "risk": "none",
    }  # fmt: skip


def test_an_existing_rule_that_covers_nothing_is_reported(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["rule-add"] = ruled(is_new=False, rule=a_rule(covers=0))
    done = shell.run("rule", "add", "approve", "/src/**")
    assert (done.out, done.err) == (
        "",
        "Rule 3 exists already: approve /src/**. It covers no project yet.\n",
    )


def test_a_rule_is_removed(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["rule-rm"] = ruled(an_item(), is_new=False)
    done = shell.run("rule", "rm", "3")
    assert done.out.startswith("r7k2\tapi\tpending")
    assert done.err == "Rule 3 removed: approve /src/**.\n"
    assert daemon.asked("rule-rm") == [{"number": 3}]


def test_rules_are_listed_and_the_verb_alone_lists_them(daemon: FakeDaemon, shell: Shell) -> None:
    odd = a_rule(4, verdict="denied", pattern=None, pattern_b64="L3Nydi//Kg==")
    daemon.answers["rules"] = {
        "revision": 8,
        "items": [a_rule(origin="a.org/b", risk="none"), odd],
        "policy": [],
        "warnings": [],
    }
    expected = (
        "3\tapprove\t/src/**\t1\t2026-11-20T08:11:02Z\torigin a.org/b, risk none\n"
        "4\tdeny\tfile:///srv/%FF%2A\t1\t2026-11-20T08:11:02Z\t\n"
    )
    for words in ((), ("ls",)):
        assert shell.run("rule", *words).out == expected
    listed = json.loads(shell.run("rule", "--json").out)
    assert listed["command"] == "rule"
    assert [item["number"] for item in listed["items"]] == [3, 4]
    shown = shell.run_on_terminal("rule").out
    assert "PATTERN" in shown
    assert "/srv/\\xff*" in shown


@pytest.mark.parametrize(
    "words",
    [("add",), ("add", "approve"), ("add", "maybe", "/a"), ("rm",), ("rm", "0"), ("rm", "x")],
)
def test_invalid_arguments_are_a_usage_error(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...]
) -> None:
    done = shell.run("rule", *words)
    assert (done.status, done.out) == (2, "")
    assert daemon.requests == []


def test_a_dry_run_says_that_nothing_was_changed(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers |= {"rule-add": ruled(an_item()), "rule-rm": ruled(an_item(), is_new=False)}
    done = shell.run("rule", "add", "deny", "/src/**", "--dry-run")
    assert done.err == (
        "Rule 3 would be added: deny /src/**. It covers 1 project now.\n"
        "Dry run: nothing was changed.\n"
    )
    done = shell.run("rule", "rm", "3", "--dry-run")
    assert done.err.startswith("Rule 3 would be removed: approve /src/**.\n")
    assert [params["effect"] for _, params in daemon.requests] == ["dry-run", "dry-run"]
    whole = json.loads(shell.run("rule", "rm", "3", "--dry-run", "--json").out)
    assert whole["dry_run"]


def test_a_rule_that_lapsed_is_listed_as_such_with_the_next_command(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["rules"] = {
        "revision": 8, "items": [a_rule(verdict="pending")], "policy": [], "warnings": [],
    }  # fmt: skip
    done = shell.run("rule")
    assert done.out.startswith("3\tlapsed\t/src/**\t1\t")
    assert "rootsd approve --lapsed --all" in done.err
    daemon.answers["rule-rm"] = ruled(rule=a_rule(verdict="pending"), is_new=False)
    assert shell.run("rule", "rm", "3").err == "Rule 3 removed: approve /src/**.\n"
