"""Routes of control requests: which handler answers one, and whether the guard must admit it.

Each family of handlers lists its requests as `Route` values, and `rootsd.control.dispatch`
collects them. A request that decides anything, or that changes who may decide, must be a command.
The guard judges the caller of a command before the handler runs. `guarded_command` has no default,
so every route must say whether its requests are commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field

from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, ActorKind
from rootsd.wire.request import ControlRequest
from rootsd.wire.scans import ScanProgressItem

R = TypeVar("R", bound=ControlRequest)
Result = Mapping[str, Any]
ProgressSink = Callable[[ScanProgressItem], None]

COMMAND_TEXT_LIMIT = 200
_MAX_PREVIEW_LINES = 20
DRY_RUN_ACTOR = Actor(ActorKind.PERSON)
"""The actor of a dry run, which changes nothing."""


class GuardedCommand(Struct, frozen=True):
    """A command that the guard must admit.

    `text` is the command as people type it. `preview` returns the lines that a person reads before
    they confirm it.
    """

    text: str
    preview: Callable[[], Awaitable[Sequence[str]]]


class Subscription(Protocol):
    """Notifications that a connection gets until it ends, beside the answers to its requests."""

    async def send_updates(
        self, send: Callable[[str, Mapping[str, Any]], Awaitable[None]]
    ) -> None:
        """Send notifications, each with its method and its params, until canceled."""

    def close(self) -> None:
        """End the subscription, because the connection has ended."""


class ConnectionState(Struct):
    """The state that handlers keep for a connection. `pid` is the peer's, or 0 if unknown."""

    pid: int = 0
    subscription: Subscription | None = None


class RequestContext(Struct, frozen=True):
    """The caller of a request, the receiver of progress if it is long, and its connection."""

    actor: Actor
    progress: ProgressSink | None = None
    connection: ConnectionState = field(default_factory=ConnectionState)


class Route(Struct, Generic[R], frozen=True):
    """One type of request and its handler.

    `guarded_command` returns the command in a request, or None if the request decides nothing. It
    is not asked about a dry run.
    `afterwards` runs once the response is sent. `needs_caller` says whether the handler of a query
    needs to know the caller. Some queries belong to a command that the guard allows to agents, but
    records. `recorded_command` returns that command, or an empty text for other queries.
    """

    request_type: type[R]
    answer: Callable[[R, RequestContext], Awaitable[Result]]
    guarded_command: Callable[[R], GuardedCommand | None]
    afterwards: Callable[[], None] | None = None
    needs_caller: Callable[[R], bool] = lambda _: False
    recorded_command: Callable[[R], str] = lambda _: ""


def query_route(request_type: type[R], answer: Callable[[R], Awaitable[Result]]) -> Route[R]:
    """Return the route of a request that decides nothing."""
    return Route(request_type, lambda request, _: answer(request), lambda _: None)


def command_route(
    request_type: type[R],
    answer: Callable[[R, Actor], Awaitable[Result]],
    guarded_command: Callable[[R], GuardedCommand],
) -> Route[R]:
    """Return the route of a request that decides something, unless it is a dry run."""
    return Route(request_type, lambda request, call: answer(request, call.actor), guarded_command)


def plain_route(
    request_type: type[R],
    answer: Callable[[R, Actor], Awaitable[Result]],
    text: Callable[[R], str],
) -> Route[R]:
    """Return the route of a request that decides something, with its text as the preview."""
    return command_route(request_type, answer, lambda request: plain_command(text(request)))


def plain_command(text: str) -> GuardedCommand:
    """Return a command with its text as the preview."""
    safe = safe_label(text, COMMAND_TEXT_LIMIT)

    async def preview() -> Sequence[str]:
        return (f"rootsd {safe}",)

    return GuardedCommand(safe, preview)


def shorten_preview(lines: Iterable[str]) -> Sequence[str]:
    """Return the first lines of a preview, and how many more there are."""
    lines = [*lines]
    more = len(lines) - _MAX_PREVIEW_LINES
    return [*lines[:_MAX_PREVIEW_LINES], f"and {more} more"] if more > 0 else lines
