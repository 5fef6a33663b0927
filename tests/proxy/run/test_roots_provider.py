"""Clients that have roots of their own, or declare them."""

from __future__ import annotations

from typing import Any

import pytest

from rootsd.proxy.client_roots import ClientRoots
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.root_policies import AccessPolicy, ClientRootsPolicy
from rootsd.proxy.run.roots import RootsFilter, RootsProvider
from rootsd.wire.roots_subscription import RootsUpdate
from support.bridges import fault, notice, reply, request
from support.run_session_harness import (
    API,
    DOCS,
    NOWHERE,
    WEB,
    FakeDisk,
    SessionHarness,
    call,
    paths,
)

CHANGED = "notifications/roots/list_changed"
HAS_ROOTS = {"roots": {"listChanged": True}}


def theirs(*folders: str) -> dict[str, Any]:
    return {"roots": [{"uri": f"file://{path}", "name": "x"} for path in folders]}


def asked(harness: SessionHarness) -> object:
    """Return the id of the roots request that the client got."""
    questions = [each for each in harness.to_client() if each.get("method") == "roots/list"]
    (question,) = questions
    return question["id"]


def asked_again(harness: SessionHarness) -> object:
    """Return the id of the roots request that follows a change of the client's folders."""
    harness.wait(0.2)
    return asked(harness)


def test_a_roots_request_waits_for_the_clients_folders() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands(HAS_ROOTS)
    harness.server(request(0, "roots/list"))
    assert harness.to_server() == []
    harness.client(reply(asked(harness), theirs("/src/web", "/src/api/deep")))
    (answer,) = harness.to_server()
    assert paths(answer["result"]) == ["/src/web", "/src/api/deep"]


def test_a_call_waits_for_the_clients_folders_too() -> None:
    harness = SessionHarness(API, WEB, words=("server", "{roots}"), profile=ServerProfile.SILENT)
    harness.shake_hands(HAS_ROOTS)
    question = asked(harness)
    harness.client(call(1))
    assert harness.to_server() == []
    harness.client(reply(question, theirs("/src/web")))
    assert harness.another().words == ("server", "/src/web")
    (again, _) = (harness.to_server(), harness.to_client())
    harness.server(reply(again[0]["id"], {}))
    assert [each["id"] for each in harness.to_server() if "id" in each] == [1]


@pytest.mark.parametrize(
    "result", [theirs(), {"roots": [{"uri": "https://x.example"}]}, {}, None, theirs("/gone"), 7]
)
def test_a_useless_answer_of_the_client_counts_as_none(result: object) -> None:
    harness = SessionHarness(API, WEB, here=b"/src/web")
    harness.shake_hands(HAS_ROOTS)
    harness.client(reply(asked(harness), result))
    assert harness.list_roots() == ["/src/web", "/src/api"]


@pytest.mark.parametrize("result", [theirs(), {"roots": [{"uri": "https://x.example"}]}, None])
def test_closing_the_last_folder_does_not_widen_the_roots(result: object) -> None:
    harness = SessionHarness(API, WEB, here=b"/src/web")
    harness.shake_hands(HAS_ROOTS)
    harness.client(reply(asked(harness), theirs("/src/api")))
    assert harness.list_roots() == ["/src/api"]
    harness.client(notice(CHANGED))
    harness.client(reply(asked_again(harness), result))
    harness.to_server()
    assert harness.list_roots(1) == [NOWHERE.decode()]


def test_by_default_client_folders_are_only_proposed() -> None:
    harness = SessionHarness(API, WEB, use=ClientRootsPolicy.REPORT)
    harness.shake_hands(HAS_ROOTS)
    assert harness.list_roots() == ["/src/api", "/src/web"], "nothing waits for the client"
    harness.client(reply(asked(harness), theirs("/src/api", "/src/new")))
    assert harness.list_roots(1) == ["/src/api", "/src/web"]
    assert harness.out.proposals == [b"/src/new"]


