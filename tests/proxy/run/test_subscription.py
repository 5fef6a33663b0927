"""The conversation of a relay with daemons, one after another."""

from __future__ import annotations

import json

import pytest

from rootsd.proxy.run.roots import RootFolder
from rootsd.proxy.run.subscription import RootsSubscription, RootsUpdate
from rootsd.wire.hello import Hello, RequestedScope, ScopeRefused
from support.bridges import Message, fault, notice, reply

API = RootFolder(b"/src/api", "api")
LISTED = {
    "roots": [{"uri": "file:///src/api", "name": "api", "_meta": {"rootsd/access": "read-write"}}]
}
CHANGED = notice("notifications/roots/list_changed")


def said(data: bytes) -> list[Message]:
    return [json.loads(line) for line in data.splitlines()]


def greeted(following: RootsSubscription) -> Message:
    """A daemon comes and takes the hello; its first question."""
    hello, question = said(following.connected())
    assert hello["method"] == "rootsd/hello"
    assert following.take(reply(hello["id"], {})) == (None, b"")
    return question


def test_a_daemon_is_asked_at_once_and_whenever_it_says_that_there_is_news() -> None:
    following = RootsSubscription(Hello(client="x", scope=RequestedScope(names=("api",))))
    assert not following.useful
    question = greeted(following)
    assert following.useful
    assert question["method"] == "roots/list"
    assert following.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    nothing, asked = following.take(CHANGED)
    assert nothing is None
    (again,) = said(asked)
    assert following.take(reply(again["id"], {"roots": []})) == (RootsUpdate((), 0), b"")


def test_each_wish_is_granted_by_the_answer_to_its_own_question() -> None:
    following = RootsSubscription(Hello())
    first = greeted(following)
    wish = said(following.query())[0]
    assert following.take(reply(first["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    assert following.take(reply(wish["id"], LISTED)) == (RootsUpdate((API,), 1), b"")
    assert following.take(reply(wish["id"], LISTED)) == (None, b""), "answered already"


def test_what_was_told_is_in_doubt_from_the_news_of_a_change_to_its_answer() -> None:
    following = RootsSubscription(Hello())
    question = greeted(following)
    assert not following.is_outdated, "nothing is known that could be wrong"
    following.take(reply(question["id"], LISTED))
    (first,) = said(following.take(CHANGED)[1])
    assert following.is_outdated
    (second,) = said(following.take(CHANGED)[1])
    assert following.take(reply(first["id"], LISTED)) == (
        RootsUpdate((API,), 0, is_current=False),
        b"",
    )
    assert following.is_outdated, "it was asked before the second news came"
    assert following.take(reply(second["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    assert not following.is_outdated


def test_an_answer_to_a_later_question_ends_the_doubt_too() -> None:
    following = RootsSubscription(Hello())
    question = greeted(following)
    following.take(reply(question["id"], LISTED))
    (after_news,) = said(following.take(CHANGED)[1])
    (wish,) = said(following.query())
    following.take(reply(after_news["id"], LISTED))
    assert following.take(reply(wish["id"], LISTED)) == (RootsUpdate((API,), 1), b"")


def test_a_daemon_that_is_lost_leaves_doubt_until_the_next_one_tells_or_all_is_given_up() -> None:
    following = RootsSubscription(Hello())
    question = greeted(following)
    following.connection_lost()
    assert not following.is_outdated, "nothing was told"
    question = greeted(following)
    following.take(reply(question["id"], LISTED))
    following.connection_lost()
    assert following.is_outdated
    question = greeted(following)
    assert following.is_outdated
    assert following.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    following.connection_lost()
    assert following.give_up().is_current
    assert not following.is_outdated


def test_where_the_daemon_cannot_tell_nothing_is_approved() -> None:
    following = RootsSubscription(Hello())
    question = greeted(following)
    assert following.take(fault(question["id"], -32603)) == (RootsUpdate((), 0), b"")


def test_wishes_outlive_the_daemon_that_was_asked() -> None:
    following = RootsSubscription(Hello())
    greeted(following)
    following.query()
    following.query()
    following.connection_lost()
    following.query_later()
    question = greeted(following)
    assert following.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 3), b"")


def test_without_a_daemon_wishes_are_granted_with_nothing() -> None:
    following = RootsSubscription(Hello())
    following.query_later()
    assert following.give_up() == RootsUpdate((), 1)
    assert following.give_up() == RootsUpdate((), 0)
    question = greeted(following)
    following.query()
    assert following.awaits_response
    assert following.give_up() == RootsUpdate((), 1)
    assert following.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 0), b"")


def test_a_daemon_that_does_not_know_the_hello_is_used_unless_it_would_tell_too_much() -> None:
    following = RootsSubscription(Hello(client="x"))
    hello, question = said(following.connected())
    assert following.take(fault(hello["id"], -32601)) == (None, b"")
    assert following.take(reply(question["id"], LISTED)) == (RootsUpdate((API,), 0), b"")
    narrow = RootsSubscription(Hello(scope=RequestedScope(tags=("work",))))
    hello, _ = said(narrow.connected())
    with pytest.raises(ScopeRefused, match="too old"):
        narrow.take(fault(hello["id"], -32601))


def test_a_folder_is_made_known_by_a_notice_that_older_daemons_ignore() -> None:
    (told,) = said(RootsSubscription(Hello()).propose("/src/new", "why"))
    assert "id" not in told
    assert (told["method"], told["params"]) == (
        "rootsd/proposed",
        {"path": "/src/new", "reason": "why"},
    )


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", notice("x"), reply(99, LISTED), b"\xff"])
def test_anything_else_is_nothing(line: bytes) -> None:
    following = RootsSubscription(Hello())
    greeted(following)
    assert following.take(line) == (None, b"")


def test_what_the_server_was_told_is_told_to_every_daemon() -> None:
    following = RootsSubscription(Hello())
    (told,) = said(following.report(["api", "web"]))
    assert told["method"] == "rootsd/told"
    assert told["params"] == {"roots": 2, "names": ["api", "web"]}
    assert said(following.connected())[-1] == told
