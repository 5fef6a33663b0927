"""A front adds up the changes of its view, and starts again if it cannot."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rootsd.core.mount_plan import ConfinedRoot, MountAccess
from rootsd.proxy.confine import view_feed
from rootsd.proxy.confine.view_feed import BadView, FollowedView, ViewFeed, subscribe
from support.roots_publisher import RootsPublisher
from support.sent_view import SentView

_HANG_GUARD_MS = 60_000
API, DOCS, WEB = (
    ConfinedRoot(b"/src/" + name, MountAccess.READ_WRITE, name=name.decode())
    for name in (b"api", b"docs", b"web")
)


def good(**more: object) -> dict[str, Any]:
    return {"number": 1, "revision": 2, "roots": [], "removed": [], **more}


@pytest.fixture
def publisher(rootsd_dir: Path) -> Iterator[RootsPublisher]:
    with RootsPublisher(rootsd_dir) as publisher:
        yield publisher


class Following:
    """A feed whose roots a test sees."""

    def __init__(self) -> None:
        self.shown: list[set[bytes]] = []
        subscription = subscribe({"name": "a test"})
        self.first = subscription.roots
        self._feed = ViewFeed(subscription, self._set_roots, {})

    def _set_roots(self, roots: Sequence[ConfinedRoot]) -> None:
        self.shown.append({root.path for root in roots})

    def until_shown(self, *roots: ConfinedRoot) -> None:
        """Drive the feed until it shows exactly these roots."""
        wanted = {root.path for root in roots}
        while not self.shown or self.shown[-1] != wanted:
            self.attend()

    def attend(self) -> None:
        """Let the feed take the next message, or connect again."""
        poll = select.poll()
        for fd, _ in (connections := [*self._feed.interest()]):
            poll.register(fd, select.POLLIN)
        assert poll.poll(_HANG_GUARD_MS if connections else 1) or not connections
        self._feed.attend()


@pytest.fixture
def follow(publisher: RootsPublisher) -> Iterator[Callable[[], Following]]:
    made: list[Following] = []

    def start() -> Following:
        made.append(Following())
        return made[-1]

    yield start
    publisher.drop()
    for each in made:
        each.attend()  # it closes the connection


def test_changes_add_up_to_the_view_sorted_by_name() -> None:
    sent, view = SentView(), FollowedView()
    for roots in ((WEB, API), (WEB,), (DOCS, WEB), (), (API._replace(name="z"), WEB)):
        view.take(sent.change_to(*roots))
        assert view.roots == tuple(sorted(roots, key=lambda root: root.name))


@pytest.mark.parametrize(
    "change",
    [
        good(number=0), good(number=2), good(roots=[{}]), good(removed=[1]), good(roots={}),
        {"revision": 2, "roots": []}, None,
    ],
)  # fmt: skip
def test_a_wrong_change_is_refused_and_changes_nothing(change: object) -> None:
    view = FollowedView()
    view.take(SentView().change_to(API))
    with pytest.raises(BadView):
        view.take(change)
    assert view.roots == (API,)


@pytest.mark.parametrize("change", [good(number=7), good(roots=[{}])])
def test_after_a_wrong_change_nothing_is_shown_until_the_whole_view_is_there(
    publisher: RootsPublisher, follow: Callable[[], Following], change: dict[str, Any]
) -> None:
    publisher.publish(API, WEB)
    following = follow()
    assert following.first == (API, WEB)
    publisher.publish(API)
    following.until_shown(API)
    publisher.send_to_all(change)
    following.until_shown()
    following.until_shown(API)
    publisher.publish(API, DOCS)
    following.until_shown(API, DOCS)


def test_after_a_view_that_is_too_long_nothing_is_shown_until_a_shorter_one(
    publisher: RootsPublisher,
    follow: Callable[[], Following],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(view_feed, "_MAX_LINE_BYTES", 1_000)
    publisher.publish(API)
    following = follow()
    publisher.publish(*(API._replace(path=b"/src/%d" % number) for number in range(100)))
    following.until_shown()
    publisher.publish(API)
    following.until_shown(API)
    publisher.publish(*(API._replace(path=b"/src/%d" % number) for number in range(100)))
    with pytest.raises(BadView):
        follow()


def test_a_new_connection_gets_the_whole_view(
    publisher: RootsPublisher, follow: Callable[[], Following]
) -> None:
    publisher.publish(API, WEB)
    following = follow()
    publisher.publish(API, WEB, DOCS)
    following.until_shown(API, WEB, DOCS)
    publisher.drop()
    publisher.publish(DOCS)
    following.until_shown(DOCS)
