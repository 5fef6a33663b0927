"""Routes of control requests: which handler answers one, and whether the guard must admit it.

Each family of handlers lists its requests as `Route` values, and `rootsd.control.dispatch`
collects them. A request that decides anything, or that changes who may decide, must be a command:
the guard is asked before the handler runs. `Route` therefore requires `guarded_command`, so that
every request must say whether it is one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from rootsd.core.labels import safe_label
from rootsd.core.model import Actor
from rootsd.wire.daemon import ScanProgressItem
from rootsd.wire.request import ControlRequest

R = TypeVar("R", bound=ControlRequest)
Result = Mapping[str, Any]
ProgressSink = Callable[[ScanProgressItem], None]

COMMAND_TEXT_LIMIT = 200


@dataclass(frozen=True, slots=True)
class GuardedCommand:
    """A command that the guard must admit.

    `text` is the command as people type it. `preview` returns the lines that a person reads before
    confirming it.
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
        """End the subscription: the connection has ended."""


@dataclass(slots=True)
class ConnectionState:
    """What handlers keep for the rest of a connection. `pid` is the peer's, or 0 if unknown."""

    pid: int = 0
    subscription: Subscription | None = None


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The caller of a request, its connection, and the receiver of progress while it runs."""

    actor: Actor
    progress: ProgressSink | None = None
    connection: ConnectionState = field(default_factory=ConnectionState)


@dataclass(frozen=True, slots=True)
class Route(Generic[R]):
    """One type of request and its handler.

    `guarded_command` returns the command that a request is, or None if it decides nothing.
    `afterwards` runs once the response is sent. `needs_caller` says whether the handler of a query
    needs the caller. `recorded_command` returns the command that a query belongs to, if the
    guard allows agents to give it and records that; it is empty for other queries.
    """

    request_type: type[R]
    answer: Callable[[R, RequestContext], Awaitable[Result]]
    guarded_command: Callable[[R], GuardedCommand | None]
    afterwards: Callable[[], None] = lambda: None
    needs_caller: Callable[[R], bool] = lambda _: False
    recorded_command: Callable[[R], str] = lambda _: ""


class RouteSource(Protocol):
    """Something outside this package that answers control requests."""

    def routes(self) -> Iterable[Route[Any]]:
        """Return its routes."""
        ...


def query_route(request_type: type[R], answer: Callable[[R], Awaitable[Result]]) -> Route[R]:
    """Return the route of a request that decides nothing."""
    return Route(request_type, lambda request, _: answer(request), lambda _: None)


def command_route(
    request_type: type[R],
    answer: Callable[[R, Actor], Awaitable[Result]],
    guarded_command: Callable[[R], GuardedCommand | None],
) -> Route[R]:
    """Return the route of a request that decides something.

    `guarded_command` may return None for a request of that type that does not, such as a dry run.
    """
    return Route(request_type, lambda request, call: answer(request, call.actor), guarded_command)


def plain_command(text: str) -> GuardedCommand:
    """Return a command whose text is its whole preview."""
    safe = safe_label(text, COMMAND_TEXT_LIMIT)

    async def preview() -> Sequence[str]:
        return (f"rootsd {safe}",)

    return GuardedCommand(safe, preview)
