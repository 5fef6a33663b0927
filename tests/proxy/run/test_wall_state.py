"""The roots of a server behind a wall: from the daemon's view and the kernel's."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.record import from_line, to_line
from rootsd.core.wall import ProtectionPolicy, RevokePolicy, WallSettings
from rootsd.link.connect import NotRunning
from rootsd.link.feed import Feed
from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.root_policies import AccessPolicy, ClientRootsPolicy
from rootsd.proxy.run.roots import RootFolder, RootsFilter, WallState
from rootsd.proxy.run.wall import ServerWall, WardenLost
from rootsd.wall.kernel.orders import (
    AppliedChange,
    FailedRoot,
    OrderKind,
    WardenOrder,
    WardenReport,
)
from rootsd.wall.kernel.warden import Warden
from rootsd.wall.session.built_wall import BuiltWall
from rootsd.wall.session.engines import NamespaceWall
from rootsd.wall.session.options import ConfineOptions
from rootsd.wall.session.push_relay import PushRelay
from rootsd.wall.session.session_view import ComposedView
from rootsd.wall.session.view_feed import FollowedView, WallSubscription
from rootsd.wire.feed import CHANGE_METHOD, FOLLOW_ID, Changed
from rootsd.wire.jsonrpc import Notification, Response, encode
from support.bridges import reply, request
from support.run_session_harness import API, DOCS, WEB, SessionHarness, call, paths
from support.sent_view import SentView

DENIED = b"/src/api/secret"


def shown(*folders: RootFolder, withheld: Sequence[RootFolder] = ()) -> tuple[ConfinedRoot, ...]:
    """Return the daemon's view with these roots; the denied project lies in each withheld one."""
    return tuple(
        ConfinedRoot(
            each.path,
            Access.READ_WRITE if each.writable else Access.READ,
            denied=frozenset([DENIED] if each in withheld else []),
            name=each.name,
            is_withheld=each in withheld,
        )
        for each in sorted((*folders, *withheld), key=lambda each: each.name)
    )


def settled(view: tuple[ConfinedRoot, ...]) -> WallState:
    return WallState(view, frozenset(root.path for root in view))


def roots_of(
    wall: WallState | None, *approved: RootFolder, theirs: tuple[bytes, ...] | None = None
) -> list[str]:
    roots_filter = RootsFilter(ClientRootsPolicy.AUTO, AccessPolicy.ADVISORY, None)
    roots_filter.wall, roots_filter.client_folders = wall, theirs
    known = approved if wall is None else wall.reachable()
    return [each.text for each in roots_filter.apply(known)]


def test_a_withheld_root_is_for_servers_behind_a_wall_only() -> None:
    view = shown(WEB, withheld=[API])
    assert roots_of(settled(view)) == ["/src/api", "/src/web"]
    assert roots_of(None, WEB) == ["/src/web"]


@pytest.mark.parametrize("theirs", [DENIED, DENIED + b"/deep"])
def test_a_client_cannot_name_the_denied_project_in_a_withheld_root(theirs: bytes) -> None:
    view = shown(withheld=[API])
    assert roots_of(settled(view), theirs=(theirs,)) == []
    assert roots_of(settled(view), theirs=(b"/src/api/else",)) == ["/src/api/else"]
    assert roots_of(None, API, theirs=(theirs,)) == [os.fsdecode(theirs)]  # the control


def test_a_client_folder_in_a_withheld_root_is_not_proposed() -> None:
    roots_filter = RootsFilter(ClientRootsPolicy.AUTO, AccessPolicy.ADVISORY, None)
    roots_filter.set_client_folders((b"/src/api/deep", b"/else"))
    roots_filter.wall = settled(shown(withheld=[API]))
    assert roots_filter.outside(()) == (b"/else",)


FOLDERS = st.frozensets(st.sampled_from([API, WEB, DOCS]))


