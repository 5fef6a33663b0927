"""Build a wall that has begun, and keep its parts: what `rootsd confine` and `run` share."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from rootsd.core.labels import safe_label
from rootsd.core.mount_plan import ConfinedRoot, only_at
from rootsd.core.wall import WallUse
from rootsd.link.sandbox import CONFINED_VARIABLE
from rootsd.places.base_folders import walls_folder
from rootsd.wall.git.wall_folders import KEPT
from rootsd.wall.kernel.orders import PauseNews, PauseState
from rootsd.wall.kernel.warden import (
    WaitingWarden,
    WallSetupFailed,
    Warden,
    WardenSettings,
    WardenStart,
)
from rootsd.wall.session.begin import BegunWall, CannotConfine, begin
from rootsd.wall.session.claimed_folder import ClaimedFolder, claim_folder
from rootsd.wall.session.engines import WallKind, engine_for
from rootsd.wall.session.messages import print_line
from rootsd.wall.session.options import ConfineOptions
from rootsd.wall.session.push_relay import PushRelay
from rootsd.wall.session.relay_questions import Asked
from rootsd.wall.session.session_view import ComposedView
from rootsd.wall.session.view_feed import WallSubscription, answered
from rootsd.wall.session.worktree_front import GitFront, git_entries, path_inside
from rootsd.wall.view.default_view import DEFAULTS, SCRUBBED_VARIABLES
from rootsd.wall.view.standard_files import STANDARD, refused_kind
from rootsd.wire.requested_scope import RequestedScope

_ORIGINS = b"/origins.json"


class BuiltWall(NamedTuple):
    """A wall for programs of this process.

    For a program, the warden follows the daemon. The wall of a server is changed by orders over
    `warden.channel`, and its owner follows the `subscription`. The `relay` serves git inside, and
    outlives a warden.
    """

    options: ConfineOptions
    kind: WallKind
    view: ComposedView
    subscription: WallSubscription
    warden: Warden
    relay: PushRelay

    def sentences(self) -> Iterator[str]:
        """Return what people need to know at the start."""
        return chain(self.warden.notes, self.view.notes, self.open_and_closed())

    def open_and_closed(self) -> Iterator[str]:
        """Yield what stays open, and what is closed."""
        yield from self.view.stays_open
        if self.view.closed:
            yield f"closed: {'; '.join(self.view.closed)}"

    def describe_pause(self, news: PauseNews) -> str:
        """Return a sentence for people: why the program was stopped, or that it continues."""
        shown = safe_label(self.options.label)
        if news.state is PauseState.STOPPED:
            return f"{news.why}, so {shown} waits; try: {news.remedy}"
        return f"{shown} continues"

    def environment(self, outside: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a program, without the variables that lead outside."""
        scrubbed = {os.fsdecode(name) for name in SCRUBBED_VARIABLES}
        inside = {name: text for name, text in outside.items() if name not in scrubbed}
        own = {os.fsdecode(name): os.fsdecode(text) for name, text in self.view.variables.items()}
        if self.view.git_front is not GitFront.NONE:
            inside["PATH"] = path_inside(inside.get("PATH", ""))
        if "XDG_RUNTIME_DIR" in inside:  # it may be elsewhere: WSLg has its own
            inside["XDG_RUNTIME_DIR"] = f"/run/user/{os.geteuid()}"
        return {
            **DEFAULTS,
            **inside,
            **own,
            CONFINED_VARIABLE: self.options.label,
            "HOME": os.fsdecode(self.view.home),
            **self.warden.variables,
        }

    def end(self) -> list[str]:
        """End the wall. Return what the programs left behind, and what git was refused."""
        return [*self.warden.end(), *self.relay.end()]

    def renewed(self, roots: tuple[ConfinedRoot, ...], denied: frozenset[bytes]) -> BuiltWall:
        """End the warden, and return the wall with another one that shows `roots`.

        It shows nothing of the `denied` folders.

        Raises RootsdError.
        """
        self.warden.close_gate()
        for sentence in self.warden.end():
            print_line(sentence)
        self.warden.reap()
        folder = claim_folder(self.options.label)
        waiting = self.kind.engine.fork_warden(self.subscription.feed.close)
        start = WardenStart(_settings(self.view, folder, self.relay), roots, denied)
        return self._replace(warden=_start(waiting, self.kind, start, folder, self.relay))


