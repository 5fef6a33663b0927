"""An order about more than one project is listed first, and needs one key or --yes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.cli.answers.decision_flow import Order
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import Further, KeyPolicy, TerminalFace, confirm_and_send
from rootsd.cli.text.render import Flags
from rootsd.core.errors import ErrorCode, Exit, RootsdError, Unconfirmed, exit_of
from rootsd.core.model import Verdict
from rootsd.wire.decisions import (
    AddRuleRequest,
    ApprovalScope,
    DecideRequest,
    DecisionVerb,
    RemoveRuleRequest,
    TagRequest,
)
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import Selection
from rootsd.wire.request import ApplyMode
from support.fake_daemon import (
    FakeDaemon,
    Objection,
    a_confirmation,
    a_decision,
    an_affected,
    an_item,
)
from support.key_presses import Keys

API = DecideRequest(DecisionVerb.APPROVE, "/", refs=("api",))
ALL = DecideRequest(DecisionVerb.APPROVE, "/", select=Selection.PENDING)
UNDER = DecideRequest(DecisionVerb.APPROVE, "/", select=Selection.PENDING, under="/src")
GLOB = DecideRequest(DecisionVerb.APPROVE, "/", refs=("acme/*",))
DENY_ALL = DecideRequest(DecisionVerb.DENY, "/", refs=("/src",))
FORGET_ALL = DecideRequest(DecisionVerb.FORGET, "/", refs=("*",))
TAG_ALL = TagRequest(("*",), "/", ("work",))
ADD_RULE = AddRuleRequest(Verdict.APPROVED, "/src/**", "/")
REMOVE_RULE = RemoveRuleRequest(3)
UNDO = UndoRequest()
QUESTIONS = (
    *["Publish 2 projects?"] * 4, "Deny 2 projects?", "Forget the decisions about 2 projects?",
    "Change the tags of 2 projects?", "Add this rule?", "Remove this rule?", "Undo this?",
)  # fmt: skip
EVERY_ORDER = (API, ALL, UNDER, GLOB, DENY_ALL, FORGET_ALL, TAG_ALL, ADD_RULE, REMOVE_RULE, UNDO)


at = partial(TerminalFace, Invocation())
"""The terminal of a person."""


def a_worktree(name: str, **changes: object) -> dict[str, Any]:
    known = {
        "id": f"id-{name}", "name": name, "path": f"/src/{name}", "path_b64": None,
        "main": "/src/api", "identity": f"mark-{name}", "published": False,
        "confirmable": True, "reason": "it existed before its main checkout was approved",
    }  # fmt: skip
    return {**known, **changes}


def a_git_directory(**changes: object) -> dict[str, Any]:
    known = {
        "root": "id-fix", "root_name": "fix", "access": "read-write", "id": "id-api",
        "name": "api", "path": "/src/api", "path_b64": None, "git_directory": "/src/api/.git",
        "identity": "mark-api", "included": False, "confirmable": True,
        "reason": "its checkout is pending",
    }  # fmt: skip
    return {**known, **changes}


def listed(*projects: dict[str, Any], parents: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the confirmation that an order about these projects needs; none for one project."""
    if len(projects) < 2 and not parents:
        return {}
    return a_confirmation(*projects, parents=parents)


def gate(params: dict[str, Any], *projects: dict[str, Any]) -> dict[str, Any]:
    """Answer as the gate of a daemon does: the list in a dry run, or a refusal without it."""
    needed = listed(*projects)
    if params.get("effect") == "dry-run":
        return needed
    if needed and not {each["token"] for each in projects} <= {*params.get("confirmed", ())}:
        message = f"this decides about {len(projects)} projects, and nobody has confirmed that"
        raise Objection(ErrorCode.REFUSED, message, unconfirmed=True)
    return {}


