"""Build a wall from its parts: its folder, the relay for git, and the warden.

`rootsd confine` does so in `front`. `rootsd run` builds an `OwnedWall`.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from rootsd.core.labels import safe_label
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.wall import WallUse
from rootsd.link.feed import Feed
from rootsd.link.sandbox import CONFINED_VARIABLE
from rootsd.places.base_folders import folder_name, walls_folder
from rootsd.wall.git.wall_folders import (
    KEPT,
    LOCK,
    has_ended,
    is_abandoned,
    wall_folders,
)
from rootsd.wall.kernel.orders import PauseNews, PauseState
from rootsd.wall.kernel.warden import (
    WaitingWarden,
    WallSetupFailed,
    Warden,
    WardenSettings,
    WardenStart,
)
from rootsd.wall.session.begin import CannotConfine, begin
from rootsd.wall.session.engines import WallKind, engine_for
from rootsd.wall.session.messages import print_line
from rootsd.wall.session.options import ConfineOptions
from rootsd.wall.session.push_relay import PushRelay
from rootsd.wall.session.relay_questions import Asked
from rootsd.wall.session.running_walls import claim
from rootsd.wall.session.session_view import ComposedView
from rootsd.wall.session.view_feed import WallSubscription, answered
from rootsd.wall.session.worktree_front import worktree_entries
from rootsd.wall.view.default_view import DEFAULTS, SCRUBBED_VARIABLES
from rootsd.wall.view.standard_files import STANDARD, fill_closed_files, refused_kind
from rootsd.wire.requested_scope import RequestedScope

_ORIGINS = b"/origins.json"
_MAX_SLOTS = 256


def known_origins() -> bytes:
    return os.path.dirname(walls_folder()) + _ORIGINS


def relay_for(view: ComposedView, folder: bytes, own: tuple[int, ...]) -> PushRelay:
    """Return the relay for git. `own` are the terminals to ask on."""
    asked = Asked.PERSON if own else Asked.NOBODY
    try:
        return PushRelay(folder, known_origins(), view.push, asked, view.writable())
    except OSError as error:
        raise CannotConfine(f"git cannot be served: {error.strerror}", "rootsd doctor") from error


class ClaimedFolder(NamedTuple):
    """The private folder of a wall, and the lock that reserves it while the warden lives."""

    path: bytes
    lock: int


def state_folder(label: str) -> bytes:
    """Return the folder for what the confined programs with this name keep."""
    return walls_folder() + b"/" + folder_name(label)


def claim_folder(label: str) -> ClaimedFolder:
    """Return a folder for a wall. Before that, print what killed sessions have left.

    Two programs of one name that run at once get two folders, because each start has private ones.
    """
    walls = walls_folder()
    if any(map(is_abandoned, wall_folders(walls))):
        _clean_up(walls)
    for slot in range(_MAX_SLOTS):
        folder = state_folder(label) + b"/%d" % slot
        os.makedirs(folder, 0o700, exist_ok=True)
        lock = os.open(folder + LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not has_ended(folder):  # killed since the look above
                _conclude(folder)
        except OSError:
            os.close(lock)
            continue
        claim(lock)
        return ClaimedFolder(folder, lock)
    raise CannotConfine(f"{_MAX_SLOTS} programs named {label} are confined", "--name NAME")


def _conclude(folder: bytes) -> None:
    from rootsd.wall.git.left_behind import SessionEnd  # noqa: PLC0415
    from rootsd.wall.git.session_baseline import SessionBaseline  # noqa: PLC0415 - only here

    if (killed := SessionBaseline.read(folder)) is not None:
        killed.conclude(SessionEnd.KILLED)


def _clean_up(walls: bytes) -> None:
    from rootsd.wall.git.left_behind_reports import conclude_killed  # noqa: PLC0415 - after a kill
    from rootsd.wall.session.kept_names import remove_left  # noqa: PLC0415

    for report in conclude_killed(walls):
        for sentence in report.sentences():
            print_line(sentence)
    remove_left(walls)


class StartedWith(NamedTuple):
    """What a warden starts with, beside the view: roots and denied folders, or its own feed."""

    roots: tuple[ConfinedRoot, ...] = ()
    denied: frozenset[bytes] = frozenset()
    feed: Feed | None = None


def start_warden(
    waiting: WaitingWarden,
    kind: WallKind,
    view: ComposedView,
    folder: ClaimedFolder,
    relay: PushRelay | None,
    given: StartedWith,
) -> Warden:
    """Start a warden in a folder that `claim_folder` returned. Raises CannotConfine."""
    entries = view.entries
    fds = [folder.lock]
    if relay is not None:
        entries = (*entries, *relay.entries)
        fds.append(relay.listener.fileno())
    followed = None
    if given.feed is not None:  # the warden waits for the line, also if the daemon has just ended
        followed = view.heard(given.feed), given.feed.connection().fileno()
    try:
        if view.has_new_worktrees:
            entries = (*entries, *worktree_entries(folder.path))
        settings = WardenSettings(
            folder.path, entries, view.home, view.protection, view.on_revoke, view.without,
            os.path.dirname(folder.path) + KEPT, view.has_new_worktrees,
        )  # fmt: skip
        start = WardenStart(settings, given.roots, given.denied)

        def serve_until(channel: socket.socket) -> None:
            import rootsd.wall.kernel.cell  # noqa: PLC0415, F401 - the warden works meanwhile

            if relay is not None:
                relay.find_until(channel)

        return waiting.start(start, fds, serve_until, followed)
    except WallSetupFailed as error:
        raise kind.explain(error) from error
    finally:
        os.close(folder.lock)


def end_wall(warden: Warden, relay: PushRelay | None) -> list[str]:
    """End the warden, and with it the programs. Return what they left behind, and were refused."""
    return [*warden.end(), *(relay.end() if relay is not None else ())]


def check_standard_files(fds: Iterable[int]) -> None:
    """Raise CannotConfine if one of these standard files would lead out of the wall."""
    for fd in fds:
        if kind := refused_kind(fd):
            remedy = "the same with < FILE" if fd == 0 else f"the same with {fd}> FILE"
            raise CannotConfine(f"{STANDARD[fd]} is {kind}", remedy)


def environment_inside(
    outside: Mapping[str, str], label: str, view: ComposedView, warden: Warden
) -> dict[str, str]:
    """Return the environment of a program, without the variables that lead outside."""
    scrubbed = {os.fsdecode(name) for name in SCRUBBED_VARIABLES}
    inside = {name: text for name, text in outside.items() if name not in scrubbed}
    own = {os.fsdecode(name): os.fsdecode(text) for name, text in view.variables.items()}
    home = os.fsdecode(view.home)
    if "XDG_RUNTIME_DIR" in inside:  # it may be elsewhere: WSLg has its own
        inside["XDG_RUNTIME_DIR"] = f"/run/user/{os.geteuid()}"
    return {
        **DEFAULTS,
        **inside,
        **own,
        CONFINED_VARIABLE: label,
        "HOME": home,
        **warden.variables,
    }


def describe_pause(news: PauseNews, label: str) -> str:
    """Return a sentence for people: why the program was stopped, or that it continues."""
    shown = safe_label(label)
    if news.state is PauseState.STOPPED:
        return f"{news.why}, so {shown} waits; try: {news.remedy}"
    return f"{shown} continues"


def open_and_closed(view: ComposedView) -> Iterator[str]:
    yield from view.stays_open
    if view.closed:
        yield f"closed: {'; '.join(view.closed)}"


class OwnedWall(NamedTuple):
    """A wall that its owner changes by orders over `warden.channel`.

    `subscription` still has its connection, for the owner to follow. The `relay` serves git
    inside, and outlives a warden.
    """

    label: str
    kind: WallKind
    view: ComposedView
    warden: Warden
    subscription: WallSubscription
    relay: PushRelay | None = None

    def sentences(self) -> Iterator[str]:
        """Return what people need to know at the start."""
        return chain(self.warden.notes, self.view.notes, open_and_closed(self.view))

    def end(self) -> None:
        """End the warden and the relay, and print what the programs have left behind."""
        for sentence in end_wall(self.warden, self.relay):
            print_line(sentence)

    def renewed(self, roots: tuple[ConfinedRoot, ...], denied: frozenset[bytes]) -> OwnedWall:
        """End the warden, and return the wall with another one that shows `roots`.

        It shows nothing of the `denied` folders.

        Raises RootsdError.
        """
        self.warden.close_gate()
        for sentence in end_wall(self.warden, None):
            print_line(sentence)
        self.warden.reap()
        folder = claim_folder(self.label)
        given = StartedWith(roots, denied)
        waiting = self.kind.engine.fork_warden(self.subscription.feed.close)
        warden = start_warden(waiting, self.kind, self.view, folder, self.relay, given)
        return self._replace(warden=warden)


def build_owned_wall(options: ConfineOptions, scope: RequestedScope) -> OwnedWall:
    """Build a wall whose owner orders each change. Raises RootsdError.

    The owner is `rootsd run`, so the daemon lists its server as a session, too.
    """
    fill_closed_files()
    check_standard_files((2,))  # the owner makes pipes for the others
    begun = begin(options, scope, WallUse.SERVER)
    try:
        kind = engine_for(options)
        subscription = answered(begun.feed)
        denied = subscription.view.denied
        view = kind.compose(options, subscription).without_denied(denied)
        roots = view.masked(subscription.roots)
        kind.check(options, view)
        folder = claim_folder(options.label)
        relay = relay_for(view, folder.path, ())
        relay.start()  # the proxy has no time for it
        given = StartedWith(roots, denied)
        warden = start_warden(begun.warden, kind, view, folder, relay, given)
    except BaseException:
        begun.give_up()
        raise
    return OwnedWall(options.label, kind, view, warden, subscription, relay)
