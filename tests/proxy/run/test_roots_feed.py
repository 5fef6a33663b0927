"""The relay's connection to daemons that come and go."""

from __future__ import annotations

import math
import select
import time

import pytest

from rootsd.proxy import daemon_link, reconnect
from rootsd.proxy.daemon_link import AutostartProcess
from rootsd.proxy.run import roots_feed
from rootsd.proxy.run.roots_feed import RootsFeed
from rootsd.proxy.run.subscription import RootsUpdate
from rootsd.wire.hello import Hello, RequestedScope
from support.bridges import HANG_GUARD_S, Daemon, daemons, fault, notice, reply

LISTED = {
    "roots": [{"uri": "file:///src/api", "name": "api", "_meta": {"rootsd/access": "read-write"}}]
}
NONE: dict[str, list[str]] = {"roots": []}


@pytest.fixture
def told() -> list[RootsUpdate]:
    return []


def ignored() -> None:
    """What was told may not hold any more."""


def turn_until(feed: RootsFeed, count: int, told: list[RootsUpdate]) -> list[RootsUpdate]:
    """Turn as the pump does until so much was told; what that was."""
    deadline = time.monotonic() + HANG_GUARD_S
    while len(told) < count:
        assert time.monotonic() < deadline, f"only told {told}"
        turn(feed)
    return told


def turn(feed: RootsFeed) -> None:
    """Wait for what the feed waits for, and let it attend to that."""
    poll = select.poll()
    for descriptor, wanted in feed.interest():
        poll.register(descriptor, wanted)
    poll.poll(max(0.0, min(feed.deadline - time.monotonic(), 1.0)) * 1000)
    feed.attend()


def names(told: list[RootsUpdate]) -> list[list[str]]:
    return [[folder.name for folder in each.folders] for each in told]


def greet(daemon: Daemon) -> None:
    daemon.say(reply(daemon.hear()["id"], {}))


def answer(daemon: Daemon, result: object) -> None:
    asked = daemon.hear()
    assert asked["method"] == "roots/list"
    daemon.say(reply(asked["id"], result))