def test_a_replaced_folder_is_not_sent_again() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands(HAS_ROOTS)
    harness.client(reply(asked(harness), theirs("/src/api/sub")))
    assert harness.list_roots() == ["/src/api/sub"]
    harness.disk.links[b"/src/api/sub"] = b"/etc"
    assert harness.list_roots(1) == [NOWHERE.decode()]
    assert harness.out.reported_roots == ()
    del harness.disk.links[b"/src/api/sub"]
    harness.disk.replaced[b"/src/api/sub"] += 1
    assert harness.list_roots(2) == [NOWHERE.decode()]
    harness.client(notice(CHANGED))
    harness.client(reply(asked_again(harness), theirs("/src/api/sub")))
    assert harness.list_roots(3) == ["/src/api/sub"], "the client has opened the new folder"


def test_a_root_is_sent_again_after_the_daemon_verified_it() -> None:
    harness = SessionHarness(API, WEB, use=ClientRootsPolicy.REPORT)
    harness.shake_hands()
    assert harness.list_roots() == ["/src/api", "/src/web"]
    harness.disk.replaced[b"/src/api"] += 1
    assert harness.list_roots(1) == ["/src/api", "/src/web"], "each answer follows a verification"


def test_a_restarted_server_does_not_get_a_replaced_folder() -> None:
    harness = SessionHarness(API, WEB, words=("server", "{roots}"))
    harness.disk.replaced[b"/src/web"] += 1
    assert harness.session.start().words == ("server", "/src/api")


@pytest.mark.parametrize("inside", ["/.git", "/.git/hooks", "/sub/.GIT/worktrees"])
def test_a_clients_folder_inside_git_data_is_never_sent(inside: str) -> None:
    harness = SessionHarness(API)
    harness.shake_hands(HAS_ROOTS)
    harness.client(reply(asked(harness), theirs(f"/src/api{inside}")))
    assert harness.list_roots() == [NOWHERE.decode()]


def test_a_client_may_declare_roots_and_refuse_them() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands(HAS_ROOTS)
    harness.client(fault(asked(harness), -32601))
    assert harness.to_server() == [], "the answer was ours"
    assert harness.list_roots() == ["/src/api", "/src/web"]


def test_a_silent_client_delays_calls_only_briefly_and_its_late_answer_narrows_the_roots() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands(HAS_ROOTS)
    question = asked(harness)
    harness.server(request(0, "roots/list"))
    harness.client(call(1))
    harness.wait(0.9)
    assert harness.to_server() == []
    harness.wait(0.3)
    answer, passed = harness.to_server()
    assert paths(answer["result"]) == ["/src/api", "/src/web"]
    assert passed["id"] == 1
    harness.client(reply(question, theirs("/src/api")))
    assert [each["method"] for each in harness.to_server()] == [CHANGED]
    assert harness.list_roots(1) == ["/src/api"]


def test_changed_client_folders_are_requested_and_the_server_is_notified() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands(HAS_ROOTS)
    first = asked(harness)
    harness.client(reply(first, theirs("/src/api")))
    assert harness.list_roots() == ["/src/api"]
    harness.client(notice(CHANGED))
    assert harness.to_server() == [], "the client's own change is nothing to the server"
    second = asked_again(harness)
    harness.client(reply(first, theirs("/src/docs")))
    assert harness.to_server() == [], "an answer to an old question"
    harness.client(reply(second, theirs("/src/web")))
    assert [each["method"] for each in harness.to_server()] == [CHANGED]
    assert harness.list_roots(1) == ["/src/web"]


def test_many_changes_of_the_client_make_one_question() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands(HAS_ROOTS)
    first = asked(harness)
    harness.client(*[notice(CHANGED)] * 2_000)
    harness.wait(0.2)
    assert harness.to_client() == [], "it has not answered the first question"
    harness.client(reply(first, theirs("/src/api")))
    second = asked_again(harness)
    harness.client(*[notice(CHANGED)] * 2_000)
    harness.client(reply(second, theirs("/src/web")))
    third = asked_again(harness)
    harness.client(reply(third, theirs("/src/api")))
    harness.wait(5.0)
    assert harness.to_client() == []
    assert harness.list_roots() == ["/src/api"]