@given(FOLDERS, FOLDERS, FOLDERS)
def test_a_root_needs_the_view_and_the_kernel(
    view: frozenset[RootFolder], mounted: frozenset[RootFolder], withheld: frozenset[RootFolder]
) -> None:
    state = WallState(
        shown(*(view - withheld), withheld=[*(view & withheld)]),
        frozenset(each.path for each in mounted),
    )
    assert set(roots_of(state)) == {each.text for each in view & mounted}


CHANGES = WallState(shown(API), frozenset([API.path]), is_changing=True)


@pytest.mark.parametrize("profile", ServerProfile)
@pytest.mark.parametrize("meanwhile", [CHANGES, settled(shown(API))._replace(is_away=True)])
def test_calls_wait_while_the_kernel_changes_and_while_no_daemon_is_there(
    profile: ServerProfile, meanwhile: WallState
) -> None:
    harness = SessionHarness(API, WEB, profile=profile)
    harness.session.wall_changed(settled(shown(API, WEB)), 0, harness.now)
    harness.shake_hands()
    harness.wait(60)
    harness.session.wall_changed(meanwhile, 0, harness.now)
    harness.approve(API)
    harness.client(call(1))
    harness.wait(60)
    assert harness.to_server() == []
    harness.session.wall_changed(settled(shown(API)), 0, harness.now)
    assert [each["id"] for each in harness.to_server()] == [1]


def test_the_server_is_notified_of_what_the_kernel_shows() -> None:
    harness = SessionHarness(API)
    harness.session.wall_changed(settled(shown(API)), 0, harness.now)
    harness.shake_hands()
    harness.server(request("q", "roots/list"))
    harness.session.wall_changed(settled(shown(API)), 1, harness.now)
    (answer,) = harness.to_server()
    assert [root["uri"] for root in answer["result"]["roots"]] == ["file:///src/api"]
    view = shown(API, WEB)
    harness.session.wall_changed(WallState(view, frozenset([API.path])), 0, harness.now)
    assert harness.to_server() == [], "the kernel does not show it yet"
    harness.session.wall_changed(settled(view), 0, harness.now)
    assert [each["method"] for each in harness.to_server()] == ["notifications/roots/list_changed"]


def test_a_replaced_root_is_sent_again_once_the_warden_has_verified_it() -> None:
    harness = SessionHarness(API, WEB)
    view = shown(API, WEB)
    harness.session.wall_changed(settled(view), 0, harness.now)
    harness.shake_hands()
    harness.is_daemon_there = False  # the wall answers

    def told() -> list[str]:
        harness.server(request("q", "roots/list"))
        harness.session.wall_changed(settled(view), 1, harness.now)
        (answer,) = (each for each in harness.to_server() if "result" in each)
        return paths(answer["result"])

    assert told() == ["/src/api", "/src/web"]
    harness.disk.replaced[API.path] += 1
    assert told() == ["/src/web"]
    view = shown(API, WEB, DOCS)
    assert told() == ["/src/api", "/src/docs", "/src/web"]


# The wall itself, with a warden and a daemon that the test plays.


class NoRelay:
    def end(self) -> list[str]:
        return []


