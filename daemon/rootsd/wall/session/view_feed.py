"""Follow the roots that the daemon shows to one confined program.

`ask` and `answered` run in the front, before anything is built, since the daemon's settings are
part of the view. The warden takes over the connection (`follow_heard`).

`ViewFeed` is in the warden. A daemon that is away is no revocation, so the roots stay. But after
`GRACE_S` seconds, the programs are stopped, without a time limit, because nobody could take a root
away from them. Once a daemon answers, its view is applied first, and then the programs continue.
Meanwhile, `ViewFeed` itself takes away each root whose approval ends.

After a message that cannot be understood, or a change that was missed, the roots are not known.
Then the programs are stopped at once, and the feed connects again. So it is with a daemon that
speaks another version of the feed: nothing is taken away, but nothing goes on either.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.core.mount_plan import ConfinedRoot, RemovalReason, RemovedRoot, roots_inside
from rootsd.core.paths import text_of
from rootsd.core.record import BadRecord, Record, from_json
from rootsd.core.suggestions import did_you_mean
from rootsd.core.wall import WallSettings, WallUse
from rootsd.link import rpc, sandbox
from rootsd.link.feed import Feed
from rootsd.link.reconnect import GRACE_S
from rootsd.wall.kernel.orders import ChangeNews, PauseState, WardenReport
from rootsd.wall.kernel.warden import FollowedRoots
from rootsd.wire.feed import (
    FEED_VERSION,
    Away,
    BadFeed,
    Changed,
    Connected,
    Given,
    GivenFiles,
    RootsChange,
    SessionMoved,
)
from rootsd.wire.hello import Hello, MoveResult, WorkFolders, hello_params

if TYPE_CHECKING:
    from rootsd.wall.kernel.pause import ProgramPause
    from rootsd.wall.kernel.warden_loop import GiveFile, SetRoots

_REPORT = "report_confined"
_CONNECT_TIMEOUT_S = 0.1
_LOOK_AGAIN_S = 2.0
"""How long a program may run that somebody outside continues while no daemon answers."""
_NO_DAEMON = DaemonUnreachable("no daemon answers", "rootsd up")


class FollowedView:
    """The roots of the daemon, as its messages on one connection add up."""

    def __init__(self) -> None:
        self.denied: frozenset[bytes] = frozenset()
        """All denied folders."""
        self.removed: dict[bytes, RemovedRoot] = {}
        """Why roots of an earlier view are gone, by path."""
        self.number = -1
        """The number of the last message."""
        self._roots: dict[bytes, ConfinedRoot] = {}

    @property
    def roots(self) -> tuple[ConfinedRoot, ...]:
        """The roots, sorted by name."""
        return tuple(sorted(self._roots.values(), key=lambda root: (root.name, root.path)))

    @property
    def next_end_ns(self) -> float:
        """When the first of the approvals ends, in ns since the machine started."""
        ends = (root.ends_ns for root in self._roots.values())
        return min((end for end in ends if end is not None), default=math.inf)

    def end_approvals(self, now_ns: int) -> bool:
        """Remove the roots whose approval has ended, and return whether there were any."""
        roots = self._roots.values()
        ended = [root for root in roots if root.ends_ns is not None and root.ends_ns <= now_ns]
        self._remove(RemovedRoot(root.path, root.name, RemovalReason.ENDED) for root in ended)
        return bool(ended)

    def take(self, change: Mapping[str, Any]) -> None:
        """Apply the next change. The first one has all roots. Raises BadFeed."""
        roots = _read(RootsChange, change, "roots")
        self.number = change["number"]
        self._remove(roots.removed)
        self._roots.update((root.path, root) for root in roots.changed)
        if roots.denied is not None:
            self.denied = roots.denied

    def _remove(self, gone: Iterable[RemovedRoot]) -> None:
        for each in gone:
            self._roots.pop(each.path, None)
            self.removed[each.path] = each


class UnknownRoot(RootsdError):
    """Words of a scope that fit no project, so that the program could never see it."""

    code = ErrorCode.NOTHING_MATCHED

    def __init__(self, words: Iterable[str], similar: Iterable[str]) -> None:
        shown = ", ".join(map(safe_label, words))
        hint = did_you_mean(map(safe_label, similar))
        super().__init__(f"no project fits {shown}{hint}", "rootsd ls")


class WallSubscription(NamedTuple):
    """An answered subscription, and what the daemon has sent on it."""

    feed: Feed
    settings: WallSettings
    view: FollowedView

    @property
    def roots(self) -> tuple[ConfinedRoot, ...]:
        """The roots of the view."""
        return self.view.roots


def follow_params(
    greeting: Hello, program: Mapping[str, object], use: WallUse
) -> dict[str, object]:
    """Return the parameters of the request that follows the roots in a scope.

    They are for a `program` behind the wall, which is a `WallProgram`.
    """
    return {
        "version": FEED_VERSION,
        "part": "roots",
        "hello": hello_params(greeting),
        "wall": program,
        "use": use.value,
    }


def ask(params: Mapping[str, object]) -> Feed:
    """Send the request to the daemon, if one runs, and do not wait for the answer."""
    feed = Feed(params)
    feed.heard = bytearray()
    feed.link.starts_daemons = not sandbox.in_sandbox()
    feed.link.attend()
    return feed


def answered(feed: Feed) -> WallSubscription:
    """Return when all roots are known. The feed keeps what came after them. Raises RootsdError."""
    settings, view = WallSettings(), FollowedView()
    try:
        while view.number < 0:
            events = iter(feed.wait())
            for event in events:
                match event:
                    case Connected(result):
                        settings = _read(WallSettings, result, "settings")
                        if unknown := result.get("unknown"):
                            raise UnknownRoot(unknown, result.get("similar", ()))
                    case Changed(change):
                        view.take(change)
                        feed.give_back(events)
                    case Given() | SessionMoved():
                        pass  # nobody gives files to a program that has not started, or moves it
                    case Away(why):
                        raise why
    except RootsdError:
        feed.close()
        raise
    return WallSubscription(feed, settings, view)


def follow_heard(
    params: Mapping[str, object], followed: FollowedRoots, connection: socket.socket
) -> ViewFeed:
    """Take over the connection of a front in its warden."""
    feed = Feed(params)  # it starts no daemon, which would run inside the warden's namespaces
    feed.adopt(connection, followed.heard)
    return ViewFeed(answered(feed), followed)


def _give_nothing(path: bytes, copy: bytes) -> str:  # noqa: ARG001
    return "only programs of rootsd confine can be given files"


class ViewFeed:
    """The daemon's roots, as the warden's loop drives them. Call `start` before anything else.

    A daemon that is connected later gets the last report, too.
    """

    on_moved: Callable[[MoveResult | RootsdError], None] | None = None
    """Called with the outcome of each move, after its roots are shown."""

    _programs: ProgramPause
    _give: GiveFile
    _set_roots: SetRoots

    def __init__(self, subscription: WallSubscription, followed: FollowedRoots) -> None:
        self._moved: MoveResult | RootsdError | None = None
        self._hidden, self.below = followed.hidden, followed.below
        self._state: dict[str, object] = {
            "network": followed.network, "stays_open": [*followed.stays_open],
        }  # fmt: skip
        self._feed = subscription.feed
        self._feed.connect_timeout_s = _CONNECT_TIMEOUT_S
        self._view = subscription.view
        self._shown = self._view  # until another daemon has sent its view
        self._stop_at = math.inf
        self._why: RootsdError = _NO_DAEMON

    @property
    def roots(self) -> list[ConfinedRoot]:
        """The roots that programs may see, with what is hidden in them."""
        return [*roots_inside(self._shown.roots, self._hidden, self.below)]

    @property
    def denied(self) -> frozenset[bytes]:
        """The denied folders."""
        return self._shown.denied

    def start(
        self, set_roots: SetRoots, programs: ProgramPause, give: GiveFile = _give_nothing
    ) -> None:
        """Set other roots, stop the `programs`, and give files from now on."""
        self._set_roots, self._programs, self._give = set_roots, programs, give
        self._confirm()

    @property
    def deadline(self) -> float:
        """When to connect again, to stop the programs, or to end an approval."""
        due = min(self._stop_at, self._feed.deadline)
        if not self.is_away:
            return due
        left_ns = self._shown.next_end_ns - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return min(due, time.monotonic() + left_ns / 1e9)

    @property
    def is_away(self) -> bool:
        """Whether no daemon has sent its view since the last one was lost."""
        return self._view is not self._shown

    def interest(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptor of the connection."""
        return self._feed.interest()

    def attend(self) -> None:
        """Read what the daemon sent, connect again, or do what is due without a daemon."""
        self._take_events()
        if self.is_away:
            now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            if self._shown.end_approvals(now_ns):
                self._show(self._shown)
        if time.monotonic() >= self._stop_at:
            self._stop_at = time.monotonic() + _LOOK_AGAIN_S
            self._programs.stop(self._why)

    def let_run(self) -> None:
        """Let stopped programs run for the time that a restart of the daemon may take."""
        if self._programs.state is PauseState.STOPPED:
            self._stop_at = time.monotonic() + GRACE_S
            self._programs.resume()

    def report(self, report: WardenReport) -> None:
        """Tell the daemon which roots are shown, and which processes hold removed files."""
        change = report.change
        self._state = {
            **self._state,
            "state": {
                "roots": report.shown,
                "read_only": report.read_only,
                "masked": report.masked,
                "waiting": len(change.waiting),
                "holders": list(change.holders),
                "not_shown": [f"{text_of(path)}: {reason}" for path, reason in change.failed],
            },
        }
        self._feed.send(_REPORT, self._state)

    def tell_changes(self, news: ChangeNews) -> None:
        """Tell the daemon which files have changed, and what git was refused.

        A later daemon finds the files on the disk.
        """
        if news.names:
            self.tell_once(changed=list(news.names))
        if news.refused:
            self.tell(refused=list(news.refused))

    def tell(self, **facts: object) -> None:
        """Tell the daemon something else about the program, also the next daemon."""
        self._state = {**self._state, **facts}
        self.tell_once(**facts)

    def tell_once(self, **facts: object) -> None:
        """Tell the daemon that is connected now."""
        self._feed.send(_REPORT, facts)

    def move(self, folders: WorkFolders) -> None:
        """Tell the daemon where the session of the program works now."""
        self._feed.move(folders)

    def close(self) -> None:
        """Hang up."""
        self._feed.close()

    def _take_events(self) -> None:
        has_changed = False
        for event in self._feed.attend():
            match event:
                case Connected():
                    self._view = FollowedView()
                    self._feed.send(_REPORT, self._state)
                case Given(files):
                    self._show_given(files)
                case SessionMoved(_, outcome):
                    self._moved = outcome
                case Changed(change):
                    try:
                        self._view.take(change)
                    except BadFeed as error:
                        self._feed.reject()
                        self._lose(error, has_changed=has_changed)
                        return  # what follows is from the same daemon
                    has_changed = True
                case Away(why):
                    self._lose(why, has_changed=has_changed)
                    has_changed = False
        if has_changed:
            self._stop_at = math.inf
            self._show(self._view)
            self._confirm()
            self._programs.resume()
        moved, self._moved = self._moved, None
        if moved is not None and self.on_moved is not None:
            self.on_moved(moved)

    def _show_given(self, files: Mapping[str, Any]) -> None:
        """Show files that a person gives to the programs, and tell the daemon."""
        try:
            given = from_json(GivenFiles, files)
        except BadRecord:
            return  # the person learns that nobody answered
        folder = given.folder if given.folder.isalnum() else "-"
        names = (b"%s/%d" % (folder.encode(), number) for number in range(len(given.paths)))
        problems = [self._give(path, name) for path, name in zip(given.paths, names, strict=True)]
        self.tell_once(given={"folder": given.folder, "problems": problems})

    def _lose(self, why: RootsdError, *, has_changed: bool) -> None:
        """Give a daemon some time to come back, or none if it cannot be understood."""
        if has_changed:  # by an earlier message, which may have taken a root away
            self._show(self._view)
        self._view = FollowedView()
        if isinstance(why, BadFeed):
            self._why, self._stop_at = why, time.monotonic()
        elif self._stop_at == math.inf:
            self._why, self._stop_at = _NO_DAEMON, time.monotonic() + GRACE_S

    def _confirm(self) -> None:
        """Tell the daemon that everything it has sent is shown."""
        self.tell_once(applied=self._view.number)

    def _show(self, view: FollowedView) -> None:
        self._shown = view
        self._set_roots(self.roots, self.denied, view.removed)


def _read(kind: type[Record], message: Mapping[str, Any], key: str) -> Record:
    try:
        return from_json(kind, message.get(key))
    except BadRecord as error:
        raise BadFeed(f"the daemon sent wrong {key}: {error}", rpc.RESTART) from error
