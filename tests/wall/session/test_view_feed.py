"""A front adds up the changes of its view, and starts again if it cannot."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rootsd.core.access import Access
from rootsd.core.errors import RootsdError
from rootsd.core.mount_plan import ConfinedRoot, RemovalReason, RemovedRoot
from rootsd.core.wall import WallUse
from rootsd.wall.kernel.orders import PauseNews, PauseState
from rootsd.wall.kernel.pause import ProgramPause
from rootsd.wall.kernel.warden import FollowedRoots
from rootsd.wall.session import view_feed
from rootsd.wall.session.view_feed import (
    FollowedView,
    UnknownRoot,
    ViewFeed,
    answered,
    ask,
    follow_heard,
    follow_params,
)
from rootsd.wire import feed
from rootsd.wire.feed import FEED_VERSION, Away, BadFeed, Changed
from rootsd.wire.hello import Hello
from support.roots_publisher import RootsPublisher, subscribed
from support.sent_view import SentView

_HANG_GUARD_MS = 60_000
ALONE = FollowedRoots(frozenset(), b"", network=True, stays_open=())
API, DOCS, WEB = (
    ConfinedRoot(b"/src/" + name, Access.READ_WRITE, name=name.decode())
    for name in (b"api", b"docs", b"web")
)


def good(number: int = 1, **more: object) -> dict[str, Any]:
    roots = {"changed": [], "removed": [], "denied": None, **more}
    return {"number": number, "revision": 2, "focus": None, "roots": roots, "screen": None}


@pytest.fixture
def publisher(rootsd_dir: Path) -> Iterator[RootsPublisher]:
    with RootsPublisher(rootsd_dir) as publisher:
        yield publisher


class Following(ProgramPause):
    """A feed whose roots a test sees."""

    def __init__(self) -> None:
        self.shown: list[set[bytes]] = []
        subscription = subscribed("a test", {})
        self.first = subscription.roots
        self._feed = ViewFeed(subscription, ALONE)
        self._feed.start(self._set_roots, self)
        super().__init__(0, lambda _: None)
        self.why: RootsdError | None = None
        self.happened: list[str] = []

    def _set_roots(
        self,
        roots: Sequence[ConfinedRoot],
        _: frozenset[bytes],
        removed: Mapping[bytes, RemovedRoot],
    ) -> None:
        self.removed = {path: each.why for path, each in removed.items()}
        self.shown.append({root.path for root in roots})
        self.happened.append("shown")

    def stop(self, why: RootsdError) -> None:
        self.why = why
        self._set(PauseNews(PauseState.STOPPED))
        self.happened.append("stopped")

    def resume(self) -> None:
        self._set(PauseNews(PauseState.RUNNING))
        self.happened.append("continued")

    def let_run(self) -> None:
        """Send the programs a signal."""
        self._feed.let_run()

    def until_in(self, state: PauseState) -> None:
        """Drive the feed until the programs are in this state."""
        while self.state is not state:
            self.attend()

    def until_shown(self, *roots: ConfinedRoot) -> None:
        """Drive the feed until it shows exactly these roots."""
        wanted = {root.path for root in roots}
        while not self.shown or self.shown[-1] != wanted:
            self.attend()

    def until_lost(self) -> None:
        """Drive the feed until it has closed its connection."""
        while [*self._feed.interest()]:
            self.attend()

    def attend_now(self) -> None:
        """Let the feed do what is due."""
        self._feed.attend()

    def attend(self) -> None:
        """Let the feed take the next message, or connect again."""
        poll = select.poll()
        for fd, _ in self._feed.interest():
            poll.register(fd, select.POLLIN)
        left_ms = max(min(self._feed.deadline - time.monotonic(), 1e9), 0) * 1000
        assert poll.poll(min(left_ms, _HANG_GUARD_MS)) or left_ms < _HANG_GUARD_MS
        self._feed.attend()


@pytest.fixture
def follow(publisher: RootsPublisher) -> Iterator[Callable[[], Following]]:
    made: list[Following] = []

    def start() -> Following:
        made.append(Following())
        return made[-1]

    yield start
    publisher.close()
    for each in made:
        each.until_lost()


def test_what_arrives_with_the_first_view_is_kept_for_who_follows_the_feed(
    publisher: RootsPublisher,
) -> None:
    publisher.publish(API, WEB)
    asked = ask(follow_params(Hello(client="a test"), {}, WallUse.PROGRAM))
    with publisher.reported:
        assert publisher.reported.wait_for(lambda: publisher.requests, _HANG_GUARD_MS / 1000)
    publisher.publish(API)
    publisher.close()
    subscription = answered(asked)
    changed, away = subscription.feed.attend()
    assert isinstance(away, Away), "a daemon that ends now is away, and no failure"
    assert isinstance(changed, Changed)
    subscription.view.take(changed.change)
    assert subscription.roots == (API,)


def test_a_warden_takes_over_the_roots_of_a_daemon_that_has_ended(
    publisher: RootsPublisher,
) -> None:
    publisher.publish(API)
    params = follow_params(Hello(client="a test"), {}, WallUse.PROGRAM)
    asked = ask(params)
    with publisher.reported:
        assert publisher.reported.wait_for(lambda: publisher.requests, _HANG_GUARD_MS / 1000)
    publisher.close()
    front = answered(asked).feed
    assert front.link.connection is None
    followed = ALONE._replace(heard=bytes(front.heard or b""))
    feed = follow_heard(params, followed, front.connection().dup())
    front.close()
    assert feed.roots == [API]
    feed.start(lambda *_: None, ProgramPause(0, lambda _: None))
    feed.attend()
    assert feed.is_away, "it waits for the next daemon"
    feed.close()


def test_changes_add_up_to_the_view_sorted_by_name() -> None:
    sent, view = SentView(), FollowedView()
    for roots in ((WEB, API), (WEB,), (DOCS, WEB), (), (API._replace(name="z"), WEB)):
        view.take(sent.change_to(*roots))
        assert view.roots == tuple(sorted(roots, key=lambda root: root.name))


def test_the_denied_folders_stay_until_a_change_names_others() -> None:
    sent, view = SentView(), FollowedView()
    for roots, denied in (((API,), (b"/d",)), ((), (b"/d",)), ((WEB,), (b"/d", b"/e")), ((), ())):
        message = sent.change_to(*roots, denied=denied)
        assert (message["roots"]["denied"] is None) == (view.denied == {*denied})
        view.take(message)
        assert (len(view.roots), view.denied) == (len(roots), frozenset(denied))


@pytest.mark.parametrize(
    "change",
    [
        good(denied=[1]), good(denied=["relative"]), good(denied={}),
        good(changed=[{}]), good(removed=[1]), good(changed={}), {"roots": []}, {"roots": None},
    ],
)  # fmt: skip
def test_a_wrong_change_is_refused_and_changes_nothing(change: dict[str, Any]) -> None:
    view = FollowedView()
    view.take(SentView().change_to(API))
    with pytest.raises(BadFeed):
        view.take(change)
    assert view.roots == (API,)


@pytest.mark.parametrize("change", [good(number=7), good(changed=[{}])])
def test_after_a_wrong_change_the_programs_stop_until_the_whole_view_is_there(
    publisher: RootsPublisher, follow: Callable[[], Following], change: dict[str, Any]
) -> None:
    publisher.publish(API, WEB)
    following = follow()
    assert following.first == (API, WEB)
    publisher.publish(API)
    following.until_shown(API)
    publisher.send_to_all(change)
    following.until_in(PauseState.STOPPED)
    assert following.shown[-1] == {API.path}
    following.until_in(PauseState.RUNNING)
    assert following.happened[-2:] == ["shown", "continued"]
    publisher.publish(API, DOCS)
    following.until_shown(API, DOCS)


def test_a_denial_before_a_wrong_change_is_applied(
    publisher: RootsPublisher, follow: Callable[[], Following]
) -> None:
    publisher.publish(API, WEB)
    following = follow()
    publisher.publish(API)
    publisher.send_to_all(good(number=7))
    following.until_in(PauseState.STOPPED)
    assert following.shown[0] == {API.path}
    assert following.happened.index("shown") < following.happened.index("stopped")


def test_after_a_view_that_is_too_long_the_programs_stop_until_a_shorter_one(
    publisher: RootsPublisher, follow: Callable[[], Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MAX_FEED_LINE_BYTES", 1_000)
    publisher.publish(API)
    following = follow()
    publisher.publish(*(API._replace(path=b"/src/%d" % number) for number in range(100)))
    following.until_in(PauseState.STOPPED)
    assert not following.shown
    publisher.publish(API)
    following.until_shown(API)
    publisher.publish(*(API._replace(path=b"/src/%d" % number) for number in range(100)))
    with pytest.raises(BadFeed):
        follow()


def test_without_a_daemon_the_roots_stay_and_the_programs_stop(
    publisher: RootsPublisher, follow: Callable[[], Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the next daemon no longer shows is gone before the programs continue."""
    monkeypatch.setattr(view_feed, "GRACE_S", 0.01)
    monkeypatch.setattr(view_feed, "_LOOK_AGAIN_S", 1000.0)
    publisher.publish(API, WEB)
    following = follow()
    publisher.close()
    following.until_in(PauseState.STOPPED)
    assert not following.shown
    with RootsPublisher(publisher.rootsd_dir, first=(WEB,)) as second:
        following.until_in(PauseState.RUNNING)
        assert following.happened == ["stopped", "shown", "continued"]
        assert following.shown == [{WEB.path}]
        second.close()
        following.until_lost()