class PlayedWall:
    """A `ServerWall`, and the far ends of its two sockets. `events` are in their order."""

    def __init__(self, view: tuple[ConfinedRoot, ...], first: WardenReport) -> None:
        warden, self.warden = socket.socketpair()
        self._offered: socket.socket | None
        self.states: list[WallState] = []
        self.moves: list[object] = []
        self.answered = 0
        # The process that is ended when the warden is lost.
        self.pid = os.posix_spawn("/bin/sleep", ["sleep", "infinity"], {})
        self.failed: tuple[FailedRoot, ...] = ()
        self.events: list[tuple[str, tuple[str, ...]]] = []
        composed = ComposedView(
            b"/home/ann", (), frozenset(), {}, has_network=True,
            protection=ProtectionPolicy.UNTRACKED, on_revoke=RevokePolicy.TELL, stays_open=(),
            closed=(),
        )  # fmt: skip
        feed = Feed({"hello": {}})
        feed.link._open = self._open
        self._begin(*view)
        followed = FollowedView()
        for event in feed.attend():
            if isinstance(event, Changed):
                followed.take(event.change)
        self.wall = ServerWall(
            BuiltWall(
                ConfineOptions(name="s"),
                NamespaceWall(),
                composed,
                WallSubscription(feed, WallSettings(), followed),
                Warden(self.pid, -1, (), b"/", -1, warden, {}, (), first, 0.0),
                cast("PushRelay", NoRelay()),
            )
        )
        self.wall.start(self._changed, self.moves.append)
        self.roots = {root.path: root for root in view}
        self._thread = threading.Thread(target=self._apply_orders)
        self._thread.start()

    def publish(self, *view: ConfinedRoot) -> None:
        self._send(*view)
        self.wall.attend()

    def connect(self, *view: ConfinedRoot) -> None:
        """Connect another daemon."""
        self.daemon.close()
        self.wall.attend()
        self._begin(*view)
        while self.states[-1].is_away:
            self.wall.attend()

    def _open(self) -> socket.socket:
        if self._offered is None:
            raise NotRunning("no daemon is connected")
        offered, self._offered = self._offered, None
        return offered

    def heard(self) -> list[bytes]:
        """Return the lines that the daemon got."""
        return self.daemon.recv(1 << 16).splitlines()

    def _begin(self, *view: ConfinedRoot) -> None:
        self._offered, self.daemon = socket.socketpair()
        self.connection = self._offered
        self.sent = SentView()
        result: dict[str, object] = {"start": None, "settings": {}}
        self.daemon.sendall(encode(Response(FOLLOW_ID, result)))
        self._send(*view)

    def _send(self, *view: ConfinedRoot) -> None:
        self.daemon.sendall(encode(Notification(CHANGE_METHOD, self.sent.change_to(*view))))

    def last(self) -> tuple[str, tuple[str, ...]]:
        return self.events[-1]

    def close(self) -> None:
        self.warden.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.warden.close()
        self.daemon.close()
        self.connection.close()
        os.kill(self.pid, signal.SIGKILL)
        self.wall.__exit__()

    def _changed(self, state: WallState, answered: int) -> None:
        self.states.append(state)
        self.answered += answered
        names = tuple(sorted(os.fsdecode(path) for path in state.shown))
        self.events.append(("before" if state.is_changing else "after", names))

    def _apply_orders(self) -> None:
        with self.warden.makefile("rb") as lines:
            for line in lines:
                order = from_line(WardenOrder, line)
                self._apply(order)
                self.events.append(("kernel", tuple(sorted(map(os.fsdecode, self.roots)))))
                self.warden.sendall(to_line(self._report(order)))

    def _apply(self, order: WardenOrder) -> None:
        if order.kind is OrderKind.SET:
            self.roots.clear()
        for path in order.paths:
            del self.roots[path]
        self.roots |= {root.path: root for root in order.roots}

    def _report(self, order: WardenOrder) -> WardenReport:
        return WardenReport(order.number, len(self.roots), change=AppliedChange(self.failed))


@pytest.fixture
def played() -> Iterator[PlayedWall]:
    view = shown(API, WEB)
    played = PlayedWall(view, WardenReport(0, 2))
    yield played
    played.close()


def test_a_revoke_is_announced_before_the_kernel_and_a_grant_after_it(played: PlayedWall) -> None:
    assert played.events.pop() == ("after", ("/src/api", "/src/web"))
    played.publish(*shown(API, DOCS))
    assert played.events == [
        ("before", ("/src/api",)),
        ("kernel", ("/src/api", "/src/docs")),
        ("after", ("/src/api", "/src/docs")),
    ]


@pytest.mark.parametrize(
    ("view", "withheld"), [((API,), ()), ((API, WEB, DOCS), ()), ((DOCS,), ()), ((WEB,), (API,))]
)
def test_the_kernel_gets_the_whole_change(
    played: PlayedWall, view: tuple[RootFolder, ...], withheld: tuple[RootFolder, ...]
) -> None:
    wanted = shown(*view, withheld=withheld)
    played.publish(*wanted)
    assert played.roots == {root.path: root for root in wanted}


