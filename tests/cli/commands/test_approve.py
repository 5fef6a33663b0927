"""`rootsd approve`: from arguments to a request."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.fake_daemon import FakeDaemon, a_decision, an_item
from support.terminal import Shell

APPROVED = an_item(verdict="approved", published=True)


@pytest.mark.parametrize(
    ("words", "order"),
    [
        (("api",), {"refs": ["api"]}),
        (("a", "b/*"), {"refs": ["a", "b/*"]}),
        ((".", "--as", "x"), {"refs": ["."], "name": "x"}),
        (("a", "--tag", "t", "--tag", "u"), {"refs": ["a"], "tags": ["t", "u"]}),
        (("a", "--read-only"), {"refs": ["a"], "access": "read"}),
        (("a", "--for", "1h30m"), {"refs": ["a"], "lasts": 5_400}),
        (("a", "--dry-run"), {"refs": ["a"], "effect": "dry-run"}),
        (("--all",), {"select": "waiting"}),
        (("--under", "~/x"), {"select": "waiting", "under": "~/x"}),
        (("--all", "--under", "x"), {"select": "waiting", "under": "x"}),
        (("--lapsed",), {"select": "lapsed"}),
        (("--lapsed", "--all"), {"select": "lapsed"}),
        (("--lapsed", "--under", "x", "--tag", "t"),
         {"select": "lapsed", "under": "x", "tags": ["t"]}),
    ],
)  # fmt: skip
def test_the_arguments_become_a_request(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...], order: dict[str, Any]
) -> None:
    daemon.answers["decide"] = a_decision(APPROVED)
    assert shell.run("approve", *words).status == 0
    expected = {"verb": "approve", "cwd": str(Path.cwd()), **order}
    assert daemon.asked("decide") == [expected]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "rootsd pending lists them"),
        (("a", "--all"), "not both"),
        (("a", "--under", "x"), "not both"),
        (("a", "b", "--as", "x"), "exactly one"),
        (("--all", "--as", "x"), "exactly one"),
        (("a", "--for", "soon"), "not a duration"),
    ],
)
def test_contradictory_arguments_are_a_usage_error(
    daemon: FakeDaemon, shell: Shell, words: tuple[str, ...], said: str
) -> None:
    done = shell.run("approve", *words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert daemon.requests == []


def test_a_reference_that_is_not_utf8_reaches_the_daemon(daemon: FakeDaemon, shell: Shell) -> None:
    daemon.answers["decide"] = a_decision()
    shell.run("approve", os.fsdecode(b"./\xff"))
    (order,) = daemon.asked("decide")
    assert order["refs"][0].encode("utf-8", "surrogateescape") == b"./\xff"


def test_rules_that_approve_again_are_printed(daemon: FakeDaemon, shell: Shell) -> None:
    again = {
        "number": 3, "verdict": "approved", "pattern": "/src/**", "pattern_b64": None,
        "origin": None, "risk": None,
        "covers": 2, "added_at": "2026-11-20T08:11:02Z", "source": None,
    }  # fmt: skip
    daemon.answers["decide"] = {**a_decision(), "rules": [again]}
    done = shell.run("approve", "--lapsed", "--all")
    assert (done.out, done.err) == (
        "",
        "Rule 3 approves again: /src/**. It covers 2 projects now.\n",
    )
    assert json.loads(shell.run("approve", "--lapsed", "--json").out)["rules"] == [again]