def test_what_a_daemon_tells_is_told(told: list[RootsUpdate]) -> None:
    def tells(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        daemon.say(notice("notifications/roots/list_changed"))
        answer(daemon, NONE)
        answer(daemon, LISTED)
        daemon.rest()

    with daemons(tells):
        feed = RootsFeed(Hello(client="x"), told.append, ignored)
        assert names(turn_until(feed, 2, told)) == [["api"], []]
        feed.query()
        turn_until(feed, 3, told)
        assert [each.requests for each in told] == [0, 0, 1]
        feed.close()


def test_a_daemon_that_is_lost_is_followed_by_the_next_and_no_wish_is_forgotten(
    told: list[RootsUpdate],
) -> None:
    def dies(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        assert daemon.hear()["method"] == "roots/list"

    def lives(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, NONE)
        daemon.rest()

    with daemons(dies, lives):
        feed = RootsFeed(Hello(), told.append, ignored)
        turn_until(feed, 1, told)
        feed.query()
        assert names(turn_until(feed, 2, told)) == [["api"], []]
        assert told[1].requests == 1
        feed.close()


def test_news_are_doubted_before_they_are_known(told: list[RootsUpdate]) -> None:
    doubts: list[int] = []

    def tells(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        daemon.say(notice("notifications/roots/list_changed"))
        asked = daemon.hear()
        daemon.say(notice("notifications/roots/list_changed"))
        daemon.say(reply(asked["id"], LISTED))
        answer(daemon, LISTED)

    with daemons(tells):
        feed = RootsFeed(Hello(), told.append, lambda: doubts.append(len(told)))
        turn_until(feed, 3, told)
    assert [each.is_current for each in told] == [True, False, True]
    turn_until(feed, 4, told)  # the daemon is gone, and nobody knows what holds
    assert set(doubts) == {1, 3}
    assert told[-1] == RootsUpdate((), 0)
    feed.close()


def test_daemons_that_end_at_once_one_after_another_are_not_waited_for_for_ever(
    told: list[RootsUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    def tells(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)

    def ends(daemon: Daemon) -> None:
        daemon.hear()

    with daemons(tells, *[ends] * 6):
        feed = RootsFeed(Hello(), told.append, ignored)
        turn_until(feed, 1, told)
        monkeypatch.setattr(roots_feed, "GRACE_S", 0.2)
        assert names(turn_until(feed, 2, told)) == [["api"], []]
        while feed._link.policy._losses < 6:
            turn(feed)
        feed.close()


def test_where_none_comes_back_nothing_is_approved_any_more(
    told: list[RootsUpdate], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dies(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)

    with daemons(dies):
        feed = RootsFeed(Hello(), told.append, ignored)
        turn_until(feed, 1, told)
        monkeypatch.setattr(reconnect, "GRACE_S", 0.2)
    assert names(turn_until(feed, 2, told)) == [["api"], []]
    feed.query()
    assert [each.requests for each in told] == [0, 0, 1]
    deadline, said = time.monotonic() + HANG_GUARD_S, ""
    # Why there is none may be known only after the wait for it is over.
    while "rootsd up" not in said:
        assert time.monotonic() < deadline, said
        turn(feed)
        said += capsys.readouterr().err


def test_a_daemon_that_hangs_is_as_good_as_none_until_it_answers(
    told: list[RootsUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        late = daemon.hear()
        assert daemon.hear()["method"] == "go on"
        daemon.say(reply(late["id"], LISTED))
        daemon.rest()

    with daemons(hangs):
        feed = RootsFeed(Hello(), told.append, ignored)
        turn_until(feed, 1, told)
        monkeypatch.setattr(roots_feed, "GRACE_S", 0.2)
        feed.query()
        assert turn_until(feed, 2, told)[1] == RootsUpdate((), 1)
        for number in range(3, 6):
            feed.query()
            assert told[2:] == [RootsUpdate((), 1)] * (number - 2), "it is waited for once"
        assert feed._link.connection
        feed._link.connection.sendall(notice("go on"))
        turn_until(feed, 6, told)
        assert (names(told)[5], told[5].requests) == (["api"], 0)
        assert feed.deadline == math.inf
        feed.close()


def test_where_none_was_ever_started_that_is_told_at_once_and_one_that_comes_is_found(
    told: list[RootsUpdate], capsys: pytest.CaptureFixture[str]
) -> None:
    begin = time.monotonic()
    feed = RootsFeed(Hello(), told.append, ignored)
    feed.query()
    assert turn_until(feed, 1, told) == [RootsUpdate((), 1)]
    assert time.monotonic() - begin < reconnect.GRACE_S
    assert "rootsd up" in capsys.readouterr().err

    def comes(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        daemon.rest()

    with daemons(comes):
        assert names(turn_until(feed, 2, told)) == [[], ["api"]]
        feed.close()


def test_a_daemon_that_cannot_narrow_is_not_listened_to(
    told: list[RootsUpdate], capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(daemon: Daemon) -> None:
        hello = daemon.hear()
        daemon.say(fault(hello["id"], -32601), reply(daemon.hear()["id"], LISTED))

    with daemons(refuses):
        feed = RootsFeed(Hello(scope=RequestedScope(names=("api",))), told.append, ignored)
        assert turn_until(feed, 1, told) == [RootsUpdate((), 0)]
        assert "cannot narrow" in capsys.readouterr().err
        assert list(feed.interest()) == []
        feed.query()
        assert told == [RootsUpdate((), 0), RootsUpdate((), 1)]


def test_a_folder_is_proposed_to_a_daemon_that_is_there(told: list[RootsUpdate]) -> None:
    seen: list[str] = []

    def listens(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        seen.append(daemon.hear()["params"]["path"])

    feed = RootsFeed(Hello(), told.append, ignored)
    feed.propose("/early", "why")
    with daemons(listens):
        turn_until(feed, 1, told)
        feed.propose("/src/new", "why")
        feed.close()
    assert seen == ["/src/new"]


def test_starting_a_daemon_takes_no_longer_than_one_is_waited_for(
    told: list[RootsUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnect, "GRACE_S", 0.2)
    monkeypatch.setattr(daemon_link, "AutostartProcess", _Endless)
    feed = RootsFeed(Hello(), told.append, ignored)
    assert turn_until(feed, 1, told) == [RootsUpdate((), 0)]


class _Endless(AutostartProcess):
    def has_ended(self) -> bool:
        super().has_ended()
        return False
