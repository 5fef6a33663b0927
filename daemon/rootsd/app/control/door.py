"""The control socket's connections: each asks the gate before an order of its is followed."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial

from anyio import to_thread
from anyio.abc import SocketAttribute, SocketStream

from rootsd.app.control.connection import serve_control
from rootsd.app.control.desk import Desk
from rootsd.app.control.gate import Gate, Visit
from rootsd.app.control.refusals import Records
from rootsd.app.turns import Turns
from rootsd.core.callers import Guard, Process, Processes
from rootsd.core.changes import Note
from rootsd.core.errors import CallerRefused
from rootsd.core.model import Actor, ActorKind
from rootsd.host.helper.callers import Sighting, ask_bare_sighting, ask_sighting
from rootsd.host.helper.link import Helper, NoAnswer
from rootsd.host.helper.showing import ask_to_show
from rootsd.host.ipc.accept import Heard
from rootsd.host.ipc.peer import Peer
from rootsd.host.ipc.visitor import Visitor
from rootsd.host.terminals import NotShown
from rootsd.wire.request import Request

log = logging.getLogger(__name__)

_LACKING = (
    "rootsd recognizes a finished copy by quiet times alone, and refuses every command that "
    "decides something, since it cannot see who asks; if that lasts, try: rootsd down && rootsd up"
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
        if command := self._desk.command_in(request):
            await self._gate.note_command(command, visitor)
        return await visit.actor() if self._desk.asks_who(request) else _LOOKER


def open_gate(
    guard: Guard | None,
    helper: Helper,
    note: Callable[[Note], Awaitable[None]],
    connected: Callable[[], Iterable[int]],
    now: Callable[[], datetime],
    records: Records,
) -> Gate:
    """Return the gate of a daemon; `guard` is what was set, if anything was."""
    return Gate(
        guard or Guard.AGENTS,
        view=HelperView(helper),
        note=note,
        connected=connected,
        clock=time.monotonic,
        now=now,
        records=records,
    )


class HelperView:
    """How the gate sees processes and reaches their terminals: through the helper.

    The confined daemon may neither read what other processes are nor write on a terminal.
    """

    def __init__(self, helper: Helper) -> None:
        self._helper = helper

    async def look(
        self, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
    ) -> Sighting | None:
        """Look at processes.

        Where the helper has no answer, it is asked once more for the callers alone, by a look
        that no other process can delay. By then another helper may have taken its place.
        """
        return await to_thread.run_sync(self._look, callers, others, markers)

    async def ancestors(self, pids: Sequence[int]) -> Mapping[int, Processes] | None:
        """Look at processes and those above them, not at their environments or terminals. None
        where nobody can look."""
        seen = await self.look((), pids, ())
        return (
            None if seen is None else {pid: line.processes for pid, line in seen.lineages.items()}
        )

    async def show(self, caller: Process, text: str) -> str:
        """Show text on the terminal of `caller` and return its name. Raises RootsdError."""
        try:
            return await to_thread.run_sync(ask_to_show, self._helper, caller, text)
        except NotShown as error:
            raise CallerRefused(str(error)) from error

    def _look(
        self, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
    ) -> Sighting | None:
        try:
            return ask_sighting(self._helper, callers, others, markers)
        except NoAnswer as error:
            log.warning("the look at who asks failed: %s", error)
        if not callers:
            return None
        try:
            return ask_bare_sighting(self._helper, callers)
        except NoAnswer as error:
            log.warning("nobody can see who asks: %s", error)
            return None


def lacking(helper: Helper) -> list[str]:
    """Return what does not work without the helper, for `status`."""
    trouble = helper.trouble()
    return [f"{trouble}: {_LACKING}"] if trouble else []