def test_a_signal_lets_the_programs_run_for_a_moment(
    publisher: RootsPublisher, follow: Callable[[], Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_feed, "GRACE_S", 0.01)
    monkeypatch.setattr(view_feed, "_LOOK_AGAIN_S", 1000.0)
    publisher.publish(API)
    following = follow()
    publisher.close()
    following.until_in(PauseState.STOPPED)
    following.let_run()
    following.until_in(PauseState.STOPPED)
    assert following.happened == ["stopped", "continued", "stopped"]


def test_without_a_daemon_an_approval_ends_in_time(
    publisher: RootsPublisher, follow: Callable[[], Following], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends before the programs stop, after that, and no sooner."""
    now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    ending, later = API._replace(ends_ns=now_ns), WEB._replace(ends_ns=now_ns + 10**18)
    publisher.publish(ending, later, DOCS)
    following = follow()
    following.attend_now()
    assert not following.shown  # a daemon is there, and decides
    publisher.close()
    following.until_shown(later, DOCS)
    assert following.removed == {API.path: RemovalReason.ENDED}
    assert following.state is PauseState.RUNNING
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: now_ns + 10**18)
    following.until_shown(DOCS)


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


@pytest.mark.parametrize("version", [FEED_VERSION - 1, FEED_VERSION + 1])
def test_a_wall_stops_at_once_and_keeps_its_roots_if_the_next_daemon_has_another_version(
    publisher: RootsPublisher, follow: Callable[[], Following], version: int
) -> None:
    publisher.publish(API, WEB)
    following = follow()
    publisher.close()
    with RootsPublisher(publisher.rootsd_dir) as other:
        other.version = version
        other.publish(WEB)
        following.until_in(PauseState.STOPPED)
        assert isinstance(following.why, BadFeed)
        assert following.why.remedy == "start the program again"
        assert not following.shown, "no root was taken away"
    with RootsPublisher(publisher.rootsd_dir, first=(WEB,)) as same:
        following.until_in(PauseState.RUNNING)
        assert following.happened == ["stopped", "shown", "continued"]
        same.close()
        following.until_lost()


def test_a_program_does_not_start_with_a_scope_that_fits_no_project(
    publisher: RootsPublisher,
) -> None:
    publisher.unknown = ["typo", "tag:\x1b"]
    publisher.similar = ["type", "tape"]
    message = r"no project fits typo, tag:.u\{1b\}; did you mean type or tape\?"
    with pytest.raises(UnknownRoot, match=message):
        subscribed("a test", {})


def test_a_program_does_not_start_with_a_daemon_of_another_version(
    publisher: RootsPublisher,
) -> None:
    publisher.version = FEED_VERSION - 1
    with pytest.raises(BadFeed, match=f"does not speak version {FEED_VERSION - 1}"):
        subscribed("a test", {})
