"""The feed of `rootsd run` with daemons that come and go."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable

import pytest

from rootsd.link import daemon_link, reconnect, roots_feed
from rootsd.link.daemon_link import AutostartProcess
from rootsd.link.roots_feed import RootsFeed
from rootsd.proxy.run.refusal import report_error
from rootsd.proxy.run.roots import RootFolder, parse_daemon_roots
from rootsd.wire.hello import Hello
from rootsd.wire.requested_scope import RequestedScope
from rootsd.wire.roots_subscription import RootsUpdate
from support.bridges import HANG_GUARD_S, Daemon, daemons, fault, notice, reply

LISTED = {
    "roots": [{"uri": "file:///src/api", "name": "api", "_meta": {"rootsd/access": "read-write"}}]
}
Update = RootsUpdate[RootFolder]
NONE: dict[str, list[str]] = {"roots": []}


@pytest.fixture
def told() -> list[Update]:
    return []


def a_feed(
    greeting: Hello, told: list[Update], on_outdated: Callable[[], None] | None = None
) -> RootsFeed[RootFolder]:
    return RootsFeed(greeting, parse_daemon_roots, told.append, report_error, on_outdated)


def turn_until(feed: RootsFeed[RootFolder], count: int, told: list[Update]) -> list[Update]:
    """Run the feed until it has sent `count` updates, and return them."""
    deadline = time.monotonic() + HANG_GUARD_S
    while len(told) < count:
        assert time.monotonic() < deadline, f"only told {told}"
        turn(feed)
    return told


def turn(feed: RootsFeed[RootFolder]) -> None:
    """Wait for what the feed waits for, and let it work."""
    poll = select.poll()
    for descriptor, wanted in feed.interest():
        poll.register(descriptor, wanted)
    poll.poll(max(0.0, min(feed.deadline - time.monotonic(), 1.0)) * 1000)
    feed.attend()


def names(told: list[Update]) -> list[list[str]]:
    return [[folder.name for folder in each.roots] for each in told]


def greet(daemon: Daemon) -> None:
    daemon.say(reply(daemon.hear()["id"], {}))


def answer(daemon: Daemon, result: object) -> None:
    asked = daemon.hear()
    assert asked["method"] == "roots/list"
    daemon.say(reply(asked["id"], result))


def test_each_update_of_the_daemon_is_passed_on(told: list[Update]) -> None:
    def tells(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        daemon.say(notice("notifications/roots/list_changed"))
        answer(daemon, NONE)
        answer(daemon, LISTED)
        daemon.rest()

    with daemons(tells):
        feed = a_feed(Hello(client="x"), told)
        assert names(turn_until(feed, 2, told)) == [["api"], []]
        feed.query()
        turn_until(feed, 3, told)
        assert [each.requests for each in told] == [0, 0, 1]
        feed.close()


def test_roots_are_outdated_from_a_notification_to_the_next_update(
    told: list[Update],
) -> None:
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
        feed = a_feed(Hello(), told, lambda: doubts.append(len(told)))
        turn_until(feed, 3, told)
    assert [each.is_current for each in told] == [True, False, True]
    turn_until(feed, 4, told)  # the daemon is gone, and nobody knows what holds
    assert set(doubts) == {1, 3}
    assert told[-1] == RootsUpdate((), 0, is_known=False)
    feed.close()


def test_queries_survive_the_loss_of_a_daemon_and_a_series_of_crashes_is_given_up(
    told: list[Update], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        assert daemon.hear()["method"] == "roots/list"

    def lives(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, NONE)
        answer(daemon, LISTED)

    def ends(daemon: Daemon) -> None:
        daemon.hear()

    with daemons(dies, lives, *[ends] * 6):
        feed = a_feed(Hello(), told)
        turn_until(feed, 1, told)
        feed.query()
        assert names(turn_until(feed, 2, told)) == [["api"], []]
        assert told[1].requests == 1
        feed.query()
        assert names(turn_until(feed, 3, told)) == [["api"], [], ["api"]]
        monkeypatch.setattr(roots_feed, "GRACE_S", 0.2)
        assert names(turn_until(feed, 4, told))[3] == []
        while feed.link.policy._losses < 6:
            turn(feed)
        feed.close()


def test_nothing_is_approved_if_no_daemon_comes_back(
    told: list[Update], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dies(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)

    with daemons(dies):
        feed = a_feed(Hello(), told)
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


def test_a_hung_daemon_counts_as_lost_until_it_answers(
    told: list[Update], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        late = daemon.hear()
        assert daemon.hear()["method"] == "go on"
        daemon.say(reply(late["id"], LISTED))
        daemon.rest()

    with daemons(hangs):
        feed = a_feed(Hello(), told)
        turn_until(feed, 1, told)
        monkeypatch.setattr(roots_feed, "GRACE_S", 0.2)
        feed.query()
        assert turn_until(feed, 2, told)[1] == RootsUpdate((), 1, is_known=False)
        for number in range(3, 6):
            feed.query()
            assert told[2:] == [RootsUpdate((), 1, is_known=False)] * (number - 2), (
                "it is waited for once"
            )
        assert feed.link.connection
        feed.link.connection.sendall(notice("go on"))
        turn_until(feed, 6, told)
        assert (names(told)[5], told[5].requests) == (["api"], 0)
        assert feed.deadline == math.inf
        feed.close()


def test_a_daemon_that_cannot_narrow_is_refused(
    told: list[Update], capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(daemon: Daemon) -> None:
        hello = daemon.hear()
        daemon.say(fault(hello["id"], -32601), reply(daemon.hear()["id"], LISTED))

    with daemons(refuses):
        feed = a_feed(Hello(scope=RequestedScope(names=("api",))), told)
        assert turn_until(feed, 1, told) == [RootsUpdate((), 0, is_known=False)]
        assert "cannot narrow" in capsys.readouterr().err
        assert list(feed.interest()) == []
        feed.query()
        assert told == [RootsUpdate((), 0, is_known=False), RootsUpdate((), 1, is_known=False)]


def test_a_folder_is_proposed_to_a_connected_daemon(told: list[Update]) -> None:
    seen: list[str] = []

    def listens(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        seen.append(daemon.hear()["params"]["path"])

    feed = a_feed(Hello(), told)
    feed.propose("/early")
    with daemons(listens):
        turn_until(feed, 1, told)
        feed.propose("/src/new")
        feed.close()
    assert seen == ["/src/new"]


def test_without_a_daemon_it_gives_up_at_once_and_finds_a_later_one(
    told: list[Update], capsys: pytest.CaptureFixture[str]
) -> None:
    begin = time.monotonic()
    feed = a_feed(Hello(), told)
    feed.query()
    assert turn_until(feed, 1, told) == [RootsUpdate((), 1, is_known=False)]
    assert time.monotonic() - begin < reconnect.GRACE_S
    assert "rootsd up" in capsys.readouterr().err

    def comes(daemon: Daemon) -> None:
        greet(daemon)
        answer(daemon, LISTED)
        daemon.rest()

    with daemons(comes):
        assert names(turn_until(feed, 2, told)) == [[], ["api"]]
        feed.close()


def test_a_start_that_never_ends_is_given_up(
    told: list[Update], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnect, "GRACE_S", 0.2)
    monkeypatch.setattr(daemon_link, "AutostartProcess", _Endless)
    feed = a_feed(Hello(), told)
    assert turn_until(feed, 1, told) == [RootsUpdate((), 0, is_known=False)]


class _Endless(AutostartProcess):
    def has_ended(self) -> bool:
        super().has_ended()
        return False