def planned(
    daemon: FakeDaemon,
    count: int = 1,
    trees: tuple[dict[str, Any], ...] = (),
    git: tuple[dict[str, Any], ...] = (),
    risk: str | None = "",
) -> None:
    """Let each order cover this many projects, with these worktrees and Git directories."""
    items = [an_item(f"p{number}", id=f"i{number}") for number in range(count)]

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        confirmed = params.get("worktrees", [])
        shown = [
            {**tree, "published": True, "confirmable": False} if tree["id"] in confirmed else tree
            for tree in trees
        ]
        included = params.get("shared_git", [])
        shared = [
            {**each, "included": True, "confirmable": False} if each["root"] in included else each
            for each in git
        ]
        projects = [an_affected(item["name"], id=item["id"], risk=risk) for item in items]
        projects += [an_affected(t["name"], id=t["id"]) for t in trees if t["id"] in confirmed]
        return {
            **a_decision(*items), "worktrees": shown, "shared_git": shared,
            "rule": {}, "is_new": True, "undone": [], **gate(params, *projects),
        }  # fmt: skip

    for method in ("decide", "tag", "rule-add", "rule-rm", "undo"):
        daemon.answers[method] = answer


def sent(daemon: FakeDaemon) -> list[dict[str, Any]]:
    """Return the orders that were not dry runs."""
    return daemon.ordered("decide")


def received(daemon: FakeDaemon, order: Order) -> list[dict[str, Any]]:
    return daemon.ordered(type(order).method)


