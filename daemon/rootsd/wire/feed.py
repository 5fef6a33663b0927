"""Read the feed: the messages with which the daemon keeps a program informed. Pure.

There is one way to follow the daemon. A program sends the request `follow` on the control socket.
The request names the version of this protocol, what to send, and, in a hello, the scope. The
daemon answers, and sends notifications from then on. The first ones have everything, the later
ones only what has changed. Each has the next number, so a reader notices if one is missing.

After a message that cannot be understood, or one that is missing, nothing is known. Then a program
must connect again. `rootsd.wire.follow` has the other records, and `rootsd.link.feed` the
connection. This module uses the standard library only, because wardens and proxies import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.mount_plan import ConfinedRoot, RemovedRoot
from rootsd.core.quick_tuple import NamedTuple
from rootsd.wire.hello import MoveResult, read_move
from rootsd.wire.jsonrpc import (
    ErrorResponse,
    LineReader,
    LineTooLong,
    Notification,
    Response,
    parse,
)

FEED_VERSION = 1
"""The version of this protocol, with the hello. A program and a daemon that differ in it do not go
together.
"""
FOLLOW_METHOD = "follow"
FOLLOW_ID = 1
"""The id of the request `follow`. Other requests on the connection have other ids."""
CHANGE_METHOD = "change"
"""The notification with a `FeedChange`."""
GIVE_METHOD = "give"
"""The notification with `GivenFiles`, for a program behind the wall."""
WIDEN_METHOD = "widen"
"""The notification with a `WidenedScope`, for a program behind the wall."""
MOVE_METHOD = "move"
"""The request with `WorkFolders`, after which the roots are those of another place."""
MOVE_ID_PREFIX = "move-"
MAX_FEED_LINE_BYTES = 1 << 28

_RESTART = "rootsd down && rootsd up"


class RootsChange(NamedTuple):
    """A change of the roots in the scope of a follower."""

    changed: tuple[ConfinedRoot, ...]
    """The roots that are new, or differ from the root of the same path before."""
    removed: tuple[RemovedRoot, ...]
    """The roots that are gone."""
    denied: frozenset[bytes] | None
    """All denied folders, or null if they are those of the message before. None of them
    lies inside another. A warden masks what system files, toolchains, and caches show of them.
    """


class GivenFiles(NamedTuple):
    """Files that a person gives to a program behind the wall."""

    folder: str
    """The name of a folder with the copies, which are called 0, 1, and so on."""
    paths: tuple[bytes, ...]
    """Where the program gets to see them."""


class WidenedScope(NamedTuple):
    """What the scope of a program has now besides, to be asked for on its next connection."""

    names: tuple[str, ...]
    """Names of roots."""
    tags: tuple[str, ...]
    """Tags of roots."""


class BadFeed(RootsdError):
    """A daemon that this program cannot follow, because of an answer or another message of it."""


class OtherVersion(RootsdError):
    """A program that speaks another version of the feed than the daemon."""


class Connected(NamedTuple):
    """A daemon has answered with a `FollowResult`. It sends everything from the beginning."""

    result: dict[str, Any]


class Changed(NamedTuple):
    """Something has changed: a `FeedChange`."""

    change: dict[str, Any]


class Given(NamedTuple):
    """A person gives files to the program: `GivenFiles`."""

    files: dict[str, Any]


class Widened(NamedTuple):
    """Somebody has added roots to the scope of the program: a `WidenedScope`."""

    scope: dict[str, Any]


class Away(NamedTuple):
    """No daemon can be followed now, and nothing that it sent is sure any more.

    `why` is a BadFeed if there is a daemon that cannot be followed.
    """

    why: RootsdError


class SessionMoved(NamedTuple):
    """The daemon has answered the request `id` to move. Its roots were sent before."""

    id: str
    outcome: MoveResult | RootsdError


FeedEvent = Connected | Changed | Given | SessionMoved | Away


class FeedReader:
    """Reads the messages on one connection."""

    def __init__(self) -> None:
        self.is_answered = False
        """Whether the daemon has accepted the follower."""
        self._lines = LineReader(MAX_FEED_LINE_BYTES)
        self._awaited = 0

    def read(self, data: bytes) -> Iterator[Connected | Changed | Given | SessionMoved | Widened]:
        """Yield what `data` completes. Raises BadFeed, also for an error that the daemon sent."""
        self._lines.feed(data)
        try:
            while (line := self._lines.pop()) is not None:
                match parse(line):
                    case Notification(method, dict() as params):
                        yield from self._told(method, params)
                    case Response(id_, dict() as result) if id_ == FOLLOW_ID:
                        self.is_answered = True
                        yield Connected(result)
                    case ErrorResponse(id_) as answer if id_ == FOLLOW_ID:
                        raise _error_in(answer)
                    case (Response(str() as id_) | ErrorResponse(str() as id_)) as answer if (
                        id_.startswith(MOVE_ID_PREFIX)
                    ):
                        yield SessionMoved(id_, read_move(answer))
                    case Notification() | Response() | ErrorResponse():
                        pass  # it answers another request, or comes from a newer daemon
                    case _:
                        raise BadFeed("the daemon does not answer as expected", _RESTART)
        except LineTooLong as error:
            raise BadFeed("the daemon sent a message that is too long", _RESTART) from error

    def _told(self, method: str, params: dict[str, Any]) -> Iterator[Changed | Given | Widened]:
        if method == CHANGE_METHOD:
            if not self.is_answered or params.get("number") != self._awaited:
                raise BadFeed("the daemon left out a change", _RESTART)
            self._awaited += 1
            yield Changed(params)
        elif method == GIVE_METHOD:
            yield Given(params)
        elif method == WIDEN_METHOD:
            yield Widened(params)


def refuse_other_version(version: int) -> None:
    """Raise OtherVersion for a program that does not speak this daemon's version of the feed."""
    if version != FEED_VERSION:
        raise OtherVersion(
            f"this program speaks version {version} of the feed of rootsd, and the daemon version"
            f" {FEED_VERSION}",
            f"start the program again, or {_RESTART}" if version < FEED_VERSION else _RESTART,
        )


def _error_in(answer: ErrorResponse) -> BadFeed:
    match answer.data:
        case {"remedy": str() | None as remedy, "code": str() as code}:
            error = BadFeed(answer.message, remedy or "")
            error.code = ErrorCode(code) if code in [*ErrorCode] else error.code
            return error
        case _:
            return BadFeed(answer.message, _RESTART)
