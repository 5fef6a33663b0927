"""Guard the control socket: admit, challenge, or refuse commands, and record what agents tried.

Commands of agents since a person looked, kept beyond the end of the daemon.

An account for people: the history tells of the same, and nothing is decided by this. So it is
neither synced nor guarded, and one that cannot be read counts for none.

The guard of the control socket: admits, challenges, or refuses commands, and keeps a record.

`rootsd.core.guard` judges. This module collects the facts for it and carries out what it finds.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

import anyio

from rootsd.control.routes import GuardedCommand
from rootsd.core.agents import KNOWN_AGENTS, Agent, further_agents
from rootsd.core.changes import Attempt, AuditRecord, ChangeVerb, GuardChange
from rootsd.core.errors import CallerRefused, RootsdError
from rootsd.core.guard import (
    Caller,
    Guard,
    GuardAction,
    GuardDecision,
    Lineage,
    LineageCompleteness,
    McpHosts,
    Process,
    describe_caller,
    judge_caller,
    mcp_hosts_in,
)
from rootsd.core.labels import safe_label, safe_text
from rootsd.core.model import Actor, ActorKind
from rootsd.core.parsing import parse_json
from rootsd.helper.questions import ProcessReport
from rootsd.system.config import Approval
from rootsd.system.private_files import open_private_file, unusable_error
from rootsd.system.rate_limited_log import LogThrottle
from rootsd.wire import request
from rootsd.wire.guard import Challenge, RefusedStatus

log = logging.getLogger(__name__)

REFUSED_FILE = "refused.json"
AGENT_COMMANDS_FILE = "agent-commands.json"
_MAX_FILE_BYTES = 1 << 16


class CommandSummary:
    """Kept in the file `name` of the folder `state`, which the caller has locked."""

    def __init__(self, state: Path, name: str = REFUSED_FILE) -> None:
        self._file = state / name
        self.seen_by_nobody = self._read()
        """The sum of them; None where there was none."""

    def add(self, *, at: str, what: str, by: str, why: str) -> None:
        """One more, at a time in RFC 3339; the words are safe to show."""
        count = self.seen_by_nobody["count"] if self.seen_by_nobody else 0
        self.seen_by_nobody = RefusedStatus(count=count + 1, at=at, what=what, by=by, why=why)
        self._write(json.dumps(self.seen_by_nobody).encode("ascii"))

    def looked(self) -> None:
        """Somebody has been shown them."""
        if self.seen_by_nobody is not None:
            self.seen_by_nobody = None
            self._write(b"")

    def _write(self, content: bytes) -> None:
        try:
            fd = open_private_file(self._file)
            try:
                os.pwrite(fd, content, 0)
                os.ftruncate(fd, len(content))
            except OSError as error:
                raise unusable_error(self._file, error) from error
            finally:
                os.close(fd)
        except RootsdError as error:
            log.warning("what was refused is not written down: %s", error)

    def _read(self) -> RefusedStatus | None:
        with suppress(RootsdError, OSError, ValueError, TypeError, KeyError):
            fd = open_private_file(self._file, os.O_RDONLY)
            try:
                kept = parse_json(os.pread(fd, _MAX_FILE_BYTES, 0))
            finally:
                os.close(fd)
            return RefusedStatus(
                count=request.read_int(kept["count"]),
                at=_safe_text(kept["at"]),
                what=_safe_text(kept["what"]),
                by=_safe_text(kept["by"]),
                why=_safe_text(kept["why"]),
            )
        return None


@dataclass(frozen=True, slots=True)
class AgentActivity:
    """The commands that were refused, and those that an agent ran and that decide nothing."""

    refusals: CommandSummary
    agent_commands: CommandSummary

    @classmethod
    def kept_in(cls, state: Path) -> AgentActivity:
        """Return the records in the folder `state`, which the caller has locked."""
        return cls(CommandSummary(state), CommandSummary(state, AGENT_COMMANDS_FILE))


def _safe_text(raw: object) -> str:
    return safe_label(request.read_str(raw), limit=None)


_CONFIGURED = Actor(ActorKind.PERSON, "the configuration, when the store was made")
_REMEDY = "run it yourself, in a terminal of your own"
_RESTART = "rootsd down && rootsd up"
_MAX_HOSTS = 4096
_LOOK_TIMEOUT_S = 2.0
_MAX_LINES = 40
_UNSEEN = Lineage(completeness=LineageCompleteness.UNAVAILABLE)
_SYLLABLES = tuple(c + v for c in "bdfgkmnprstvz" for v in "aeiou")


class ChallengeNeeded(CallerRefused):
    """The daemon follows the command once somebody types the word shown on the terminal."""

    def __init__(self, message: str, challenge: Challenge) -> None:
        super().__init__(message, _REMEDY)
        self.challenge = challenge


class ConnectedProcess(Protocol):
    """Who is at the other end of a control connection."""

    @property
    def pid(self) -> int:
        """The process that connected; 0 where the kernel hides it."""

    def has_gone(self) -> bool:
        """Whether it has ended, for sure."""


class ProcessView(Protocol):
    """How the gate sees processes and reaches their terminals: the helper process."""

    async def look(
        self, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
    ) -> ProcessReport | None:
        """Look at `callers` and their terminals, then at `others`, for markers among `markers`.

        Where that fails, the lineages of the callers alone come back, as late; None where nobody
        could look at all.
        """

    async def show(self, caller: Process, text: str) -> str:
        """Show text on the terminal of `caller` and return its name. Raises RootsdError."""


class CommandGuard:
    """Decides which callers of the control socket may give commands.

    `note` makes an event durable. `connected` are the processes that hold an MCP connection.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        view: ProcessView,
        note: Callable[[AuditRecord], Awaitable[None]],
        connected: Callable[[], Iterable[int]],
        clock: Callable[[], float],
        now: Callable[[], datetime],
        records: AgentActivity,
    ) -> None:
        self.guard = guard
        self._agents: Sequence[Agent] = KNOWN_AGENTS
        self.refusals = records.refusals
        self.agent_commands = records.agent_commands
        self._view = view
        self._note = note
        self._connected = connected
        self._now = now
        self._hosts: dict[tuple[int, int], Process] = {}
        self._are_all_hosts_known = True
        self._bucket = LogThrottle(clock)
        self._commands_bucket = LogThrottle(clock)
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

    async def set_guard(
        self, guard: Guard, actor: Actor, verb: ChangeVerb = ChangeVerb.GUARD_SET
    ) -> None:
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
        with anyio.move_on_after(_LOOK_TIMEOUT_S):
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

    async def find(self, visitor: ConnectedProcess) -> tuple[Caller, GuardDecision]:
        """Return the caller at the other end, and what the guard does with its command."""
        caller = await self._caller(visitor)
        return caller, self._judge(self.guard, caller)

    async def _caller(self, visitor: ConnectedProcess) -> Caller:
        seen = await self._see((visitor.pid,))
        # Asked last: then what was seen was seen of this process, and of no later one.
        gone = visitor.has_gone()
        if seen is None:
            return Caller(_UNSEEN, gone)
        return Caller(seen.lineages.get(visitor.pid, Lineage()), gone, seen.terminals)

    def _judge(self, guard: Guard, caller: Caller) -> GuardDecision:
        hosts = McpHosts(tuple(self._hosts.values()), self._are_all_hosts_known)
        return judge_caller(guard, caller, hosts, self._agents)

    async def challenge(self, order: GuardedCommand, caller: Caller, why: str) -> tuple[str, str]:
        """Show a new word on the caller's terminal; return the word and the terminal's name.

        Raises CallerRefused if it cannot be shown.
        """
        assert caller.process is not None, "only a caller that was seen is challenged"
        word = "".join(secrets.choice(_SYLLABLES) for _ in range(3))
        stakes = list(await order.stakes())[:_MAX_LINES]
        lines = [*stakes, f"This is asked since {why}.", f"Type {word} to go on: "]
        text = "\r\n".join(safe_text(line) for line in ["", *lines])
        try:
            return word, await self._view.show(caller.process, text)
        except RootsdError as error:
            missing = f"{why}, and the word to type could not be shown: {error.message}"
            raise await self.refuse(order, caller, missing) from error

    async def refuse(self, order: GuardedCommand, caller: Caller, why: str) -> CallerRefused:
        """Record that the command was refused, and return the error to raise."""
        by = describe_caller(caller)
        log.warning("refused: %s (%s): %s", order.words, by, why)
        self.refusals.add(at=self._at(), what=order.words, by=by, why=why)
        actor = Actor(ActorKind.CALLER, f"{by}: {why}")
        await self._record(Attempt(order.words, actor), self._bucket)
        is_unseen = caller.lineage.completeness is LineageCompleteness.UNAVAILABLE
        return CallerRefused(f"this is refused, since {why}", _RESTART if is_unseen else _REMEDY)

    async def note_command(self, words: str, visitor: ConnectedProcess) -> None:
        """Record a command that decides nothing, if an agent gives it.

        The guard allows it: a person who could not stop the daemon would be worse off. A caller
        that nobody could see is not taken for an agent.
        """
        if self.guard is Guard.OFF:
            return
        caller = await self._caller(visitor)
        finding = self._judge(Guard.AGENTS, caller)
        if caller.process is None or finding.action is not GuardAction.REFUSE:
            return
        by, why = describe_caller(caller), finding.why
        log.warning("an agent runs: %s (%s): %s", words, by, why)
        self.agent_commands.add(at=self._at(), what=words, by=by, why=why)
        actor = Actor(ActorKind.CALLER, f"{by}: {why}")
        await self._record(Attempt(words, actor, ChangeVerb.AGENT_COMMAND), self._commands_bucket)

    async def _record(self, attempt: Attempt, bucket: LogThrottle) -> None:
        """Make an attempt durable. Of very many, few are written, with the number of the rest."""
        missed = bucket.take()
        if not missed:
            return
        more = f" ({missed - 1} more like it)" if missed > 1 else ""
        try:
            await self._note(replace(attempt, what=attempt.what + more))
        except RootsdError as error:
            log.warning("the store does not record it: %s", error)

    def _at(self) -> str:
        return self._now().isoformat(timespec="seconds").replace("+00:00", "Z")

    async def _see(self, callers: Sequence[int]) -> ProcessReport | None:
        markers = {marker for agent in self._agents for marker in agent.markers | agent.hints}
        connected, hosts = set(self._connected()), {host.pid for host in self._hosts.values()}
        others = [*sorted(connected - hosts), *sorted(hosts)]
        observed = await self._view.look(callers, others, markers)
        if observed is None:
            return None
        lineages = observed.lineages
        self._forget_ended(hosts, lineages)
        self._are_all_hosts_known = True
        for pid in connected:
            seen = lineages.get(pid, Lineage(completeness=LineageCompleteness.LATE))
            found = [*mcp_hosts_in(seen.processes)]
            if not seen.is_complete and len(found) == len(seen.processes):
                # Who started it may lie beyond what was seen.
                self._are_all_hosts_known &= pid in hosts
                continue
            for host in found:
                self._hosts.pop(host.key, None)
                self._hosts[host.key] = host
        while len(self._hosts) > _MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return observed

    def _forget_ended(self, pids: Collection[int], lineages: Mapping[int, Lineage]) -> None:
        """Forget the hosts among `pids` that have ended. They started no living process; what
        they left behind cannot be told apart. A host that the look did not reach stays."""
        living = {seen.processes[0].key for seen in lineages.values() if seen.processes}
        unseen = Lineage(completeness=LineageCompleteness.LATE)
        found = {pid: lineages.get(pid, unseen) for pid in pids}
        late = {pid for pid, seen in found.items() if not seen.processes and not seen.is_complete}
        for key in [*self._hosts]:
            if key[0] in pids and key not in living and key[0] not in late:
                del self._hosts[key]


