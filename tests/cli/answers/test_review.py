"""The review: its keys and groups. No decision is only half applied."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.review import Review, group_pending
from rootsd.cli.text.projects import OWNER
from rootsd.control.listing import add_risks
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.uris import without_credentials
from rootsd.vcs.facts import CollectedRisks
from support.fake_daemon import (
    FakeDaemon,
    Objection,
    a_confirmation,
    a_decision,
    a_listing,
    an_affected,
    an_item,
)
from support.key_presses import Keys


def a_project(name: str, **changes: object) -> dict[str, Any]:
    return an_item(name, **{
        "id": f"id-{name}", "identity": f"mark-{name}", "risk": "",
        "requested": "request" in changes, **changes,
    })  # fmt: skip


ACME = "git@github.com:acme/x.git"
ITEMS = (a_project("a", origin=ACME), a_project("b", origin=ACME), a_project("c"))


def lists(daemon: FakeDaemon, *items: dict[str, Any]) -> FakeDaemon:
    """Let these be the pending projects of a daemon, which reads one that `refs` names."""
    by_id = {item["id"]: item for item in items}

    def read(params: dict[str, Any]) -> dict[str, Any]:
        if gone := [id_ for id_ in params["refs"] if id_ not in by_id]:
            raise Objection(ErrorCode.NOTHING_MATCHED, f"no project is called {gone[0]}")
        return a_listing(*(by_id[id_] for id_ in params["refs"]))

    daemon.answers["show"] = daemon.answers["projects"] = read
    daemon.answers["next-waiting"] = a_listing(*items)
    daemon.answers["decide"] = lambda params: a_decision(*(by_id[i] for i in params["refs"]))
    return daemon


@pytest.fixture
def waiting(daemon: FakeDaemon) -> FakeDaemon:
    """A daemon with three pending projects: c, and a and b of one owner."""
    return lists(daemon, *ITEMS)


def reviewed(*keys: str) -> tuple[Review, bool]:
    review = Review(Invocation(), Keys(*keys))
    return review, review.ask_about(ITEMS)


def orders(daemon: FakeDaemon) -> list[tuple[str, list[str]]]:
    return [(params["verb"], params["refs"]) for params in daemon.ordered("decide")]


def test_groups_are_by_parent_and_owner() -> None:
    other = a_project("z", parent=None, origin="https://u@gitlab.com/x/y/z.git")
    groups = group_pending([*ITEMS, other])
    assert [(group.title, [item["name"] for item in group.items]) for group in groups] == [
        ("outside all parents from gitlab.com/x/y: 1 pending", ["z"]),
        ("/src: 1 pending", ["c"]),
        ("/src from github.com/acme: 2 pending", ["a", "b"]),
    ]


@pytest.mark.parametrize(
    "origin",
    [
        "git@github.com:acme/api.git",
        "https://GitHub.com:443/acme/api",
        "ssh://git@host.example:2222/a/b/c.git/",
        "git@host.example:api.git",
        "file:///srv/git/api.git",
        "/srv/git/api.git",
        "::::",
    ],
)
def test_the_groups_are_those_of_the_column_from(origin: str) -> None:
    """The listings name an owner for each project, and the review groups by no other one."""
    address = without_credentials(origin)
    listed: Any = an_item("api", origin=address)
    risks = CollectedRisks(address, [], 0, is_whole=True)
    add_risks(listed, risks)
    owner = OWNER.cell(listed)
    [group] = group_pending([a_project("api", origin=address)])
    assert group.title == f"/src{f' from {owner}' if owner else ''}: 1 pending"


def test_each_key_sends_one_order(waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    review, goes_on = reviewed("y", "n", "s")
    assert orders(waiting) == [("approve", ["id-c"]), ("deny", ["id-a"])]
    assert goes_on
    assert review.summary() == (
        "1 approved, 1 denied, 1 still pending. rootsd undo takes the last answer back."
    )
    assert review.seen == ["id-c", "id-a", "id-b"]
    said = capsys.readouterr().err
    assert said.count("/src: 1 pending\n") == 1
    assert said.count("/src from github.com/acme: 2 pending\n") == 1


@pytest.mark.parametrize(("key", "verb"), [("a", "approve"), ("d", "deny")])
def test_the_rest_of_a_group_is_listed_and_takes_another_key(
    waiting: FakeDaemon, key: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = [an_affected(name, risk="secrets: .env") for name in "ab"]

    def decide(params: dict[str, Any]) -> dict[str, Any]:
        more = a_confirmation(*listed) if params.get("effect") == "dry-run" else {}
        return {**a_decision(*ITEMS[:2]), **more}

    waiting.answers["decide"] = decide
    review, _ = reviewed("s", key, "n", "q")
    assert (orders(waiting), review.left) == ([], 3)
    assert "  a  /src/a  secrets: .env\n" in capsys.readouterr().err
    reviewed("s", key, "y")
    (order,) = waiting.ordered("decide")
    assert (order["verb"], order["refs"]) == (verb, ["id-a", "id-b"])
    assert order["confirmed"] == ["token-a", "token-b"]


def test_quitting_decides_nothing_else(waiting: FakeDaemon) -> None:
    review, goes_on = reviewed("s", "q")
    assert (orders(waiting), goes_on) == ([], False)
    assert review.summary() == "0 approved, 0 denied, 3 still pending."


def test_remaining_projects_are_counted_across_all_groups(waiting: FakeDaemon) -> None:
    items = [a_project(name, parent=f"/src/{name}") for name in "abcd"]
    lists(waiting, *items)
    waiting.answers["decide"] = a_decision({**items[0], "verdict": "approved"})
    review = Review(Invocation(), person := Keys("y", "s", "q"))
    assert not review.ask_about(items)
    assert [question[:5] for question in person.questions] == ["[1/4]", "[2/4]", "[3/4]"]
    assert review.summary() == (
        "1 approved, 0 denied, 3 still pending. rootsd undo takes the last answer back."
    )


def test_an_unknown_key_prints_the_keys_and_asks_again(
    waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    reviewed("?", "", "Y", "q")
    assert orders(waiting) == []
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("y  publish it") == 3


def test_the_facts_are_shown_and_escaped(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = {"concern": "executed", "path": ".mcp.json\x1b[2J", "detail": ""}
    item = a_project("a\x1b", findings=[finding], risk="runs code: .mcp.json\x1b[2J")
    review = Review(Invocation(), person := Keys("?", "q"))
    lists(daemon, item)
    review.ask_about([item])
    told = capsys.readouterr().err + "".join(person.questions)
    assert "/src/a\\u{1b}  git  " in told
    assert "runs code: .mcp.json\\u{1b}[2J\n[1/1] publish" in told
    assert "agents run   .mcp.json\\u{1b}[2J" in told
    assert "\x1b" not in told


def test_after_a_rename_the_question_is_repeated(waiting: FakeDaemon) -> None:
    waiting.answers["rename"] = a_decision(a_project("noodle"))
    review = Review(Invocation(), person := Keys("r", "noodle", "r", "", "q"))
    review.ask_about(ITEMS)
    assert waiting.asked("rename") == [{"ref": "id-c", "name": "noodle", "cwd": "/"}]
    assert "publish noodle?" in person.questions[-1]


def test_a_folder_that_was_replaced_since_it_was_shown_is_not_approved(
    waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (a_project("c", identity=each, note=f"the {each} one") for each in ("old", "new"))
    seen = iter((old, new))
    lists(waiting, new)
    waiting.answers["show"] = lambda _: a_listing(next(seen))

    def decide(params: dict[str, Any]) -> dict[str, Any]:
        if params["shown"] == ["old"]:
            raise Objection(ErrorCode.FAILED, "/src/c was replaced since it was shown")
        return a_decision(a_project("c", verdict="approved"))

    waiting.answers["decide"] = decide
    review = Review(Invocation(), Keys("y", "y"))
    review.ask_about([ITEMS[2]])
    refused, _, shown_anew = capsys.readouterr().err.partition("replaced since it was shown")
    assert "note         the old one" in refused
    assert "note         the new one" in shown_anew
    assert [params["shown"] for params in waiting.asked("decide")] == [["old"], ["new"], ["new"]]
    assert review.approved == 1


def test_a_project_that_disappears_during_its_question_is_dropped(waiting: FakeDaemon) -> None:
    waiting.answers["next-waiting"] = a_listing()
    waiting.answers["decide"] = Objection(ErrorCode.FAILED, "it is not there")
    review = Review(Invocation(), Keys("y"))
    assert review.ask_about([ITEMS[2]])
    assert (review.approved, review.left) == (0, 0)


def test_after_a_failure_the_question_is_repeated_and_a_refusal_ends_the_review(
    waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting.answers["decide"] = Objection(ErrorCode.DENIED, "deny rule 3 covers it")
    reviewed("y", "q")
    assert "deny rule 3 covers it" in capsys.readouterr().err
    waiting.answers["decide"] = Objection(ErrorCode.REFUSED, "an agent started this")
    with pytest.raises(RootsdError, match="an agent"):
        reviewed("y")


def test_a_project_that_disappeared_is_skipped(daemon: FakeDaemon) -> None:
    lists(daemon, ITEMS[0], ITEMS[2])
    review = Review(Invocation(), Keys("s", "s"))
    assert review.ask_about(ITEMS)
    assert review.seen == ["id-c", "id-a"]


def a_worktree(name: str, *, published: bool = False) -> dict[str, Any]:
    return {
        "id": f"id-{name}", "name": name, "path": f"/src/{name}", "path_b64": None,
        "main": "/src/a", "identity": f"mark-{name}", "published": published,
        "confirmable": not published, "reason": None if published else "it is older",
    }  # fmt: skip


def test_one_key_publishes_a_project_with_the_worktrees_that_are_listed(
    waiting: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    main = a_project("a", worktrees=[a_worktree("fix")])
    fix = a_project("fix", worktree_of="/src/a")
    lists(waiting, main, fix)
    waiting.answers["decide"] = {
        **a_decision(main),
        "worktrees": [a_worktree("fix", published=True)],
        **a_confirmation(an_affected("a"), an_affected("fix")),
    }
    person = Keys("w", "y")
    review = Review(Invocation(), person)
    assert review.ask_about([main, fix]), "the worktree is not asked about again"
    assert person.questions == [
        "[1/2] publish a? [y,w,n,a,d,A,s,r,q,?] ",
        "Publish a and 1 worktree? [y,n] ",
    ]
    (order,) = waiting.ordered("decide")
    assert (order["worktrees"], order["worktrees_shown"]) == (["id-fix"], ["mark-fix"])
    said = capsys.readouterr().err
    assert "worktree     /src/fix (published with it only if you confirm it)" in said
    assert "also approved /src/fix" in said
    assert "worktrees of" not in said, "the group of the worktree is empty"
    assert review.left == 0


def test_an_incomplete_project_is_decided_by_itself(daemon: FakeDaemon) -> None:
    item = a_project("a", incomplete="interrupted", worktrees=[a_worktree("fix")])
    lists(daemon, item)
    review = Review(Invocation(), person := Keys("a", "w", "q"))
    review.ask_about([item])
    assert set(person.questions) == {"[1/1] publish a? [y,n,s,r,q,?] "}
    assert daemon.ordered("decide") == []


GIT = {
    "root": "id-a", "root_name": "a", "access": "read-write", "id": "id-m", "name": "m",
    "path": "/src/m", "path_b64": None, "git_directory": "/src/m/.git", "identity": "mark-m",
    "included": False, "confirmable": True, "reason": "its checkout is pending",
}  # fmt: skip


def test_one_key_publishes_a_project_with_the_git_directory_that_is_shown(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    item = a_project("a", shared_git=GIT)
    lists(daemon, item)
    daemon.answers["decide"] = a_decision({**item, "verdict": "approved"})
    for key in ("?g", "y"):
        person = Keys(*key)
        Review(Invocation(), person).ask_about([item])
        assert person.questions[0] == "[1/1] publish a? [y,g,n,a,d,A,s,r,q,?] "
    including, plain = daemon.ordered("decide")
    assert (including["shared_git"], including["shared_git_shown"]) == (["id-a"], ["mark-m"])
    assert "shared_git" not in plain
    said = " ".join(capsys.readouterr().err.split())
    assert "shared git /src/m/.git (closed behind the wall: its checkout is pending" in said
    assert "g publish it, and let programs behind the wall use its Git directory" in said


@pytest.mark.parametrize(
    "item",
    [
        a_project("a", shared_git={**GIT, "confirmable": False}),
        a_project("a", shared_git=GIT, request="an agent requests it"),
        a_project("a"),
    ],
)
def test_the_key_for_the_git_directory_does_nothing_if_none_can_be_included(
    daemon: FakeDaemon, item: dict[str, Any]
) -> None:
    lists(daemon, item)
    person = Keys("g", "s")
    Review(Invocation(), person).ask_about([item])
    assert ",g," not in person.questions[0]
    assert daemon.ordered("decide") == []


def test_the_worktrees_of_one_checkout_are_one_group_with_one_key_for_all() -> None:
    trees = [a_project(name, worktree_of="/src/a", origin=ACME) for name in ("x", "y")]
    groups = group_pending([a_project("b"), *trees])
    assert [(group.title, len(group.items)) for group in groups] == [
        ("/src: 1 pending", 1),
        ("worktrees of /src/a: 2 pending", 2),
    ]


def test_what_a_session_requests_comes_first_and_what_has_risks_last(daemon: FakeDaemon) -> None:
    items = (
        a_project("risky", risk="secrets: .env"),
        a_project("unread", risk=None),
        a_project("partly", risk="?"),
        a_project("safe"),
        a_project("wanted", request="claude asks", risk="secrets: .env"),
    )
    lists(daemon, *items)
    review = Review(Invocation(), person := Keys(*"sssss"))
    assert review.ask_about(items)
    assert [question.split()[2] for question in person.questions] == [
        "wanted?", "safe?", "risky?", "unread?", "partly?",
    ]  # fmt: skip
    assert [",A," in question for question in person.questions] == [False, True, *[False] * 3]


def test_one_key_publishes_all_without_risks_on_every_page_after_a_list(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.cli.answers.review._PAGE_SIZE", 2)
    items = [a_project(name) for name in ("a", "b", "skipped", "c")]
    items[0]["risk"] = "secrets: .env"
    items.append(a_project("later", parent="/other"))
    lists(daemon, *items)
    plan = a_confirmation(*(an_affected(name) for name in ("c", "later", "b")))
    daemon.answers["decide"] = {**a_decision(*items[1:]), **plan}
    review = Review(Invocation(), person := Keys("s", "A", "n", "A", "y", "q"))
    skipped_first = [items[2], *items[:2], *items[3:]]
    assert not review.ask_about(skipped_first)
    (order,) = daemon.ordered("decide")
    assert sorted(order["refs"]) == ["id-b", "id-c", "id-later"]
    assert sorted(order["shown"]) == ["mark-b", "mark-c", "mark-later"]
    assert person.questions[-2] == "Publish 3 projects? [y,n] "
    assert person.questions[-1].startswith("[5/5] publish a?"), "only the risky one is left"


@pytest.mark.parametrize(
    ("key", "span", "access"),
    [
        ("y", None, None),
        ("e", "session", "read-write"),
        ("p", "always", "read"),
        ("P", "always", "read-write"),
    ],
)
def test_the_answer_to_a_root_request_sets_session_and_access(
    daemon: FakeDaemon, key: str, span: str | None, access: str | None
) -> None:
    item = a_project("a", request=True)
    lists(daemon, item)
    daemon.answers["decide"] = a_decision({**item, "verdict": "approved"})
    review = Review(Invocation(), person := Keys(key))
    review.ask_about([item])
    assert "[y,e,p,P,n" in person.questions[0]
    (order,) = daemon.ordered("decide")
    assert (order["verb"], order["refs"]) == ("approve", ["id-a"])
    assert (order.get("span"), order.get("access")) == (span, access)


@pytest.mark.parametrize("key", ["e", "p", "P", "w"])
def test_without_a_root_request_or_worktrees_their_keys_are_unknown(
    waiting: FakeDaemon, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    reviewed(key, "q")
    assert orders(waiting) == []
    assert "y  publish it" in capsys.readouterr().err