def test_a_question_is_answered_at_once_and_without_a_daemon_as_soon_as_one_is_there(
    played: PlayedWall,
) -> None:
    played.wall.query()
    assert played.answered == 1
    played.daemon.shutdown(socket.SHUT_RDWR)
    played.wall.attend()
    assert played.states[-1].is_away
    played.wall.query()
    played.wall.query()
    assert played.answered == 1
    played.connect(*shown(WEB))
    assert played.answered == 3
    assert not played.states[-1].is_away
    assert played.last() == ("after", ("/src/web",)), "the roots of the next daemon come first"


def test_the_daemon_hears_what_the_server_got_and_of_folders_that_the_client_has_open(
    played: PlayedWall,
) -> None:
    played.wall.report(("api",))
    played.wall.propose("/src/new")
    told, opened = (json.loads(line)["params"] for line in played.heard()[-2:])
    assert told == {"told": {"roots": 1, "names": ["api"]}}
    assert opened == {"opened": ["/src/new"]}
    played.connect(*shown(API, WEB))
    later = [json.loads(line)["params"] for line in played.heard()]
    assert later[-2]["told"] == {"roots": 1, "names": ["api"]}
    assert "opened" not in later[-2]
    assert later[-1] == {"applied": 0}, "the new daemon learns that its roots are shown"


def test_a_root_that_cannot_be_mounted_is_not_a_root_and_said_once(
    played: PlayedWall, capsys: pytest.CaptureFixture[str]
) -> None:
    played.failed = (FailedRoot(DOCS.path, "another folder is there now"),)
    played.publish(*shown(API, DOCS))
    assert played.last() == ("after", ("/src/api",))
    played.publish(*shown(API, DOCS, WEB))
    assert played.last() == ("after", ("/src/api", "/src/web"))
    error = capsys.readouterr().err
    assert error == (
        "rootsd run: /src/docs is not shown to the server: another folder is there now;"
        " try: rootsd why /src/docs\n"
        "rootsd run: web was denied\n"
    )
    reports = played.daemon.recv(1 << 16)
    assert b"/src/docs: another folder is there now" in reports
    played.failed = ()
    played.publish(*shown(API, DOCS))
    assert played.last() == ("after", ("/src/api", "/src/docs"))


def test_a_root_that_lost_its_protection_is_a_root_no_more(played: PlayedWall) -> None:
    failed = FailedRoot(WEB.path, "it cannot be protected")
    lost = WardenReport(0, 1, change=AppliedChange((failed,)))
    played.warden.sendall(to_line(lost))
    played.wall.attend()
    assert played.last() == ("after", ("/src/api",))


def test_the_end_of_the_warden_is_noticed_without_an_order(played: PlayedWall) -> None:
    played.warden.shutdown(socket.SHUT_RDWR)
    with pytest.raises(WardenLost):
        played.wall.attend()


def test_a_root_that_failed_at_the_start_is_not_listed() -> None:
    failed = FailedRoot(WEB.path, "it is hidden")
    played = PlayedWall(shown(API, WEB), WardenReport(0, 1, change=AppliedChange((failed,))))
    assert played.events == [("after", ("/src/api",))]
    played.close()


def test_a_denial_restarts_no_server_that_keeps_its_roots_and_an_approval_does() -> None:
    """The kernel takes a denied folder away, so that the server need not give it up."""
    harness = SessionHarness(API, WEB)
    harness.session.wall_changed(settled(shown(API, WEB)), 0, harness.now)
    harness.shake_hands()
    harness.client(call(1), call(2))
    harness.wait(0.25)
    harness.server(request("q", "roots/list"), reply(1, {}), reply(2, {}))
    assert harness.gate.may_ask_again
    for id_, roots, restarts in ((3, (API,), False), (4, (API,), False), (5, (API, DOCS), True)):
        harness.session.wall_changed(settled(shown(*roots)), 0, harness.now)
        harness.wait(0.25)
        harness.client(call(id_))
        assert harness.out.restart_requested is restarts
        harness.server(reply(id_, {}))
