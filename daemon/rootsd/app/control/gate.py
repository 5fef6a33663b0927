"""Lets orders pass: looks at who gives them, asks for a word on a terminal, refuses, remembers.

What it finds is judged by `core.callers`; this brings the facts there and carries out the finding.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Protocol

import anyio

from rootsd.app.control.refusals import Refusals
from rootsd.app.control.register import Order
from rootsd.app.sparing import Bucket
from rootsd.core.agents import KNOWN_AGENTS, Agent, further_agents
from rootsd.core.callers import (
    Caller,
    Finding,
    Guard,
    Process,
    Response,
    hosts_in,
    judge_caller,
    who,
)
from rootsd.core.changes import Attempt, GuardChange, Note, Verb
from rootsd.core.errors import CallerRefused, RootsdError
from rootsd.core.model import Actor, ActorKind
from rootsd.host.config import Approval
from rootsd.wire.guarding import Challenge

log = logging.getLogger(__name__)

Lineages = dict[int, tuple[Process, ...]]
Look = Callable[[Collection[int], Collection[str]], Awaitable[Lineages | None]]
"""The lineages of processes, with the markers among these; None where nobody can look."""

_CONFIGURED = Actor(ActorKind.PERSON, "the configuration, when the store was made")
_REMEDY = "run it yourself, in a terminal of your own"
_MOST_HOSTS = 4096
_LONGEST_LOOK_S = 2.0
_SYLLABLES = tuple(c + v for c in "bdfgkmnprstvz" for v in "aeiou")


class ChallengeNeeded(CallerRefused):
    """The order is followed once its giver has typed a word on a terminal."""

    def __init__(self, message: str, challenge: Challenge) -> None:
        super().__init__(message, _REMEDY)
        self.challenge = challenge


class Visitor(Protocol):
    """Who is at the other end of a control connection."""

    @property
    def pid(self) -> int:
        """The process that connected; 0 where the kernel hides it."""

    def has_gone(self) -> bool:
        """Whether it has ended, for sure."""


class Gate:
    """Who may decide, of those who reach the control socket.

    `note` makes what happened durable. `connected` are the processes that hold an MCP connection.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        look: Look,
        note: Callable[[Note], Awaitable[None]],
        connected: Callable[[], Iterable[int]],
        clock: Callable[[], float],
        now: Callable[[], datetime],
        refusals: Refusals,
    ) -> None:
        self.guard = guard
        self._agents: Sequence[Agent] = KNOWN_AGENTS
        self.refusals = refusals
        self._look = look
        self._note = note
        self._connected = connected
        self._now = now
        self._hosts: dict[tuple[int, int], Process] = {}
        self._bucket = Bucket(clock)
        self._arrived = anyio.Event()
        self._seen = anyio.Event()

    async def begin(self, approval: Approval, *, is_new: bool) -> None:
        """Take over what is configured; the guard only where nothing was ever decided, and then
        it is kept. Raises what the store raised."""
        self.know(approval)
        if is_new and approval.guard is not self.guard:
            await self.set_guard(approval.guard, _CONFIGURED)

    def know(self, approval: Approval) -> None:
        """Tell agents by these names and markers, too."""
        self._agents = (*KNOWN_AGENTS, *further_agents(approval.agents, approval.markers))

    async def set_guard(self, guard: Guard, actor: Actor, verb: Verb = Verb.GUARD_SET) -> None:
        """Judge callers so from now on. Raises what the store raised; loosening then fails."""
        change = GuardChange(guard, actor, verb)
        if guard is Guard.TERMINAL:  # nothing is stricter: it holds whatever the disk says
            self.guard = guard
        await self._note(change)
        self.guard = guard

    async def remember(self) -> None:
        """There is a new MCP connection. Returns once it is known who started it, so that this is
        remembered of whoever was answered; also where that takes too long to keep a client."""
        seen = self._seen
        self._arrived.set()
        with anyio.move_on_after(_LONGEST_LOOK_S):
            await seen.wait()

    async def keep_remembering(self) -> None:
        """Look who started those that connect: later they may have ended, or been left alone. Runs
        as long as the daemon does; one look for all that came during the one before."""
        while True:
            await self._arrived.wait()
            seen = self._seen
            self._arrived, self._seen = anyio.Event(), anyio.Event()
            if self.guard is not Guard.OFF:
                await self._see(())
            seen.set()

    async def find(self, visitor: Visitor) -> tuple[Caller, Finding]:
        """Who the visitor is, and what becomes of an order of his."""
        seen = await self._see((visitor.pid,))
        # Asked last: then what was seen was seen of this process, and of no later one.
        gone = visitor.has_gone()
        caller = Caller(None if seen is None else seen.get(visitor.pid, ()), gone)
        return caller, judge_caller(self.guard, caller, self._hosts.values(), self._agents)

    async def refuse(self, order: Order, caller: Caller, why: str) -> CallerRefused:
        """Remember that the order was refused; the error to raise."""
        by = who(caller)
        log.warning("refused: %s (%s): %s", order.words, by, why)
        at = self._now().isoformat(timespec="seconds").replace("+00:00", "Z")
        self.refusals.add(at=at, what=order.words, by=by, why=why)
        if missed := self._bucket.take():
            more = f" ({missed - 1} more like it)" if missed > 1 else ""
            actor = Actor(ActorKind.CALLER, f"{by}: {why}")
            try:
                await self._note(Attempt(order.words + more, actor))
            except RootsdError as error:
                log.warning("the store refuses to tell of it: %s", error)
        return CallerRefused(f"this is refused, since {why}", _REMEDY)

    async def _see(self, pids: Sequence[int]) -> Lineages | None:
        markers = {marker for agent in self._agents for marker in agent.markers | agent.hints}
        connected, hosts = set(self._connected()), {host.pid for host in self._hosts.values()}
        lineages = await self._look(sorted(connected.union(pids, hosts)), markers)
        if lineages is None:
            return None
        living = {line[0].key for line in lineages.values() if line}
        # One that has ended started nobody who lives; what it left behind cannot be told.
        for key in [key for key in self._hosts if key[0] in hosts and key not in living]:
            del self._hosts[key]
        for pid in connected & lineages.keys():
            for host in hosts_in(lineages[pid]):
                self._hosts.pop(host.key, None)
                self._hosts[host.key] = host
        while len(self._hosts) > _MOST_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return lineages


