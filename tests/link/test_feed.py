"""A subscription across daemons that come, go, and hang."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.link import feed as feed_module
from rootsd.link.feed import Feed
from rootsd.net.listener import listen
from rootsd.places.runtime_dir import find_runtime_dir
from rootsd.wire.feed import FEED_VERSION, Away, BadFeed, Changed, Connected, FeedEvent
from support.roots_publisher import RootsPublisher

HANG_GUARD_S = 30
PARAMS: dict[str, Any] = {"version": FEED_VERSION, "part": "roots", "hello": {"version": 1}}


class Followed:
    """A feed whose events are taken one by one."""

    def __init__(self) -> None:
        self.feed = Feed(PARAMS)
        self._events = deque[FeedEvent]()

    def until(self, kind: type[FeedEvent]) -> FeedEvent:
        """Return the next event of this kind, and drop those before it."""
        while True:
            if not self._events:
                self._events += self.feed.wait(HANG_GUARD_S)
            if isinstance(event := self._events.popleft(), kind):
                return event

    def until_away(self) -> RootsdError:
        """Return why no daemon can be followed."""
        away = self.until(Away)
        assert isinstance(away, Away)
        return away.why


@pytest.fixture
def followed() -> Iterator[Followed]:
    followed = Followed()
    yield followed
    followed.feed.close()


def test_a_daemon_that_comes_later_is_found_and_its_restart_survived(
    followed: Followed, rootsd_dir: Path
) -> None:
    assert isinstance(followed.until_away(), DaemonUnreachable)
    for _ in range(2):
        with RootsPublisher(rootsd_dir):
            followed.until(Connected)
            followed.until(Changed)
        followed.until(Away)


def test_the_session_continues_with_the_next_daemon(followed: Followed, rootsd_dir: Path) -> None:
    start = {"anchor": "/src/api", "approvals": 3}
    with RootsPublisher(rootsd_dir) as first:
        first.start = start
        followed.until(Connected)
    with RootsPublisher(rootsd_dir) as second:
        followed.until(Connected)
        (request,) = second.requests
        assert request["hello"] == {"version": 1, "start": start}
    assert "start" not in PARAMS["hello"]


def test_what_was_added_to_the_scope_is_asked_for_again(
    followed: Followed, rootsd_dir: Path
) -> None:
    with RootsPublisher(rootsd_dir) as first:
        followed.until(Changed)
        first.widen({"names": ["web"], "tags": ["go"]})
        first.widen({"names": ["web", "lib"], "tags": []})
        first.publish(denied=(b"/x",))
        followed.until(Changed)
    with RootsPublisher(rootsd_dir) as second:
        followed.until(Connected)
        (request,) = second.requests
        assert request["hello"]["scope"] == {"names": ["web", "lib"], "tags": ["go"]}


def test_a_daemon_that_does_not_answer_is_away(
    followed: Followed, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "_ANSWER_TIMEOUT_S", 0.05)
    with RootsPublisher(rootsd_dir):
        pass  # it has made the folders
    with listen(find_runtime_dir().control_socket):
        assert followed.until_away().message == "the daemon does not answer"


def test_after_a_rejected_message_everything_comes_again(
    followed: Followed, rootsd_dir: Path
) -> None:
    with RootsPublisher(rootsd_dir) as publisher:
        followed.until(Changed)
        followed.feed.reject()
        followed.until(Connected)
        followed.until(Changed)
        publisher.send_to_all({"number": 9})
        assert isinstance(followed.until_away(), BadFeed)
        followed.until(Changed)


def test_a_wait_ends_in_time_and_for_the_descriptor_that_wakes_it(
    followed: Followed, rootsd_dir: Path
) -> None:
    with RootsPublisher(rootsd_dir):
        followed.until(Changed)
        assert followed.feed.wait(0.01) == []
        ours, theirs = socket.socketpair()
        with ours, running(lambda: followed.feed.wait(wake=ours.fileno())):
            theirs.close()


@contextmanager
def running(work: Callable[[], object]) -> Iterator[None]:
    """Run `work` in a thread, which must have ended in the end."""
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join(HANG_GUARD_S)
    assert not thread.is_alive()
