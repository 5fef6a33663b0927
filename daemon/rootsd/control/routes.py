"""Routes of control requests: which handler answers one, and whether the guard must admit it.

Each family of handlers lists its requests as `Entry` values; `rootsd.control.dispatch` holds them
all. What decides anything, or changes who may, has to be an order: the gate is asked before it is
carried out. So an entry cannot be made without saying which of the two it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    """What is asked for: `words` tell it, `stakes` are the lines that a person is to read before
    it is confirmed."""

    words: str
    stakes: Callable[[], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Who asks, and who is told of the progress meanwhile."""

    actor: Actor
    progress: ProgressSink | None = None


@dataclass(frozen=True, slots=True)
class Route(Generic[R]):
    """One kind of request. `order_in` makes the order that a request is, or None where it only
    looks; `afterwards` is called once the answer is out. `asks_who`: it is no order, and yet its
    `Call` has to name the one who asks. `command_in` is the command that a request is part of,
    which decides nothing and which an agent may give, on record; empty for none."""

    form: type[R]
    answer: Callable[[R, RequestContext], Awaitable[Result]]
    order_in: Callable[[R], GuardedCommand | None]
    afterwards: Callable[[], None] = lambda: None
    asks_who: Callable[[R], bool] = lambda _: False
    command_in: Callable[[R], str] = lambda _: ""


class RouteSource(Protocol):
    """Something outside this package that answers control requests."""

    def entries(self) -> Iterable[Route[Any]]:
        """Return its routes."""
        ...


def query_route(form: type[R], answer: Callable[[R], Awaitable[Result]]) -> Route[R]:
    """What changes no decision."""
    return Route(form, lambda request, _: answer(request), lambda _: None)


def command_route(
    form: type[R],
    answer: Callable[[R, Actor], Awaitable[Result]],
    order_in: Callable[[R], GuardedCommand | None],
) -> Route[R]:
    """What a person decides; `order_in` may find that one request of that kind only looks."""
    return Route(form, lambda request, call: answer(request, call.actor), order_in)


def plain_command(words: str) -> GuardedCommand:
    """An order whose words say all that is at stake: those of the command line."""
    safe = safe_label(words, COMMAND_TEXT_LIMIT)

    async def stakes() -> Sequence[str]:
        return (f"rootsd {safe}",)

    return GuardedCommand(safe, stakes)
