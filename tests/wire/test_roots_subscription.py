"""The conversation of `rootsd run` with one daemon after another."""

from __future__ import annotations

import json

import pytest

from rootsd.core.errors import RootsdError
from rootsd.proxy.run.roots import RootFolder, parse_daemon_roots
from rootsd.wire.hello import Hello, MoveResult, ResumeState, ScopeRefused, WorkFolders
from rootsd.wire.requested_scope import RequestedScope
from rootsd.wire.roots_subscription import RootsSubscription, RootsUpdate
from support.bridges import Message, fault, notice, reply

API = RootFolder(b"/src/api", "api")
LISTED = {
    "roots": [{"uri": "file:///src/api", "name": "api", "_meta": {"rootsd/access": "read-write"}}]
}
CHANGED = notice("notifications/roots/list_changed")


def subscribed(greeting: Hello) -> RootsSubscription[RootFolder]:
    return RootsSubscription(greeting, parse_daemon_roots)


def said(data: bytes) -> list[Message]:
    return [json.loads(line) for line in data.splitlines()]


def greeted(subscription: RootsSubscription[RootFolder]) -> Message:
    """Connect a daemon, answer its hello, and return its first query."""
    hello, question = said(subscription.connected())
    assert hello["method"] == "rootsd/hello"
    assert subscription.take(reply(hello["id"], {})) == (None, b"")
    return question


def test_a_daemon_is_queried_at_once_and_after_each_notification() -> None:
    subscription = subscribed(Hello(client="x", scope=RequestedScope(names=("api",))))
    assert not subscription.useful
    question = greeted(subscription)
    assert subscription.useful
    assert question["method"] == "roots/list"
    assert subscription.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    nothing, asked = subscription.take(CHANGED)
    assert nothing is None
    (again,) = said(asked)
    assert subscription.take(reply(again["id"], {"roots": []})) == (RootsUpdate((), 0), b"")