@pytest.mark.parametrize("order", EVERY_ORDER)
def test_every_order_about_several_projects_is_listed_and_takes_a_key(
    daemon: FakeDaemon, order: Order, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(daemon, 2, risk="runs code: .mcp.json; secrets: .env")
    for keys in ("n", "q", "?n", " q"):
        assert at(Keys(*keys)).decide(order) is None
    assert received(daemon, order) == []
    person = Keys("y")
    assert at(person).decide(order) is not None
    (given,) = received(daemon, order)
    assert given["confirmed"] == ["token-p0", "token-p1"]
    assert person.questions == [f"{QUESTIONS[EVERY_ORDER.index(order)]} [y,n] "]
    said = capsys.readouterr().err
    for name in ("p0", "p1"):
        assert f"  {name}  /src/{name}  runs code: .mcp.json; secrets: .env\n" in said


@pytest.mark.parametrize("order", EVERY_ORDER)
def test_an_order_about_one_project_takes_no_key(daemon: FakeDaemon, order: Order) -> None:
    planned(daemon, 1, risk="secrets: .env")
    assert at(Keys()).decide(order) is not None
    assert at(Keys(is_there=False)).decide(order) is not None
    assert ["confirmed" in given for given in received(daemon, order)] == [False, False]


@pytest.mark.parametrize("order", EVERY_ORDER)
@pytest.mark.parametrize(("flags", "is_there"), [(Flags(), False), (Flags(no_input=True), True)])
def test_without_a_key_an_order_about_several_projects_needs_yes(
    daemon: FakeDaemon, order: Order, flags: Flags, is_there: bool
) -> None:
    planned(daemon, 2)
    words = Invocation(flags, "verb sub", ("--flag", "a b"))
    with pytest.raises(Unconfirmed, match=r"2 projects.*--dry-run lists them") as refused:
        TerminalFace(words, Keys(is_there=is_there)).decide(order)
    assert refused.value.remedy == "rootsd verb sub --yes --flag 'a b'"
    assert exit_of(refused.value.code) == Exit.REFUSED
    yes = TerminalFace(words, Keys(is_there=is_there), key=KeyPolicy.for_flag(yes=True))
    assert yes.decide(order) is not None
    assert received(daemon, order)[-1]["confirmed"] == ["token-p0", "token-p1"]


def test_projects_that_appear_while_a_person_reads_are_listed_again(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = iter([2, 3, 3])

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        count = next(lists) if params.get("effect") == "dry-run" else 3
        return {**a_decision(), **gate(params, *(an_affected(f"p{n}") for n in range(count)))}

    daemon.answers["decide"] = answer
    person = Keys("y", "y")
    assert at(person).decide(DENY_ALL) is not None
    assert person.questions == ["Deny 2 projects? [y,n] ", "Deny 3 projects? [y,n] "]
    assert "  p0, p1, p2\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("keys", "key"), [(Keys(*"yyy"), KeyPolicy.IF_THERE), (Keys(is_there=False), KeyPolicy.NEVER)]
)
def test_a_list_that_changes_in_each_round_ends_with_an_error(
    daemon: FakeDaemon, keys: Keys, key: KeyPolicy
) -> None:
    def answer(params: dict[str, Any]) -> dict[str, Any]:
        if params.get("effect") == "dry-run":
            return {**a_decision(), **listed(an_affected("a"), an_affected("b"))}
        raise Objection(ErrorCode.REFUSED, "not the ones you were shown", unconfirmed=True)

    daemon.answers["decide"] = answer
    words = Invocation(Flags(), "deny", ("--all",))
    with pytest.raises(Unconfirmed, match="changed 3 times") as refused:
        TerminalFace(words, keys, key).decide(DENY_ALL)
    assert "terminal" not in refused.value.message
    assert refused.value.remedy == "rootsd deny --all"


def test_a_whole_folder_names_what_lies_in_it_and_the_command_for_that(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = [
        an_affected(f"in{n}", within="/src", after="pending", risk="secrets: .env") for n in "ab"
    ]
    plan = listed(an_affected("src", path="/src"), *inner, parents=("/src",))
    daemon.answers["decide"] = {**a_decision(an_item("src")), **plan}
    person = Keys("n")
    order = DecideRequest(DecisionVerb.APPROVE, "/", refs=("/src",))
    assert confirm_and_send(at(person), order) == Exit.FAILED
    assert person.questions == ["Publish src and 2 projects inside? [y,n] "]
    said = capsys.readouterr().err
    assert (
        "2 projects would be readable as a part of /src:\n  ina  /src/ina  secrets: .env" in said
    )
    assert "/src is a parent, so this includes each project that appears there later.\n" in said
    assert "rootsd approve --under /src\n" in said
    assert "Nothing was published." in said


def test_every_name_is_listed_and_unread_risks_are_said(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(daemon, 60)
    assert confirm_and_send(at(Keys("y")), ALL) == Exit.OK
    said = capsys.readouterr().err
    assert {f"p{n}" for n in range(60)} <= set(said.replace(",", "").split())
    assert "60 projects would be published:" in said
    assert "rootsd undo takes this back." in said
    planned(daemon, 2, risk=None)
    confirm_and_send(at(Keys("n")), ALL)
    assert "p0  /src/p0  its risks could not be read in time" in capsys.readouterr().err


@pytest.mark.parametrize(
    "face",
    [
        at(Keys(is_there=False)),
        at(Keys(), key=KeyPolicy.NEVER),
        TerminalFace(Invocation(Flags(no_input=True)), Keys()),
    ],
)
def test_without_a_question_worktrees_stay_pending_and_no_git_directory_is_included(
    daemon: FakeDaemon, face: TerminalFace, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(daemon, 1, (a_worktree("fix"),), git=(a_git_directory(),))
    assert confirm_and_send(face, API) == Exit.OK
    (order,) = sent(daemon)
    assert not {"worktrees", "shared_git"} & order.keys()
    said = capsys.readouterr().err
    assert "Worktree /src/fix stays pending" in said
    assert "rootsd approve /src/api --worktrees" in said


def test_one_key_confirms_only_the_listed_worktrees(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = a_worktree("copy", confirmable=False, reason="it contains another project")
    planned(daemon, 1, (a_worktree("fix"), copy))
    person = Keys("y")
    assert confirm_and_send(at(person), API) == Exit.OK
    (order,) = sent(daemon)
    assert (order["worktrees"], order["worktrees_shown"]) == (["id-fix"], ["mark-fix"])
    said = capsys.readouterr().err
    assert "  /src/fix  (worktree of /src/api)\n" in said
    assert "p  publish the projects without these worktrees\n" in said
    assert "Worktree /src/copy stays pending: it contains another project" in said
    assert person.questions == ["Publish p0 and 1 worktree? [y,p,n] "]


def test_without_a_terminal_the_flag_for_worktrees_needs_yes(daemon: FakeDaemon) -> None:
    planned(daemon, 1, (a_worktree("fix"),))
    nobody, publish = Keys(is_there=False), Further.INCLUDE
    with pytest.raises(Unconfirmed, match="2 projects"):
        confirm_and_send(at(nobody, worktrees=publish), API)
    yes = at(nobody, worktrees=publish, key=KeyPolicy.NEVER)
    assert confirm_and_send(yes, API) == Exit.OK
    assert sent(daemon)[-1]["worktrees"] == ["id-fix"]


def test_on_a_terminal_the_flag_still_needs_the_key(daemon: FakeDaemon) -> None:
    planned(daemon, 1, (a_worktree("fix"),), git=(a_git_directory(),))
    assert confirm_and_send(at(Keys("n", "n"), worktrees=Further.INCLUDE), API) == Exit.FAILED
    assert sent(daemon) == []
    never = at(Keys(), worktrees=Further.INCLUDE, key=KeyPolicy.NEVER)
    assert confirm_and_send(never, API) == Exit.OK
    assert [order["worktrees"] for order in sent(daemon)] == [["id-fix"]]
    assert "shared_git" not in sent(daemon)[0], "it has a flag of its own"


def test_a_dry_run_lists_every_folder_and_asks_nothing(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(daemon, 1, (a_worktree("fix"),), git=(a_git_directory(),))
    order = DecideRequest(DecisionVerb.APPROVE, "/", refs=("api",), effect=ApplyMode.DRY_RUN)
    assert confirm_and_send(at(Keys()), order) == Exit.OK
    said = capsys.readouterr().err
    assert "Worktree /src/fix stays pending" in said
    assert "which is pending: /src/api/.git." in said
    assert sent(daemon) == []


def test_hostile_names_cannot_deceive_the_person_who_is_asked(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\x1b[2J\nPublish nothing"
    bad = a_worktree("x", path=f"/src/{name}", main="/src/\u202egpj")
    git = a_git_directory(name=name, root_name=name, git_directory=f"/{name}")
    planned(daemon, 1, (bad,), git=(git,))
    confirm_and_send(at(Keys("y", "n")), API)
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "\nPublish nothing" not in said


# Git directories of pending checkouts

ASK_GIT = "Include it? [y,n,q] "


@pytest.mark.parametrize(
    ("access", "use"), [("read-write", "read and write it"), ("read", "read it")]
)
def test_one_key_includes_the_git_directory_of_a_pending_checkout(
    daemon: FakeDaemon, access: str, use: str, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(daemon, git=(a_git_directory(access=access),))
    person = Keys("?", "y")
    assert confirm_and_send(at(person), API) == Exit.OK
    assert person.questions == [ASK_GIT, ASK_GIT]
    (order,) = sent(daemon)
    assert (order["shared_git"], order["shared_git_shown"]) == (["id-fix"], ["mark-api"])
    said = capsys.readouterr().err
    start = "fix uses the Git directory of api, which is pending: /src/api/.git. Programs behind"
    assert f"  {start} the wall could {use}.\n" in said
    assert f"\n{start} the wall can {use}.\n" in said


@pytest.mark.parametrize(("key", "status", "orders"), [("n", Exit.OK, 1), ("q", Exit.FAILED, 0)])
def test_another_key_publishes_without_it_or_not_at_all(
    daemon: FakeDaemon, key: str, status: Exit, orders: int, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(daemon, git=(a_git_directory(),))
    assert confirm_and_send(at(Keys(key)), API) == status
    assert len(sent(daemon)) == orders
    assert all("shared_git" not in order for order in sent(daemon))
    if orders:
        assert "To include it: rootsd approve fix --shared-git\n" in capsys.readouterr().err


def with_git(person: Keys, key: KeyPolicy = KeyPolicy.IF_THERE) -> TerminalFace:
    include = Further.INCLUDE
    return at(person, key=key, git_directories=include)


@pytest.mark.parametrize(
    "face",
    [with_git(Keys(is_there=False)), with_git(Keys(), KeyPolicy.NEVER), with_git(Keys("y"))],
)
def test_the_flag_includes_it_without_a_terminal_and_with_a_key_on_one(
    daemon: FakeDaemon, face: TerminalFace
) -> None:
    planned(daemon, 1, (a_worktree("old"),) if not face.asks else (),
            git=(a_git_directory(),))  # fmt: skip
    assert confirm_and_send(face, API) == Exit.OK
    (order,) = sent(daemon)
    assert order["shared_git"] == ["id-fix"]
    assert "worktrees" not in order, "the flag is about Git directories only"


def test_the_flag_says_if_there_is_no_such_git_directory(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(daemon)
    assert confirm_and_send(with_git(Keys()), API) == Exit.OK
    assert "No project of this approval uses the Git directory" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["worktrees", "shared_git"])
def test_what_belongs_to_an_unknown_folder_is_confirmed_after_it(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    more = {"worktrees": a_worktree("fix"), "shared_git": a_git_directory()}[key]

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        is_known = bool(daemon.ordered("decide"))
        return {**a_decision(an_item()), key: [more] if is_known else []}

    daemon.answers["decide"] = answer
    person = Keys("y")
    faces = [at(person)] if key == "worktrees" else [at(person), with_git(Keys(is_there=False))]
    for face in faces:
        daemon.requests.clear()
        assert confirm_and_send(face, API) == Exit.OK
        assert [order.get(key) for order in sent(daemon)] == [None, ["id-fix"]]
    asked = "Publish 1 worktree? [y,n] " if key == "worktrees" else ASK_GIT
    assert person.questions == [asked]
    assert "No project of this approval" not in capsys.readouterr().err


def test_worktrees_and_git_directories_are_asked_about_one_after_the_other(
    daemon: FakeDaemon,
) -> None:
    git = (a_git_directory(), a_git_directory(root="id-x", root_name="x"))
    planned(daemon, 1, (a_worktree("old"),), git=git)
    person = Keys("p", "y")
    assert confirm_and_send(at(person), API) == Exit.OK
    assert person.questions[1] == "Include them? [y,n,q] "
    (order,) = sent(daemon)
    assert "worktrees" not in order
    assert order["shared_git"] == ["id-fix", "id-x"]


ASKERS = [
    {"session": "666", "by": "evil, pid 666", "client": "Claude Code", "reason": "trust me"},
    {"session": "7", "by": "claude, pid 7", "client": "claude, pid 7", "reason": "to fix it"},
]


def two_sessions_ask(daemon: FakeDaemon) -> None:
    """Refuse an approval that does not say which session gets the folder."""

    def decide(params: dict[str, Any]) -> dict[str, Any]:
        if params.get("session") is None and params.get("span") != "always":
            raise Objection(
                ErrorCode.AMBIGUOUS, "2 sessions ask for api", "rootsd approve --session-of 7"
            )
        return a_decision(an_item("api"))

    daemon.answers["decide"] = decide
    daemon.answers["show"] = {"items": [{**an_item("api"), "requests": ASKERS}]}


@pytest.mark.parametrize(
    ("keys", "session", "span"),
    [
        ("1", "666", "session"),
        ("?2", "7", "session"),
        ("e", None, "always"),
        ("n", None, None),  # nobody gets it
    ],
)
def test_a_person_says_which_of_two_sessions_gets_the_folder(
    daemon: FakeDaemon,
    capsys: pytest.CaptureFixture[str],
    keys: str,
    session: str | None,
    span: str | None,
) -> None:
    two_sessions_ask(daemon)
    status = Exit.OK if span else Exit.FAILED
    assert confirm_and_send(at(Keys(*keys)), API) == status
    given = [(order.get("session"), order["span"]) for order in sent(daemon)]
    assert given == ([(session, span)] if span else [])
    said = capsys.readouterr().err
    assert '1  evil, pid 666 (its own name: "Claude Code"): "trust me"' in said
    assert '2  claude, pid 7: "to fix it"' in said


@pytest.mark.parametrize("key", KeyPolicy)
def test_without_an_answer_two_sessions_are_an_error(daemon: FakeDaemon, key: KeyPolicy) -> None:
    two_sessions_ask(daemon)
    nobody = at(Keys(is_there=key is KeyPolicy.NEVER), key=key)
    with pytest.raises(RootsdError, match="2 sessions ask") as caught:
        confirm_and_send(nobody, API)
    assert caught.value.code is ErrorCode.AMBIGUOUS


@pytest.mark.parametrize(
    "order",
    [
        replace(API, verb=DecisionVerb.DENY),
        replace(API, session="7"),
        replace(API, span=ApprovalScope.ALWAYS),
        replace(API, refs=("api", "web")),
        ALL,
    ],
)
def test_only_an_open_approval_of_one_folder_is_asked_about(
    daemon: FakeDaemon, order: DecideRequest
) -> None:
    two_sessions_ask(daemon)
    daemon.answers["decide"] = Objection(ErrorCode.AMBIGUOUS, "api fits two projects")
    with pytest.raises(RootsdError, match="api fits two projects"):
        at(Keys()).decide(order)
    assert daemon.asked("show") == []


def lacking(*names: str) -> dict[str, Any]:
    """Return the part of a plan that lists incomplete projects."""
    what = "a clone or copy was cut off, so history or files are missing"
    return {
        "incomplete": [
            {"id": f"id-{name}", "name": name, "reason": "interrupted", "lacks": what}
            for name in names
        ]
    }


def cut_off(daemon: FakeDaemon, *names: str) -> None:
    """Let each approval name these incomplete projects."""

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        if params.get("effect") == "dry-run":
            return {**a_decision(an_item("api")), **lacking(*names)}
        if params.get("incomplete", []) != [f"id-{name}" for name in names]:
            raise Objection(ErrorCode.FAILED, "it is incomplete")
        return a_decision(an_item("api"))

    daemon.answers["decide"] = answer


def test_an_incomplete_project_is_published_by_a_key_after_a_warning(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    cut_off(daemon, "api", "e\x1b[2Jvil")
    for keys in ("n", "q", "?n"):
        assert at(Keys(*keys)).decide(API) is None
    assert sent(daemon) == []
    capsys.readouterr()
    person = Keys("y")
    assert at(person).decide(API) is not None
    assert person.questions == ["Publish them anyway? [y,n] "]
    said = capsys.readouterr().err
    assert "  api is incomplete: a clone or copy was cut off, so history or files are" in said
    assert "\x1b" not in said
    (given,) = sent(daemon)
    assert given["incomplete_shown"] == ["interrupted", "interrupted"]


@pytest.mark.parametrize("key", KeyPolicy)
def test_without_a_terminal_only_its_own_flag_publishes_an_incomplete_project(
    daemon: FakeDaemon, key: KeyPolicy
) -> None:
    cut_off(daemon, "api")
    with pytest.raises(RootsdError, match="it is incomplete"):
        at(Keys(is_there=False), key=key).decide(API)
    flag = at(Keys(is_there=False), key=key, incomplete=Further.INCLUDE)
    assert flag.decide(API) is not None
    assert sent(daemon)[-1]["incomplete"] == ["id-api"]
