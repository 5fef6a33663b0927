"""An approval that covers more than its arguments name is listed first and needs one key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rootsd.cli.confirm import (
    BULK_THRESHOLD,
    Confirmation,
    ExistingWorktrees,
    KeyPolicy,
    confirm_and_send,
)
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import Flags
from rootsd.core.errors import ErrorCode, Exit
from rootsd.wire.decisions import ApplyMode, DecideRequest, DecisionVerb
from rootsd.wire.projects import Selection
from support.fake_daemon import FakeDaemon, Objection, a_decision, an_item

API = DecideRequest(DecisionVerb.APPROVE, "/", refs=("api",))
ALL = DecideRequest(DecisionVerb.APPROVE, "/", select=Selection.PENDING)
UNDER = DecideRequest(DecisionVerb.APPROVE, "/", select=Selection.PENDING, under="/src")
GLOB = DecideRequest(DecisionVerb.APPROVE, "/", refs=("acme/*",))
RISKY = [{"id": "r1", "name": "acme/api", "path": "/src/acme/api", "files": [".mcp.json"]}]


class Person:
    """A person who presses these keys; one more question fails the test."""

    def __init__(self, *keys: str, is_there: bool = True) -> None:
        self._keys: Iterator[str] = iter(keys)
        self._is_there = is_there
        self.questions: list[str] = []

    def is_there(self) -> bool:
        return self._is_there

    def press(self, question: str) -> str:
        self.questions.append(question)
        return next(self._keys)


def a_worktree(name: str, **changes: object) -> dict[str, Any]:
    known = {
        "id": f"id-{name}", "name": name, "path": f"/src/{name}", "path_b64": None,
        "main": "/src/api", "identity": f"mark-{name}", "published": False,
        "confirmable": True, "reason": "it existed before its main checkout was approved",
    }  # fmt: skip
    return {**known, **changes}


def planned(
    daemon: FakeDaemon,
    count: int = 1,
    trees: tuple[dict[str, Any], ...] = (),
    executed: tuple[dict[str, Any], ...] = (),
) -> None:
    """Let each order cover this many projects, with these worktrees and executed files."""
    items = [an_item(f"p{number}", id=f"i{number}") for number in range(count)]

    def decide(params: dict[str, Any]) -> dict[str, Any]:
        confirmed = params.get("worktrees", [])
        shown = [
            {**tree, "published": True, "confirmable": False} if tree["id"] in confirmed else tree
            for tree in trees
        ]
        more = {"executed": list(executed)} if params.get("effect") == "dry-run" else {}
        return {**a_decision(*items), "worktrees": shown, **more}

    daemon.answers["decide"] = decide


def sent(daemon: FakeDaemon) -> list[dict[str, Any]]:
    """Return the orders that were not dry runs."""
    return [params for params in daemon.asked("decide") if params.get("effect") != "dry-run"]


@pytest.mark.parametrize("order", [ALL, UNDER, GLOB])
@pytest.mark.parametrize(
    ("count", "executed", "is_asked"),
    [(BULK_THRESHOLD, (), False), (BULK_THRESHOLD + 1, (), True), (1, tuple(RISKY), True)],
)
def test_many_projects_or_files_that_agents_execute_take_a_key(
    daemon: FakeDaemon,
    order: DecideRequest,
    count: int,
    executed: tuple[dict[str, Any], ...],
    is_asked: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned(daemon, count, executed=executed)
    person = Person("y")
    assert confirm_and_send(Invocation(), order, Confirmation(person)) == Exit.OK
    assert bool(person.questions) is is_asked
    assert len(sent(daemon)) == 1
    said = capsys.readouterr().err
    assert "rootsd undo takes this back." in said
    if is_asked:
        assert f"{count} project" in said
        assert ("acme/api  .mcp.json" in said) is bool(executed)


def test_without_the_key_nothing_is_sent(daemon: FakeDaemon) -> None:
    planned(daemon, 24)
    for key in ("n", "q"):
        assert confirm_and_send(Invocation(), ALL, Confirmation(Person("?", key))) == Exit.FAILED
    assert sent(daemon) == []


def test_a_named_project_takes_no_key(daemon: FakeDaemon) -> None:
    planned(daemon, 1, executed=tuple(RISKY))
    assert confirm_and_send(Invocation(), API, Confirmation(Person())) == Exit.OK
    assert len(sent(daemon)) == 1


@pytest.mark.parametrize(
    ("invocation", "confirmation"),
    [
        (Invocation(), Confirmation(Person(is_there=False))),
        (Invocation(), Confirmation(Person(), key=KeyPolicy.NEVER)),
        (Invocation(Flags(no_input=True)), Confirmation(Person())),
    ],
)
def test_without_a_question_existing_worktrees_stay_pending(
    daemon: FakeDaemon,
    invocation: Invocation,
    confirmation: Confirmation,
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned(daemon, 24, (a_worktree("fix"),), tuple(RISKY))
    assert confirm_and_send(invocation, ALL, confirmation) == Exit.OK
    (order,) = daemon.asked("decide")
    assert "worktrees" not in order
    said = capsys.readouterr().err
    assert "Worktree /src/fix stays pending" in said
    assert "rootsd approve /src/api --worktrees" in said


def test_one_key_confirms_only_the_listed_worktrees(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = a_worktree("copy", confirmable=False, reason="it contains another project")
    planned(daemon, 1, (a_worktree("fix"), copy))
    person = Person("y")
    assert confirm_and_send(Invocation(), API, Confirmation(person)) == Exit.OK
    (order,) = sent(daemon)
    assert (order["worktrees"], order["worktrees_shown"]) == (["id-fix"], ["mark-fix"])
    said = capsys.readouterr().err
    assert "  /src/fix  (worktree of /src/api)\n" in said
    assert "Worktree /src/copy stays pending: it contains another project" in said
    assert person.questions == ["Publish p0 and 1 worktree? [y,p,n] "]


def test_the_projects_can_be_published_without_their_worktrees(daemon: FakeDaemon) -> None:
    planned(daemon, 1, (a_worktree("fix"),))
    assert confirm_and_send(Invocation(), API, Confirmation(Person("p"))) == Exit.OK
    (order,) = sent(daemon)
    assert "worktrees" not in order


def test_without_a_terminal_the_flag_confirms(daemon: FakeDaemon) -> None:
    planned(daemon, 1, (a_worktree("fix"),))
    confirmation = Confirmation(Person(is_there=False), ExistingWorktrees.PUBLISH)
    assert confirm_and_send(Invocation(), API, confirmation) == Exit.OK
    assert [order["worktrees"] for order in sent(daemon)] == [["id-fix"]]


def test_on_a_terminal_the_flag_still_needs_the_key(daemon: FakeDaemon) -> None:
    planned(daemon, 1, (a_worktree("fix"),))
    assert (
        confirm_and_send(Invocation(), API, Confirmation(Person("n"), ExistingWorktrees.PUBLISH))
        == Exit.FAILED
    )
    assert sent(daemon) == []
    never = Confirmation(Person(), ExistingWorktrees.PUBLISH, KeyPolicy.NEVER)
    assert confirm_and_send(Invocation(), API, never) == Exit.OK
    assert [order["worktrees"] for order in sent(daemon)] == [["id-fix"]]


def test_the_worktrees_of_an_unknown_folder_are_confirmed_after_it(
    daemon: FakeDaemon,
) -> None:
    def decide(params: dict[str, Any]) -> dict[str, Any]:
        if params.get("effect") == "dry-run":
            raise Objection(ErrorCode.NOTHING_MATCHED, "not known yet", "rootsd ls")
        return {**a_decision(), "worktrees": [a_worktree("fix")]}

    daemon.answers["decide"] = decide
    person = Person("y")
    assert confirm_and_send(Invocation(), API, Confirmation(person)) == Exit.OK
    assert person.questions == ["Publish 1 worktree? [y,n] "]
    assert [order.get("worktrees") for order in sent(daemon)] == [None, ["id-fix"]]


def test_a_dry_run_lists_every_folder_and_asks_nothing(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(daemon, 1, (a_worktree("fix"),))
    order = DecideRequest(DecisionVerb.APPROVE, "/", refs=("api",), effect=ApplyMode.DRY_RUN)
    assert confirm_and_send(Invocation(), order, Confirmation(Person())) == Exit.OK
    assert "Worktree /src/fix stays pending" in capsys.readouterr().err
    assert sent(daemon) == []


def test_hostile_names_cannot_deceive_the_person_who_is_asked(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = a_worktree("x", path="/src/a\x1b[2J\nPublish nothing", main="/src/\u202egpj")
    planned(daemon, 1, (bad,))
    confirm_and_send(Invocation(), API, Confirmation(Person("y")))
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "\nPublish nothing" not in said
