"""Begin a wall: let other processes work while this one loads the rest of its modules.

The daemon answers, and the warden loads its own modules. What the warden and this process both
need is loaded before the fork, so that it takes memory once.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import NamedTuple

from rootsd.agents import agent_files
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.wall import WallUse
from rootsd.link.feed import Feed
from rootsd.link.sandbox import CONFINED_VARIABLE
from rootsd.wall.kernel import landlock
from rootsd.wall.kernel.engine import Engine, NamespaceEngine, StaticEngine
from rootsd.wall.kernel.warden import WaitingWarden
from rootsd.wall.session.options import ConfineOptions, Opening
from rootsd.wall.session.view_feed import ask, follow_heard, follow_params
from rootsd.wall.system_calls import is_supported_machine
from rootsd.wire.hello import Hello
from rootsd.wire.requested_scope import RequestedScope


class CannotConfine(RootsdError):
    """The system does not allow a wall, so nothing was started."""

    code = ErrorCode.REFUSED


class BegunWall(NamedTuple):
    """A warden that loads its modules, and the feed of a daemon that has been asked."""

    options: ConfineOptions
    scope: RequestedScope
    use: WallUse
    warden: WaitingWarden
    feed: Feed

    def give_up(self) -> None:
        """End the warden if it was not started, and hang up."""
        self.warden.close()
        self.feed.close()


def begin(options: ConfineOptions, scope: RequestedScope, use: WallUse) -> BegunWall:
    """Fork the warden, and ask the daemon for the roots in `scope`. Raises CannotConfine."""
    _check_platform()
    is_static = Opening.STATIC in options.flags
    engine: Engine = StaticEngine() if is_static else NamespaceEngine()
    has_landlock = is_static or Opening.NESTED not in options.flags
    program = {
        "pid": os.getpid(),
        "program": options.words[0] if options.words else "",
        "engine": engine.kind.value,
        "landlock": landlock.version() if has_landlock else 0,
        "network": Opening.NO_NETWORK not in options.flags,
    }
    params = follow_params(Hello(client=options.label, scope=scope), program, use)
    # `rootsd run` sends the roots to its warden itself.
    follow = partial(follow_heard, params) if use is WallUse.PROGRAM else None
    feed = ask(params)
    _load_common()
    return BegunWall(options, scope, use, engine.fork_warden(feed.close, follow), feed)


def _load_common() -> None:
    import rootsd.wall.git.shared_folder  # noqa: PLC0415
    import rootsd.wall.git.system_git  # noqa: PLC0415
    import rootsd.wall.kernel.new_worktrees  # noqa: PLC0415
    import rootsd.wall.view.denied_base  # noqa: F401, PLC0415

    agent_files()


def _check_platform() -> None:
    if sys.platform != "linux":
        raise CannotConfine(
            "confine works on Linux only: macOS cannot take a folder away from a running program",
            "rootsd run, without --confine",
        )
    if not is_supported_machine():
        raise CannotConfine("confine does not know this processor's system calls", "uname -m")
    if os.environ.get(CONFINED_VARIABLE):
        raise CannotConfine(
            "this program is confined already", "the program itself, without rootsd confine"
        )