class GuardedConnection:
    """One control connection at the gate. A challenge and its answer use the same connection."""

    def __init__(self, gate: CommandGuard, visitor: ConnectedProcess) -> None:
        self._gate = gate
        self._visitor = visitor
        self._asked: tuple[str, str] | None = None

    async def actor(self) -> Actor:
        """Who looks: a person, unless orders of his would be refused."""
        if self._gate.guard is Guard.OFF:
            return self._unchecked_actor()
        caller, finding = await self._gate.find(self._visitor)
        refused = finding.action is GuardAction.REFUSE
        return Actor(ActorKind.CALLER if refused else ActorKind.PERSON, describe_caller(caller))

    async def admit(self, order: GuardedCommand, typed: str | None) -> Actor:
        """Return who gives the command, if it may be followed.

        Raises CallerRefused, and ChallengeNeeded if a word has to be typed first.
        """
        gate = self._gate
        if gate.guard is Guard.OFF:
            return self._unchecked_actor()
        caller, finding = await gate.find(self._visitor)
        match finding.action:
            case GuardAction.ADMIT:
                return Actor(ActorKind.PERSON, describe_caller(caller))
            case GuardAction.REFUSE:
                raise await gate.refuse(order, caller, finding.why)
            case GuardAction.CHALLENGE:
                pass
        asked, self._asked = self._asked, None
        if typed is None:
            word, terminal = await gate.challenge(order, caller, finding.why)
            self._asked = (order.words, word)
            raise ChallengeNeeded(
                f"this has to be confirmed with the word shown on {terminal}, since {finding.why}",
                Challenge(terminal=terminal),
            )
        if asked != (order.words, typed.strip()):
            raise await gate.refuse(order, caller, "the word typed was not the one asked for")
        return Actor(ActorKind.CHALLENGED, f"{describe_caller(caller)}: {finding.why}")

    def _unchecked_actor(self) -> Actor:
        """Return the caller as the socket names it. With the guard off nobody looks it up."""
        return Actor(ActorKind.PERSON, f"pid {self._visitor.pid}, with the guard off")
