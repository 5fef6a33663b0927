"""Clients that have roots of their own, or say so."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.roots import ClientRootsPolicy, RootsProvider
from support.bridges import fault, notice, reply, request
from support.relaying import API, DOCS, NOWHERE, WEB, Desk, call, paths

CHANGED = "notifications/roots/list_changed"
HAS_ROOTS = {"roots": {"listChanged": True}}


def theirs(*folders: str) -> dict[str, Any]:
    return {"roots": [{"uri": f"file://{path}", "name": "x"} for path in folders]}


def asked(desk: Desk) -> object:
    """The id under which the client is asked for its roots."""
    questions = [each for each in desk.to_client() if each.get("method") == "roots/list"]
    (question,) = questions
    return question["id"]


def test_a_servers_question_waits_until_the_client_has_said_where_it_works() -> None:
    desk = Desk(API, WEB)
    desk.shake_hands(HAS_ROOTS)
    desk.server(request(0, "roots/list"))
    assert desk.to_server() == []
    desk.client(reply(asked(desk), theirs("/src/web", "/src/api/deep")))
    (answer,) = desk.to_server()
    assert paths(answer["result"]) == ["/src/web", "/src/api/deep"]


def test_a_call_waits_for_that_too_as_it_may_mean_another_server() -> None:
    desk = Desk(API, WEB, words=("server", "{roots}"), profile=ServerProfile.SILENT)
    desk.shake_hands(HAS_ROOTS)
    question = asked(desk)
    desk.client(call(1))
    assert desk.to_server() == []
    desk.client(reply(question, theirs("/src/web")))
    assert desk.another().words == ("server", "/src/web")
    (again, _) = (desk.to_server(), desk.to_client())
    desk.server(reply(again[0]["id"], {}))
    assert [each["id"] for each in desk.to_server() if "id" in each] == [1]


@pytest.mark.parametrize(
    "result",
    [theirs(), {"roots": [{"uri": "https://x.example"}]}, {}, None, theirs("/gone"), 7],
)
def test_an_answer_that_is_of_no_use_is_as_good_as_none(result: object) -> None:
    desk = Desk(API, WEB, here=b"/src/web")
    desk.shake_hands(HAS_ROOTS)
    desk.client(reply(asked(desk), result))
    assert desk.list_roots() == ["/src/web", "/src/api"]


@pytest.mark.parametrize("result", [theirs(), {"roots": [{"uri": "https://x.example"}]}, None])
def test_a_client_that_closes_its_last_folder_opens_no_other(result: object) -> None:
    desk = Desk(API, WEB, here=b"/src/web")
    desk.shake_hands(HAS_ROOTS)
    desk.client(reply(asked(desk), theirs("/src/api")))
    assert desk.list_roots() == ["/src/api"]
    desk.client(notice(CHANGED))
    desk.client(reply(asked(desk), result))
    desk.to_server()
    assert desk.list_roots(1) == [NOWHERE.decode()]


def test_by_default_the_clients_folders_narrow_nothing_and_those_not_approved_are_noted() -> None:
    desk = Desk(API, WEB, use=ClientRootsPolicy.REPORT)
    desk.shake_hands(HAS_ROOTS)
    assert desk.list_roots() == ["/src/api", "/src/web"], "nothing waits for the client"
    desk.client(reply(asked(desk), theirs("/src/api", "/src/new")))
    assert desk.list_roots(1) == ["/src/api", "/src/web"]
    assert desk.out.proposals == [b"/src/new"]


def test_a_folder_that_another_one_or_a_link_replaced_is_not_sent_again() -> None:
    desk = Desk(API, WEB)
    desk.shake_hands(HAS_ROOTS)
    desk.client(reply(asked(desk), theirs("/src/api/sub")))
    assert desk.list_roots() == ["/src/api/sub"]
    desk.disk.links[b"/src/api/sub"] = b"/etc"
    assert desk.list_roots(1) == [NOWHERE.decode()]
    assert desk.out.reported_roots == ()
    del desk.disk.links[b"/src/api/sub"]
    desk.disk.replaced[b"/src/api/sub"] += 1
    assert desk.list_roots(2) == [NOWHERE.decode()]
    desk.client(notice(CHANGED))
    desk.client(reply(asked(desk), theirs("/src/api/sub")))
    assert desk.list_roots(3) == ["/src/api/sub"], "the client has opened the new folder"


def test_a_root_that_the_daemon_has_verified_anew_is_sent_again() -> None:
    desk = Desk(API, WEB, use=ClientRootsPolicy.OVERRIDE)
    desk.shake_hands()
    assert desk.list_roots() == ["/src/api", "/src/web"]
    desk.disk.replaced[b"/src/api"] += 1
    assert desk.list_roots(1) == ["/src/api", "/src/web"], "each answer follows a verification"


def test_a_server_that_is_started_again_is_not_given_a_folder_that_was_replaced() -> None:
    desk = Desk(API, WEB, words=("server", "{roots}"))
    desk.disk.replaced[b"/src/web"] += 1
    assert desk.session.start().words == ("server", "/src/api")


@pytest.mark.parametrize("inside", ["/.git", "/.git/hooks", "/sub/.GIT/worktrees"])
def test_a_clients_folder_inside_git_data_is_never_sent(inside: str) -> None:
    desk = Desk(API)
    desk.shake_hands(HAS_ROOTS)
    desk.client(reply(asked(desk), theirs(f"/src/api{inside}")))
    assert desk.list_roots() == [NOWHERE.decode()]


def test_a_client_that_declares_roots_and_refuses_them_is_not_minded() -> None:
    desk = Desk(API, WEB)
    desk.shake_hands(HAS_ROOTS)
    desk.client(fault(asked(desk), -32601))
    assert desk.to_server() == [], "the answer was ours"
    assert desk.list_roots() == ["/src/api", "/src/web"]


def test_a_client_that_never_answers_is_waited_for_a_moment_and_its_calls_come_through() -> None:
    desk = Desk(API, WEB)
    desk.shake_hands(HAS_ROOTS)
    desk.server(request(0, "roots/list"))
    desk.client(call(1))
    desk.wait(0.9)
    assert desk.to_server() == []
    desk.wait(0.3)
    answer, passed = desk.to_server()
    assert paths(answer["result"]) == ["/src/api", "/src/web"]
    assert passed["id"] == 1


def test_one_that_answers_late_narrows_what_the_server_has() -> None:
    desk = Desk(API, WEB)
    desk.shake_hands(HAS_ROOTS)
    question = asked(desk)
    desk.wait(2.0)
    assert desk.list_roots() == ["/src/api", "/src/web"]
    desk.client(reply(question, theirs("/src/api")))
    assert [each["method"] for each in desk.to_server()] == [CHANGED]
    assert desk.list_roots(1) == ["/src/api"]


def test_a_client_whose_folders_change_is_asked_again_and_the_server_told() -> None:
    desk = Desk(API, WEB)
    desk.shake_hands(HAS_ROOTS)
    first = asked(desk)
    desk.client(reply(first, theirs("/src/api")))
    assert desk.list_roots() == ["/src/api"]
    desk.client(notice(CHANGED))
    assert desk.to_server() == [], "the client's own change is nothing to the server"
    second = asked(desk)
    desk.client(reply(first, theirs("/src/docs")))
    assert desk.to_server() == [], "an answer to an old question"
    desk.client(reply(second, theirs("/src/web")))
    assert [each["method"] for each in desk.to_server()] == [CHANGED]
    assert desk.list_roots(1) == ["/src/web"]


def test_a_client_without_roots_is_not_asked_whatever_it_notifies() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.client(notice(CHANGED))
    assert desk.to_client() == []
    assert desk.to_server() == []


@pytest.mark.parametrize("result", [theirs(), theirs("/elsewhere")])
def test_whoever_insists_on_the_clients_folders_gets_no_others(result: object) -> None:
    desk = Desk(API, use=ClientRootsPolicy.NARROW)
    desk.shake_hands(HAS_ROOTS)
    desk.client(reply(asked(desk), result))
    assert desk.list_roots() == [NOWHERE.decode()]


def test_a_folder_outside_every_root_is_made_known_once_and_told_when_it_is_approved() -> None:
    desk = Desk(API)
    desk.shake_hands(HAS_ROOTS)
    desk.client(reply(asked(desk), theirs("/src/docs", "/src")))
    assert desk.out.proposals == [b"/src/docs"]
    assert desk.list_roots() == ["/src/api"]
    desk.approve(API, WEB)
    assert desk.out.proposals == [b"/src/docs"]
    desk.to_server()
    desk.list_roots(1)
    desk.approve(API, DOCS)
    desk.to_server()
    assert desk.list_roots(2) == ["/src/docs", "/src/api"]


def test_overriding_makes_nothing_known() -> None:
    desk = Desk(API, use=ClientRootsPolicy.OVERRIDE)
    desk.shake_hands(HAS_ROOTS)
    assert desk.list_roots() == ["/src/api"]
    assert desk.out.proposals == []


def test_the_first_answer_is_complete_whatever_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a planted fault, a provider that does not wait, the client's folders come too late."""
    monkeypatch.setattr(RootsProvider, "ask_client", lambda *_, **__: None)
    desk = Desk(API, WEB)
    desk.shake_hands(HAS_ROOTS)
    assert desk.list_roots() == ["/src/api", "/src/web"]


def test_a_server_that_asks_often_costs_the_daemon_one_question_at_a_time() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.is_daemon_there = False
    desk.server(*(request(number, "roots/list") for number in range(2_000)))
    assert desk.out.roots_queries == 1
    assert desk.session.is_flooded
    desk.is_daemon_there = True
    desk.client()
    assert [each["id"] for each in desk.to_server()] == list(range(2_000))
    assert not desk.session.is_flooded


def test_a_server_that_does_not_read_is_not_answered_on() -> None:
    desk = Desk(*(WEB._replace(path=b"/src/%d" % number) for number in range(2_000)))
    desk.shake_hands()
    desk.server(*(request(number, "roots/list") for number in range(100)))
    said = len(desk.out.to_server)
    assert 1 << 20 <= said < 2 << 20
    answered = len(desk.to_server())
    while answered < 100:
        desk.session.output_written()
        desk.client()
        answered += len(desk.to_server())
    assert answered == 100