class Visit:
    """One control connection at the gate; `typed` answers the challenge given on it before."""

    def __init__(self, gate: Gate, visitor: Visitor) -> None:
        self._gate = gate
        self._visitor = visitor
        self._asked: tuple[str, str] | None = None

    async def actor(self) -> Actor:
        """Who looks: a person, unless orders of his would be refused."""
        caller, finding = await self._gate.find(self._visitor)
        refused = finding.response is Response.REFUSE
        return Actor(ActorKind.CALLER if refused else ActorKind.PERSON, who(caller))

    async def admit(self, order: Order, typed: str | None) -> Actor:
        """Who gives the order, if it may be followed. Raises CallerRefused, and ChallengeNeeded
        where a word has to be typed first."""
        gate = self._gate
        caller, finding = await gate.find(self._visitor)
        match finding.response:
            case Response.ADMIT:
                return Actor(ActorKind.PERSON, who(caller))
            case Response.REFUSE:
                raise await gate.refuse(order, caller, finding.why)
            case Response.CHALLENGE:
                pass
        asked, self._asked = self._asked, None
        if typed is None:
            stakes = await order.stakes()
            word = "".join(secrets.choice(_SYLLABLES) for _ in range(3))
            self._asked = (order.words, word)
            lines = [*stakes, f"This is asked since {finding.why}."]
            raise ChallengeNeeded(
                f"this has to be confirmed, since {finding.why}",
                Challenge(lines=lines, word=word),
            )
        if asked != (order.words, typed.strip()):
            raise await gate.refuse(order, caller, "the word typed was not the one asked for")
        return Actor(ActorKind.PERSON, f"{who(caller)}, confirmed there")
