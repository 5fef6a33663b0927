"""The output that approve, deny, and forget share."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.cli.answers.decisions import send_and_print
from rootsd.cli.answers.invocation import Invocation
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from support.fake_daemon import FakeDaemon, a_decision, an_item
from support.terminal import Shell

APPROVED = an_item(verdict="approved", published=True)


@pytest.mark.parametrize(
    ("verb", "word"),
    [
        (DecisionVerb.APPROVE, "already approved"),
        (DecisionVerb.DENY, "already denied"),
        (DecisionVerb.FORGET, "already undecided"),
    ],
)
def test_an_unchanged_project_is_a_message_on_standard_error(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], verb: DecisionVerb, word: str
) -> None:
    daemon.answers["decide"] = a_decision(APPROVED, unchanged=[an_item("web\x1b")])
    send_and_print(Invocation(), DecideRequest(verb, cwd="/"))
    told = capsys.readouterr()
    assert told.out == "r7k2\tapi\tapproved\tgit\t/src/api\t\n"
    assert told.err.startswith(f"web\\u{{1b}}: {word}\n")


def test_forgetting_a_pending_project_names_the_command_that_hides_it(
    daemon: FakeDaemon, shell: Shell
) -> None:
    daemon.answers["decide"] = a_decision(unchanged=[an_item("web", id="w1")])
    told = shell.run("forget", "web").err
    assert "web: already undecided" in told
    assert "to stop proposing it: rootsd deny w1" in told
    assert "rootsd parent set --help" in told
    assert daemon.asked("decide")[-1] == {
        "verb": "deny", "cwd": "/", "refs": ["w1"], "effect": "dry-run",
    }  # fmt: skip


def test_forgetting_never_advises_a_denial_of_more_than_that_project(
    daemon: FakeDaemon, shell: Shell
) -> None:
    def decide(params: dict[str, Any]) -> dict[str, Any]:
        answer = a_decision(unchanged=[an_item("src", id="w1")])
        several = {"confirmation": {"projects": [], "parents": ["/src"], "unsearched": []}}
        return {**answer, **several} if params["verb"] == "deny" else answer

    daemon.answers["decide"] = decide
    told = shell.run("forget", "src").err
    assert "src: already undecided" in told
    assert "rootsd deny" not in told


def test_a_renewed_approval_is_printed(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["decide"] = {**a_decision(APPROVED), "renewed": [APPROVED["id"]]}
    send_and_print(Invocation(), DecideRequest(DecisionVerb.APPROVE, cwd="/"))
    assert capsys.readouterr().err == "api: approved again, for the running sessions\n"
