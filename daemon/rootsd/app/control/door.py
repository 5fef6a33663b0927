"""The control socket's connections: each asks the gate before an order of its is followed."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import closing
from datetime import datetime
from functools import partial

from anyio import to_thread
from anyio.abc import SocketAttribute, SocketStream

from rootsd.app.control.connection import serve_control
from rootsd.app.control.desk import Desk
from rootsd.app.control.gate import Gate, Lineages, Visit
from rootsd.app.control.refusals import Refusals
from rootsd.app.turns import Turns
from rootsd.core.callers import Guard
from rootsd.core.changes import Note
from rootsd.core.errors import CallerRefused
from rootsd.core.model import Actor, ActorKind
from rootsd.host.helper.callers import ask_lineages
from rootsd.host.helper.link import Helper, NoAnswer
from rootsd.host.ipc.accept import Heard
from rootsd.host.ipc.peer import Peer
from rootsd.host.ipc.visitor import Visitor
from rootsd.wire.request import Request

log = logging.getLogger(__name__)

_LACKING = (
    "whether a copy is finished is told by quiet times alone, and every order has to be confirmed "
    "on a terminal; if that lasts, rootsd down && rootsd up brings it back"
)
_LOOKER = Actor(ActorKind.PERSON)


class Door:
    """Serves control connections; `desk` answers them."""

    def __init__(self, gate: Gate, desk: Desk) -> None:
        self._gate = gate
        self._desk = desk
        self._turns = Turns()

    async def serve(self, stream: SocketStream, peer: Peer, heard: Heard) -> None:
        """Answer what comes on `stream`, which is closed at the end."""
        connection = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django here
        with closing(Visitor(connection, peer.pid)) as visitor:
            visit = Visit(self._gate, visitor)

            async def admit(request: Request, typed: str | None) -> Actor:
                heard()
                return await self._admit(visitor, visit, request, typed)

            turn = partial(self._turns.take, peer.pid)
            await serve_control(stream, self._desk, admit, turn)

    async def _admit(
        self, visitor: Visitor, visit: Visit, request: Request, typed: str | None
    ) -> Actor:
        if visitor.pid == 0:
            raise CallerRefused(
                "this program runs where rootsd cannot see it, in another pid namespace",
                "run it outside of that container",
            )
        order = self._desk.order_in(request)
        if order is not None:
            return await visit.admit(order, typed)
        return await visit.actor() if self._desk.asks_who(request) else _LOOKER


def open_gate(
    guard: Guard | None,
    helper: Helper,
    note: Callable[[Note], Awaitable[None]],
    connected: Callable[[], Iterable[int]],
    now: Callable[[], datetime],
    refusals: Refusals,
) -> Gate:
    """The gate of a daemon; `guard` is what was set, if anything was."""
    return Gate(
        guard or Guard.AGENTS,
        look=look_by(helper),
        note=note,
        connected=connected,
        clock=time.monotonic,
        now=now,
        refusals=refusals,
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