def build(
    begun: BegunWall,
    kind: WallKind,
    view: ComposedView,
    subscription: WallSubscription,
    own: tuple[int, ...] = (),
) -> BuiltWall:
    """Build a wall that has begun. `own` are the terminals to ask on. Raises RootsdError."""
    folder = claim_folder(begun.options.label)
    relay = _relay_for(view, folder.path, own)
    fds = list[int]()
    start = WardenStart(_settings(view, folder, relay))
    feed = subscription.feed
    if begun.use is WallUse.PROGRAM:
        start = start._replace(followed=view.followed(bytes(feed.heard or b"")))
        fds.append(feed.connection().fileno())  # the warden goes on, also without a daemon
    else:
        roots = only_at(view.below, view.masked(subscription.roots))
        start = start._replace(roots=roots, denied=subscription.view.denied)
    warden = _start(begun.warden, kind, start, folder, relay, fds)
    if begun.use is WallUse.PROGRAM:
        feed.close()
    else:
        relay.start()  # the owner has no time for it
    return BuiltWall(begun.options, kind, view, subscription, warden, relay)


def build_for_server(
    options: ConfineOptions, scope: RequestedScope, within: bytes | None
) -> BuiltWall:
    """Begin and build the wall of a server, whose owner orders each change. Raises RootsdError.

    The server sees the folder `within` alone, or whole roots if that is None.
    """
    check_standard_files((2,))  # the owner makes pipes for the others
    begun = begin(options, scope, WallUse.SERVER)
    try:
        kind = engine_for(options)
        subscription = answered(begun.feed)
        view = kind.compose(options, subscription)._replace(below=within or b"")
        kind.check(options, view)
        return build(begun, kind, view, subscription)
    except BaseException:
        begun.give_up()
        raise


def known_origins() -> bytes:
    """Return the file with the origins that no program can have set."""
    return os.path.dirname(walls_folder()) + _ORIGINS


def check_standard_files(fds: Iterable[int]) -> None:
    """Raise CannotConfine if one of these standard files would lead out of the wall."""
    for fd in fds:
        if kind := refused_kind(fd):
            remedy = "the same with < FILE" if fd == 0 else f"the same with {fd}> FILE"
            raise CannotConfine(f"{STANDARD[fd]} is {kind}", remedy)


def _relay_for(view: ComposedView, folder: bytes, own: tuple[int, ...]) -> PushRelay:
    asked = Asked.PERSON if own else Asked.NOBODY
    try:
        return PushRelay(folder, known_origins(), view.push, asked, view.writable())
    except OSError as error:
        raise CannotConfine(f"git cannot be served: {error.strerror}", "rootsd doctor") from error


def _settings(view: ComposedView, folder: ClaimedFolder, relay: PushRelay) -> WardenSettings:
    entries = (*view.entries, *relay.entries, *git_entries(view.git_front, folder.path))
    return WardenSettings(
        folder.path, entries, view.home, view.protection, view.on_revoke, view.without,
        os.path.dirname(folder.path) + KEPT, view.git_front is GitFront.ASKS,
    )  # fmt: skip


def _start(
    waiting: WaitingWarden,
    kind: WallKind,
    start: WardenStart,
    folder: ClaimedFolder,
    relay: PushRelay,
    fds: Iterable[int] = (),
) -> Warden:
    """Start a warden in a folder that was claimed for it. Raises CannotConfine."""

    def serve_until(channel: socket.socket) -> None:
        import rootsd.wall.kernel.cell  # noqa: PLC0415, F401 - the warden works meanwhile

        relay.find_until(channel)

    try:
        return waiting.start(start, [folder.lock, relay.listener.fileno(), *fds], serve_until)
    except WallSetupFailed as error:
        raise kind.explain(error) from error
    finally:
        os.close(folder.lock)