def test_each_request_is_answered_by_its_own_query() -> None:
    subscription = subscribed(Hello())
    first = greeted(subscription)
    wish = said(subscription.query())[0]
    assert subscription.take(reply(first["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    assert subscription.take(reply(wish["id"], LISTED)) == (RootsUpdate((API,), 1), b"")
    assert subscription.take(reply(wish["id"], LISTED)) == (None, b""), "answered already"


def test_roots_are_outdated_until_the_response_to_a_change() -> None:
    subscription = subscribed(Hello())
    question = greeted(subscription)
    assert not subscription.is_outdated, "nothing is known that could be wrong"
    subscription.take(reply(question["id"], LISTED))
    (first,) = said(subscription.take(CHANGED)[1])
    assert subscription.is_outdated
    (second,) = said(subscription.take(CHANGED)[1])
    assert subscription.take(reply(first["id"], LISTED)) == (
        RootsUpdate((API,), 0, is_current=False),
        b"",
    )
    assert subscription.is_outdated, "it was asked before the second news came"
    assert subscription.take(reply(second["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    assert not subscription.is_outdated


def test_roots_are_outdated_after_a_move_also_if_there_were_none() -> None:
    subscription = subscribed(Hello())
    question = greeted(subscription)
    subscription.take(reply(question["id"], {"roots": []}))
    (move,) = said(subscription.move(WorkFolders(("/src/api",))))
    assert not subscription.is_outdated
    outcome, query = subscription.take(reply(move["id"], {"outside": []}))
    assert outcome == MoveResult(())
    assert subscription.is_outdated
    subscription.take(reply(said(query)[0]["id"], LISTED))
    assert not subscription.is_outdated


def test_the_response_to_a_later_query_is_current_too() -> None:
    subscription = subscribed(Hello())
    question = greeted(subscription)
    subscription.take(reply(question["id"], LISTED))
    (after_news,) = said(subscription.take(CHANGED)[1])
    (wish,) = said(subscription.query())
    subscription.take(reply(after_news["id"], LISTED))
    assert subscription.take(reply(wish["id"], LISTED)) == (RootsUpdate((API,), 1), b"")


def test_roots_are_outdated_after_a_loss_until_an_update_or_give_up() -> None:
    subscription = subscribed(Hello())
    question = greeted(subscription)
    subscription.connection_lost()
    assert not subscription.is_outdated, "nothing was told"
    question = greeted(subscription)
    subscription.take(reply(question["id"], LISTED))
    subscription.connection_lost()
    assert subscription.is_outdated
    question = greeted(subscription)
    assert subscription.is_outdated
    assert subscription.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    subscription.connection_lost()
    assert subscription.give_up().is_current
    assert not subscription.is_outdated


def test_an_error_of_the_daemon_means_no_roots() -> None:
    subscription = subscribed(Hello())
    question = greeted(subscription)
    assert subscription.take(fault(question["id"], -32603)) == (
        RootsUpdate((), 0, is_known=False),
        b"",
    )


def test_requests_survive_the_loss_of_a_daemon() -> None:
    subscription = subscribed(Hello())
    greeted(subscription)
    subscription.query()
    subscription.query()
    subscription.connection_lost()
    subscription.query_later()
    question = greeted(subscription)
    assert subscription.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 3), b"")


def test_giving_up_answers_requests_without_roots() -> None:
    subscription = subscribed(Hello())
    subscription.query_later()
    assert subscription.give_up() == RootsUpdate((), 1, is_known=False)
    assert subscription.give_up() == RootsUpdate((), 0, is_known=False)
    question = greeted(subscription)
    subscription.query()
    assert subscription.awaits_response
    assert subscription.give_up() == RootsUpdate((), 1, is_known=False)
    assert subscription.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 0), b"")


def test_a_daemon_without_hello_is_used_unless_the_scope_narrows() -> None:
    subscription = subscribed(Hello(client="x"))
    hello, question = said(subscription.connected())
    assert subscription.take(fault(hello["id"], -32601)) == (None, b"")
    assert subscription.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    narrow = subscribed(Hello(scope=RequestedScope(tags=("work",))))
    hello, _ = said(narrow.connected())
    with pytest.raises(ScopeRefused, match="too old"):
        narrow.take(fault(hello["id"], -32601))


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", notice("x"), reply(99, LISTED), b"\xff"])
def test_other_lines_are_ignored(line: bytes) -> None:
    subscription = subscribed(Hello())
    greeted(subscription)
    assert subscription.take(line) == (None, b"")


def test_the_roots_of_the_server_are_reported_to_every_daemon() -> None:
    subscription = subscribed(Hello())
    (told,) = said(subscription.report(["api", "web"]))
    assert told["method"] == "rootsd/told"
    assert told["params"] == {"roots": 2, "names": ["api", "web"]}
    assert said(subscription.connected())[-1] == told


def test_a_move_goes_to_the_next_daemon_until_one_has_answered() -> None:
    subscription = subscribed(Hello(scope=RequestedScope(workspace="/src/api")))
    greeted(subscription)
    (move,) = said(subscription.move(WorkFolders(("/src/web",))))
    assert (move["method"], move["params"]) == ("rootsd/move", {"folders": ["/src/web"]})
    subscription.connection_lost()
    _, again, _ = said(subscription.connected())
    assert again["params"] == move["params"]
    start = {"anchor": "/src/web", "approvals": 3, "added": []}
    moved, asked = subscription.take(reply(again["id"], {"outside": [], "start": start}))
    assert moved == MoveResult((), ResumeState("/src/web", 3))
    assert said(asked)[0]["method"] == "roots/list"
    hello, question = said(subscription.connected())
    assert (hello["params"]["start"], question["method"]) == (start, "roots/list")


@pytest.mark.parametrize("answer", [{}, {"outside": 7}, None])
def test_an_answer_to_a_move_that_makes_no_sense_is_an_error(answer: object) -> None:
    subscription = subscribed(Hello())
    greeted(subscription)
    (move,) = said(subscription.move(WorkFolders(("/src/web",))))
    moved, _ = subscription.take(reply(move["id"], answer))
    assert isinstance(moved, RootsdError) == (answer != {})
