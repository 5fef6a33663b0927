"""The control socket's connections: each asks the gate before an order of its is followed."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import assert_never

from anyio import to_thread
from anyio.abc import SocketAttribute, SocketStream

from rootsd.app.control import serve_control
from rootsd.app.gate import Gate, Lineages, Order, Visit
from rootsd.app.requests import Desk
from rootsd.core.callers import Guard
from rootsd.core.changes import Note
from rootsd.core.errors import CallerRefused, UnknownProject
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, ActorKind, Verdict
from rootsd.host.helper.callers import ask_lineages
from rootsd.host.helper.link import Helper, NoAnswer
from rootsd.host.peer import Peer
from rootsd.host.visitor import Visitor
from rootsd.wire.adding import Addition
from rootsd.wire.control import (
    Decide,
    Effect,
    ProjectsQuery,
    Reload,
    Request,
    ScanOrder,
    Selection,
    StatusQuery,
    Stop,
)
from rootsd.wire.facts import ShowQuery
from rootsd.wire.guarding import GuardQuery, LogQuery, SetGuard
from rootsd.wire.rules import RuleAddition, RuleRemoval, RulesQuery
from rootsd.wire.sessions import SessionsQuery
from rootsd.wire.standing import CheckQuery, WhyQuery

log = logging.getLogger(__name__)

_MOST_STAKES = 20
_WORDS_LIMIT = 200
_LACKING = (
    "whether a copy is finished is told by quiet times alone, and every order has to be confirmed "
    "on a terminal; rootsd down && rootsd up brings it back"
)
_LOOKER = Actor(ActorKind.PERSON)


class Door:
    """Serves control connections; `desk` answers them."""

    def __init__(self, gate: Gate, desk: Desk) -> None:
        self._gate = gate
        self._desk = desk

    async def serve(self, stream: SocketStream, peer: Peer) -> None:
        """Answer what comes on `stream`, which is closed at the end."""
        connection = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django here
        with closing(Visitor(connection, peer.pid)) as visitor:
            admit = partial(self._admit, visitor, Visit(self._gate, visitor))
            await serve_control(stream, self._desk, admit)

    async def _admit(
        self, visitor: Visitor, visit: Visit, request: Request, typed: str | None
    ) -> Actor:
        if visitor.pid == 0:
            raise CallerRefused(
                "this program runs where rootsd cannot see it, in another pid namespace",
                "run it outside of that container",
            )
        order = order_in(request, self._desk)
        return _LOOKER if order is None else await visit.admit(order, typed)


def order_in(request: Request, desk: Desk) -> Order | None:
    """The order that `request` is; None for what only looks, or changes no decision."""
    match request:
        case Decide(effect=Effect.APPLY):
            return Order(_words(request), lambda: _stakes(request, desk))
        case SetGuard(guard=guard):
            return _plain(f"guard {guard.value}")
        case RuleAddition(verdict=verdict, pattern=pattern):
            word = "approve" if verdict is Verdict.APPROVED else "deny"
            return _plain(f"rule add {word} {pattern}")
        case Addition(what=what, name=str(name)):
            return _plain(f"add {what} --name {name}")
        case RuleRemoval(number=number):
            return _plain(f"rule rm {number}")
        case Decide() | StatusQuery() | ProjectsQuery() | ShowQuery() | SessionsQuery():
            return None
        case Addition() | CheckQuery() | WhyQuery() | ScanOrder() | Reload() | Stop():
            return None
        case RulesQuery() | GuardQuery() | LogQuery():
            return None
        case _:
            assert_never(request)


def open_gate(
    guard: Guard | None,
    helper: Helper,
    note: Callable[[Note], Awaitable[None]],
    connected: Callable[[], Iterable[int]],
    now: Callable[[], datetime],
) -> Gate:
    """The gate of a daemon; `guard` is what was set, if anything was."""
    return Gate(
        guard or Guard.AGENTS,
        look=look_by(helper),
        note=note,
        connected=connected,
        clock=time.monotonic,
        now=now,
    )


def look_by(
    helper: Helper,
) -> Callable[[Collection[int], Collection[str]], Awaitable[Lineages | None]]:
    """How the gate sees processes."""

    async def look(pids: Collection[int], markers: Collection[str]) -> Lineages | None:
        try:
            return await to_thread.run_sync(ask_lineages, helper, pids, markers)
        except NoAnswer as error:
            log.warning("nobody can see who asks: %s", error)
            return None

    return look


def lacking(helper: Helper) -> list[str]:
    """What does not work for want of the helper, for `status`."""
    trouble = helper.trouble()
    return [f"{trouble}: {_LACKING}"] if trouble else []


def _plain(words: str) -> Order:
    """An order whose words say all that is at stake."""
    safe = safe_label(words, _WORDS_LIMIT)

    async def stakes() -> Sequence[str]:
        return (f"rootsd {safe}",)

    return Order(safe, stakes)


def _words(request: Decide) -> str:
    what = request.refs if request.select is Selection.NAMED else (f"--{request.select.value}",)
    under = () if request.under is None else ("--under", request.under)
    words = " ".join((request.verb.value, *what, *under))
    return safe_label(words, _WORDS_LIMIT)


async def _stakes(request: Decide, desk: Desk) -> Sequence[str]:
    """What would be decided about, by path. Raises RootsdError where the order cannot be."""
    try:
        would = await desk.answer(replace(request, effect=Effect.DRY_RUN), _LOOKER)
    except UnknownProject:
        # A folder that is not known yet; or nothing, which it will be told afterwards.
        paths = [safe_label(f"{ref} (in {request.cwd})", limit=None) for ref in request.refs]
    else:
        items = [*would["items"], *would["unchanged"]]
        paths = [safe_label(item["path"] or item["uri"] or item["name"], None) for item in items]
    more = len(paths) - _MOST_STAKES
    lines = [f"{request.verb.value} {path}" for path in paths[:_MOST_STAKES]]
    return [*lines, f"and {more} more"] if more > 0 else lines