def test_a_client_that_never_answers_is_asked_again_after_a_change() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands(HAS_ROOTS)
    asked(harness)
    harness.client(notice(CHANGED))
    harness.wait(0.9)
    assert harness.to_client() == []
    harness.wait(0.3)
    assert asked(harness)


def test_this_test_detects_a_question_for_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClientRoots, "_ask_at", property(lambda client: client._changed_at))
    with pytest.raises((AssertionError, ValueError)):
        test_many_changes_of_the_client_make_one_question()


def test_a_client_without_roots_is_never_asked() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.client(notice(CHANGED))
    assert harness.to_client() == []
    assert harness.to_server() == []


def test_a_folder_outside_is_proposed_once_and_sent_after_its_approval() -> None:
    harness = SessionHarness(API)
    harness.shake_hands(HAS_ROOTS)
    harness.client(reply(asked(harness), theirs("/src/docs", "/src")))
    assert harness.out.proposals == [b"/src/docs"]
    assert harness.list_roots() == ["/src/api"]
    harness.approve(API, WEB)
    assert harness.out.proposals == [b"/src/docs"]
    harness.to_server()
    harness.list_roots(1)
    harness.approve(API, DOCS)
    harness.to_server()
    assert harness.list_roots(2) == ["/src/docs", "/src/api"]


def parent_of_everything() -> SessionHarness:
    """Return a session whose client has named the folder above all roots before the daemon has
    answered.
    """
    harness = SessionHarness(use=ClientRootsPolicy.REPORT)
    harness.session.roots_updated(RootsUpdate((), 0, is_known=False), harness.now)
    harness.shake_hands(HAS_ROOTS)
    harness.client(reply(asked(harness), theirs("/src", "/elsewhere")))
    return harness


def test_a_clients_folder_is_proposed_only_after_the_daemon_has_answered() -> None:
    harness = parent_of_everything()
    assert harness.out.proposals == []
    harness.approve(API)
    assert harness.out.proposals == [b"/elsewhere"], "the other one contains a root"


def test_nothing_is_known_at_the_start() -> None:
    out, report = Outbox(), RootsFilter(ClientRootsPolicy.REPORT, AccessPolicy.WRITABLE, None)
    provider = RootsProvider(report, out, FakeDisk(), None)
    provider.set_client_roots(theirs("/src", "/elsewhere"))
    assert out.proposals == []
    provider.set_approved((API,))
    assert out.proposals == [b"/elsewhere"]


def test_this_test_detects_a_proposal_that_comes_too_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RootsProvider, "forget_approved", lambda each: each.set_approved(()))
    assert b"/src" in parent_of_everything().out.proposals


def test_a_daemon_that_is_lost_makes_no_folder_one_to_propose() -> None:
    harness = parent_of_everything()
    harness.approve(API)
    harness.out.proposals.clear()
    harness.session.roots_updated(RootsUpdate((), 0, is_known=False), harness.now)
    assert harness.out.proposals == []


def test_the_first_answer_is_complete_despite_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a planted fault, a provider that does not wait, the client's folders come too late."""
    monkeypatch.setattr(RootsProvider, "ask_client", lambda *_, **__: None)
    harness = SessionHarness(API, WEB)
    harness.shake_hands(HAS_ROOTS)
    assert harness.list_roots() == ["/src/api", "/src/web"]


def test_many_roots_requests_share_one_query_at_a_time() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.is_daemon_there = False
    harness.server(*(request(number, "roots/list") for number in range(2_000)))
    assert harness.out.roots_queries == 1
    assert harness.session.is_flooded
    harness.is_daemon_there = True
    harness.client()
    assert [each["id"] for each in harness.to_server()] == list(range(2_000))
    assert not harness.session.is_flooded


def test_a_server_that_does_not_read_gets_no_more_answers() -> None:
    harness = SessionHarness(*(WEB._replace(path=b"/src/%d" % number) for number in range(2_000)))
    harness.shake_hands()
    harness.server(*(request(number, "roots/list") for number in range(100)))
    said = len(harness.out.to_server)
    assert 1 << 20 <= said < 2 << 20
    answered = len(harness.to_server())
    while answered < 100:
        harness.session.output_written()
        harness.client()
        answered += len(harness.to_server())
    assert answered == 100
