"""What a control request is to the daemon: how it is answered, and whether it is an order.

Each family of handlers lists its requests as `Entry` values; `rootsd.app.control.desk` holds them
all. What decides anything, or changes who may, has to be an order: the gate is asked before it is
carried out. So an entry cannot be made without saying which of the two it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rootsd.core.labels import safe_label
from rootsd.core.model import Actor
from rootsd.wire.request import Request
from rootsd.wire.scans import Progress

R = TypeVar("R", bound=Request)
Answer = Mapping[str, Any]
ProgressSink = Callable[[Progress], None]

WORDS_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for: `words` tell it, `stakes` are the lines that a person is to read before
    it is confirmed."""

    words: str
    stakes: Callable[[], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Call:
    """Who asks, and who is told of the progress meanwhile."""

    actor: Actor
    progress: ProgressSink | None = None


@dataclass(frozen=True, slots=True)
class Entry(Generic[R]):
    """One kind of request. `order_in` makes the order that a request is, or None where it only
    looks; `afterwards` is called once the answer is out. `asks_who`: it is no order, and yet its
    `Call` has to name the one who asks. `command_in` is the command that a request is part of,
    which decides nothing and which an agent may give, on record; empty for none."""

    form: type[R]
    answer: Callable[[R, Call], Awaitable[Answer]]
    order_in: Callable[[R], Order | None]
    afterwards: Callable[[], None] = lambda: None
    asks_who: Callable[[R], bool] = lambda _: False
    command_in: Callable[[R], str] = lambda _: ""


def look(form: type[R], answer: Callable[[R], Awaitable[Answer]]) -> Entry[R]:
    """What changes no decision."""
    return Entry(form, lambda request, _: answer(request), lambda _: None)


def order(
    form: type[R],
    answer: Callable[[R, Actor], Awaitable[Answer]],
    order_in: Callable[[R], Order | None],
) -> Entry[R]:
    """What a person decides; `order_in` may find that one request of that kind only looks."""
    return Entry(form, lambda request, call: answer(request, call.actor), order_in)


def plain(words: str) -> Order:
    """An order whose words say all that is at stake: those of the command line."""
    safe = safe_label(words, WORDS_LIMIT)

    async def stakes() -> Sequence[str]:
        return (f"rootsd {safe}",)

    return Order(safe, stakes)
