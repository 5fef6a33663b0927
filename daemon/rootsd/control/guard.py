"""Guard the control socket: admit, challenge, or refuse commands, and record what agents tried.

`core.guard` judges a caller. This module collects the facts for the judgment through the helper
process, and acts on it.

The summaries of refused commands and of agents' commands are stored in files. They only inform
people: the audit log has the same events, and no decision depends on the summaries. So the files
are neither synced nor protected, and one that cannot be read counts as empty.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Protocol

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rootsd.config.configuration import Approval
from rootsd.control.routes import GuardedCommand
from rootsd.core.agents import KNOWN_AGENTS, Agent, further_agents, markers_of
from rootsd.core.changes import Attempt, AuditRecord, ChangeVerb, GuardChange, ProgramsChange
from rootsd.core.errors import CallerRefused, RootsdError
from rootsd.core.guard import (
    Caller,
    Guard,
    GuardAction,
    GuardDecision,
    McpHosts,
    check_caller,
    describe_caller,
    mcp_hosts_in,
    only_launches,
)
from rootsd.core.labels import safe_label, safe_text
from rootsd.core.model import Actor, ActorKind
from rootsd.core.parsing import parse_json
from rootsd.core.processes import Lineage, LineageCompleteness, Process, ProgramSight
from rootsd.core.recognition import allow_command, allowance, is_agent, is_interpreter, uses_of
from rootsd.files.private_files import open_private_file, unusable_error
from rootsd.helper.questions import ProcessReport
from rootsd.net.rate_limited_log import LogThrottle
from rootsd.processes.process_exit import ProcessHandle
from rootsd.wire.daemon import RefusedStatus
from rootsd.wire.guard import Challenge, JudgedCaller, JudgedProgram
from rootsd.wire.request import BadRequest

log = logging.getLogger(__name__)

REFUSED_FILE = "refused.json"
AGENT_COMMANDS_FILE = "agent-commands.json"
_MAX_FILE_BYTES = 1 << 16


class CommandSummary:
    """The commands that no person has seen yet: their number and the last one.

    They are stored in the file `name` of the folder `state`, which the caller has locked.
    """

    def __init__(self, state: Path, name: str = REFUSED_FILE) -> None:
        self._file = state / name
        self.unseen = self._read()
        """The number of commands and the last one, or None if there are none."""

    def add(self, *, at: str, what: str, by: str, why: str) -> None:
        """Add a command. `at` is an RFC 3339 time; the other texts are safe to print."""
        count = self.unseen["count"] if self.unseen else 0
        self.unseen = RefusedStatus(count=count + 1, at=at, what=what, by=by, why=why)
        self._write(json.dumps(self.unseen).encode("ascii"))

    def mark_seen(self) -> None:
        """Empty the summary, because a person has seen it."""
        if self.unseen is not None:
            self.unseen = None
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
            log.warning("the summary of commands was not saved: %s", error)

    def _read(self) -> RefusedStatus | None:
        with suppress(RootsdError, OSError, ValueError):
            fd = open_private_file(self._file, os.O_RDONLY)
            try:
                kept = parse_json(os.pread(fd, _MAX_FILE_BYTES, 0))
            finally:
                os.close(fd)
            status = msgspec.convert(kept, RefusedStatus)
            return RefusedStatus(
                count=status["count"],
                at=_safe_text(status["at"]),
                what=_safe_text(status["what"]),
                by=_safe_text(status["by"]),
                why=_safe_text(status["why"]),
            )
        return None


class AgentActivity(Struct, frozen=True):
    """The refused commands, and the commands of agents that decide nothing."""

    refusals: CommandSummary
    agent_commands: CommandSummary

    @classmethod
    def in_folder(cls, state: Path) -> AgentActivity:
        """Return the records in the folder `state`, which the caller has locked."""
        return cls(CommandSummary(state), CommandSummary(state, AGENT_COMMANDS_FILE))


def _safe_text(raw: str) -> str:
    return safe_label(raw, limit=None)


_CONFIGURED = Actor(ActorKind.PERSON, "the configuration, when the store was made")
_REMEDY = "run it yourself, in your own terminal"
_RESTART = "rootsd down && rootsd up"
_MAX_HOSTS = 4096
_MAX_INTRODUCED = 256
_MODULE = "python -m "
_MAX_SHOWN = 64
_LOOKUP_TIMEOUT_S = 2.0
_MAX_LINES = 40
_UNSEEN = Lineage(completeness=LineageCompleteness.UNAVAILABLE)
_SYLLABLES = tuple(c + v for c in "bdfgkmnprstvz" for v in "aeiou")


class ChallengeNeeded(CallerRefused):
    """The daemon carries out the command once a person types the word shown on the terminal."""

    def __init__(self, message: str, challenge: Challenge) -> None:
        super().__init__(message, _REMEDY)
        self.challenge = challenge


class ProcessView(Protocol):
    """The guard's access to processes and their terminals: the helper process."""

    async def look_up(
        self, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
    ) -> ProcessReport | None:
        """Read the processes `callers` with their terminals, then `others`, with their `markers`.

        If that fails, return only the lineages of the callers, marked as late. Return None if no
        process could be read.
        """

    async def show(self, caller: Process, text: str) -> str:
        """Show text on the terminal of `caller` and return its name. Raises RootsdError."""


class GuardSummary(Struct, frozen=True):
    """The guard mode, and the commands of agents that no person has seen yet."""

    guard: Guard
    refused: RefusedStatus | None
    agent_commands: RefusedStatus | None


def _program_of(process: Process) -> str | None:
    """Return what a process runs, safe to show: its script, if it is an interpreter."""
    program = allowance(process) or process.program
    return safe_label(program, limit=None) if program else None


_JUDGMENTS = {
    GuardAction.ADMIT: "passed",
    GuardAction.CHALLENGE: "asked",
    GuardAction.REFUSE: "refused",
}


class CommandGuard:
    """Decides which callers of the control socket may give commands.

    `note` saves an event in the store. `connected` returns the processes with an MCP connection.
    `allowed` are the programs that a person has added to the known ones, and `last` is how the
    last command was judged.
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
        self.allowed: frozenset[str] = frozenset()
        self.last: JudgedCaller | None = None
        self._introduced: dict[tuple[int, int], Process] = {}
        self._agents: Sequence[Agent] = KNOWN_AGENTS
        self.refusals = records.refusals
        self.agent_commands = records.agent_commands
        self._view = view
        self._note = note
        self._connected = connected
        self._now = now
        self._hosts: dict[tuple[int, int], Process] = {}
        self._are_all_hosts_known = True
        self._refusal_throttle = LogThrottle(clock)
        self._command_throttle = LogThrottle(clock)
        self._arrived = anyio.Event()
        self._seen = anyio.Event()

    async def start(self, approval: Approval, *, is_new: bool) -> None:
        """Apply the configuration, which sets the guard mode only in a new store.

        Raises what the store raises.
        """
        self.set_agents(approval)
        if is_new and approval.guard is not self.guard:
            await self.set_guard(approval.guard, _CONFIGURED)

    def summary(self) -> GuardSummary:
        """Return the guard mode, and the commands of agents that no person has seen yet."""
        return GuardSummary(self.guard, self.refusals.unseen, self.agent_commands.unseen)

    def mark_seen(self) -> None:
        """Note that a person has seen the summary."""
        self.refusals.mark_seen()
        self.agent_commands.mark_seen()

    def set_agents(self, approval: Approval) -> None:
        """Recognize agents by these names and markers, too."""
        self._agents = (*KNOWN_AGENTS, *further_agents(approval.agents, approval.markers))

    async def set_guard(
        self, guard: Guard, actor: Actor, verb: ChangeVerb = ChangeVerb.GUARD_SET
    ) -> None:
        """Judge callers by this mode from now on.

        Raises what the store raises. The old mode then stays, unless the new one is the strictest.
        """
        change = GuardChange(guard, actor, verb)
        if guard is Guard.TERMINAL:  # the strictest mode applies even if the disk refuses it
            self.guard = guard
        await self._note(change)
        self.guard = guard

    async def set_allowed(self, programs: frozenset[str], actor: Actor, verb: ChangeVerb) -> None:
        """Know exactly these programs as a person's, besides the built-in ones.

        Raises BadRequest for a program that cannot be allowed, and what the store raises.
        """
        for program in sorted(programs - self.allowed):
            self._check_can_be_allowed(program)
        await self._note(ProgramsChange(programs, actor, verb))
        self.allowed = programs

    def _check_can_be_allowed(self, program: str) -> None:
        is_module = program.startswith(_MODULE) and "/" not in program
        name = program.removeprefix(_MODULE) if is_module else program.rpartition("/")[2]
        if not (program.startswith("/") or is_module) or not program.isprintable():
            raise BadRequest(
                f"{safe_label(program)} is neither a path nor python -m NAME",
                "rootsd guard allow PATH",
            )
        as_script = Process(
            0, 0, 0, b"python3", (b"python3", os.fsencode(name if is_module else program))
        )
        if agent := next((one for one in self._agents if is_agent(as_script, one)), None):
            raise BadRequest(
                f"{safe_label(name)} is the name of {agent.label}, which may never decide",
                "rootsd guard off, if every program may decide",
            )
        if not is_module and is_interpreter(program):
            raise BadRequest(
                f"{safe_label(name)} runs any script: name the script instead",
                "rootsd guard allow SCRIPT",
            )

    async def record_connection(self) -> None:
        """Wait until the guard knows the programs that started a new MCP connection.

        A client gets its first answer after that, so every program that got an answer is known.
        The wait has a timeout, so that a slow lookup does not block a client.
        """
        seen = self._seen
        self._arrived.set()
        with anyio.move_on_after(_LOOKUP_TIMEOUT_S):
            await seen.wait()

    async def keep_recording_hosts(self) -> None:
        """Look up the ancestors of each process that connects, for as long as the daemon runs.

        Later, the ancestors may have ended, and the process may have another parent. One lookup
        covers all connections that arrived during the lookup before it.
        """
        while True:
            await self._arrived.wait()
            seen = self._seen
            self._arrived, self._seen = anyio.Event(), anyio.Event()
            if self.guard is not Guard.OFF:
                await self._look_up(())
            seen.set()

    async def judge_peer(self, peer: ProcessHandle) -> tuple[Caller, GuardDecision]:
        """Return the caller at the other end, and the guard's decision about its command."""
        caller = await self._caller(peer)
        return caller, self._judge(self.guard, caller)

    async def judge_command(
        self, order: GuardedCommand, peer: ProcessHandle
    ) -> tuple[Caller, GuardDecision]:
        """Do the same, and remember the decision for `rootsd guard`."""
        caller, finding = await self.judge_peer(peer)
        chain = caller.lineage.processes[:_MAX_SHOWN]
        self.last = JudgedCaller(
            at=self._at(),
            what=order.text,
            judgment=_JUDGMENTS[finding.action],
            why=finding.why or None,
            programs=[
                JudgedProgram(
                    pid=process.pid,
                    name=safe_label(process.name),
                    program=_program_of(process),
                    use=use.value if use else None,
                    allow=None if use else allow_command(process) or None,
                )
                for process, use in zip(chain, uses_of(chain, self.allowed), strict=True)
            ],
        )
        return caller, finding

    async def introduce(self, peer: ProcessHandle) -> None:
        """Remember what the caller is, because it is about to hide from all programs."""
        if self.guard is Guard.OFF:
            return
        process = (await self._caller(peer)).process
        if process is None or process.sight is ProgramSight.HIDDEN:
            return
        self._introduced[process.key] = process
        while len(self._introduced) > _MAX_INTRODUCED:
            del self._introduced[next(iter(self._introduced))]

    async def _caller(self, peer: ProcessHandle) -> Caller:
        seen = await self._look_up((peer.pid,))
        # Check this after the lookup. If the process still lives, the facts are about it and not
        # about a later process with the same pid.
        gone = peer.has_gone()
        if seen is None:
            return Caller(_UNSEEN, gone)
        lineage = self._with_introduced(seen.lineages.get(peer.pid, Lineage()))
        return Caller(lineage, gone, seen.terminals)

    def _with_introduced(self, lineage: Lineage) -> Lineage:
        """Return the lineage, with what was seen of a hidden caller before it hid."""
        if not lineage.processes or lineage.processes[0].sight is not ProgramSight.HIDDEN:
            return lineage
        caller, *above = lineage.processes
        known = self._introduced.get(caller.key)
        if known is None or known.name != caller.name:
            return lineage
        facts = dataclasses.replace(
            caller, program=known.program, sight=known.sight, markers=known.markers
        )
        return replace(lineage, processes=(facts, *above))

    def _judge(self, guard: Guard, caller: Caller) -> GuardDecision:
        hosts = McpHosts(tuple(self._hosts.values()), self._are_all_hosts_known)
        return check_caller(guard, caller, hosts, self._agents, self.allowed)

    async def challenge(
        self, order: GuardedCommand, caller: Caller, finding: GuardDecision
    ) -> tuple[str, str]:
        """Show a new word on the caller's terminal. Return the word and the terminal's name.

        Raises CallerRefused if the word cannot be shown.
        """
        assert caller.process is not None, "the guard challenges only callers that it has seen"
        word = "".join(secrets.choice(_SYLLABLES) for _ in range(3))
        preview = list(await order.preview())[:_MAX_LINES]
        lines = [*preview, f"Confirm this command, because {finding.why}."]
        if finding.allow:
            lines.append(f"If that is a program of yours: {finding.allow}")
        lines.append(f"Type {word} to go on: ")
        text = "\r\n".join(safe_text(line) for line in ["", *lines])
        try:
            return word, await self._view.show(caller.process, text)
        except RootsdError as error:
            reason = f"{finding.why}, and the word to type could not be shown: {error.message}"
            refused = replace(finding, why=reason)
            raise await self.refuse(order, caller, refused) from error

    async def refuse(
        self, order: GuardedCommand, caller: Caller, finding: GuardDecision
    ) -> CallerRefused:
        """Record that the command was refused, and return the error to raise."""
        by, why = describe_caller(caller), finding.why
        log.warning("refused: %s (%s): %s", order.text, by, why)
        self.refusals.add(at=self._at(), what=order.text, by=by, why=why)
        actor = Actor(ActorKind.CALLER, f"{by}: {why}")
        await self._record(Attempt(order.text, actor), self._refusal_throttle)
        is_unseen = caller.lineage.completeness is LineageCompleteness.UNAVAILABLE
        if is_unseen:
            return CallerRefused(f"this is refused, since {why}", _RESTART)
        if finding.allow:
            return CallerRefused(
                f"this is refused, since {why}. If it is yours, allow it in your own terminal",
                finding.allow,
            )
        return CallerRefused(f"this is refused, since {why}", _REMEDY)

    async def note_command(self, words: str, peer: ProcessHandle) -> None:
        """Record a command that decides nothing, if an agent gives it.

        The guard allows such a command, because a person must always be able to stop the daemon.
        If the caller could not be looked up, it does not count as an agent.
        """
        if self.guard is Guard.OFF:
            return
        caller = await self._caller(peer)
        finding = self._judge(Guard.AGENTS, caller)
        if caller.process is None or finding.action is not GuardAction.REFUSE:
            return
        by, why = describe_caller(caller), finding.why
        log.warning("an agent runs: %s (%s): %s", words, by, why)
        self.agent_commands.add(at=self._at(), what=words, by=by, why=why)
        actor = Actor(ActorKind.CALLER, f"{by}: {why}")
        await self._record(Attempt(words, actor, ChangeVerb.AGENT_COMMAND), self._command_throttle)

    async def _record(self, attempt: Attempt, throttle: LogThrottle) -> None:
        """Save an attempt. If there are very many, save a few, with the number of dropped ones."""
        missed = throttle.take()
        if not missed:
            return
        more = f" ({missed - 1} more like it)" if missed > 1 else ""
        try:
            await self._note(replace(attempt, what=attempt.what + more))
        except RootsdError as error:
            log.warning("the store did not record a command: %s", error)

    def _at(self) -> str:
        return self._now().isoformat(timespec="seconds").replace("+00:00", "Z")

    async def _look_up(self, callers: Sequence[int]) -> ProcessReport | None:
        markers = markers_of(self._agents)
        connected, hosts = set(self._connected()), {host.pid for host in self._hosts.values()}
        others = [*sorted(connected - hosts), *sorted(hosts)]
        report = await self._view.look_up(callers, others, markers)
        if report is None:
            return None
        lineages = report.lineages
        self._forget_ended(hosts, lineages)
        self._are_all_hosts_known = True
        using = set[tuple[int, int]]()
        for pid in connected:
            seen = lineages.get(pid, Lineage(completeness=LineageCompleteness.LATE))
            found = [*mcp_hosts_in(seen.processes)]
            if not seen.is_complete and len(found) == len(seen.processes):
                # The program that started it may be in the part of the lineage that was not read.
                self._are_all_hosts_known &= pid in hosts
                continue
            using.update(host.key for host in found)
            for host in found:
                self._hosts.pop(host.key, None)
                self._hosts[host.key] = host
        if self._are_all_hosts_known:
            self._forget_unused_launchers(using)
        while len(self._hosts) > _MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return report

    def _forget_unused_launchers(self, using: Collection[tuple[int, int]]) -> None:
        """Forget each shell and launcher below which no program uses MCP any more.

        It runs what it is told. If an agent told it to start a bridge, the agent stays a host.
        """
        for key, host in [*self._hosts.items()]:
            if key not in using and only_launches(host):
                del self._hosts[key]

    def _forget_ended(self, pids: Collection[int], lineages: Mapping[int, Lineage]) -> None:
        """Forget the hosts among `pids` that have ended.

        No living process has them as an ancestor any more. If the lookup was too late to read a
        host, keep it.
        """
        living = {seen.processes[0].key for seen in lineages.values() if seen.processes}
        unseen = Lineage(completeness=LineageCompleteness.LATE)
        found = {pid: lineages.get(pid, unseen) for pid in pids}
        late = {pid for pid, seen in found.items() if not seen.processes and not seen.is_complete}
        for key in [*self._hosts]:
            if key[0] in pids and key not in living and key[0] not in late:
                del self._hosts[key]


class GuardedConnection:
    """The guard's state for one connection. A challenge and its answer use the same connection."""

    def __init__(self, guard: CommandGuard, peer: ProcessHandle) -> None:
        self._guard = guard
        self._peer = peer
        self._challenged: tuple[str, str] | None = None
        self._has_served = False

    def check_is_fresh(self, order: GuardedCommand | None, typed: str | None) -> None:
        """Note a request, and raise CallerRefused for a command that is not the first one.

        A command has a connection of its own, except for the word that confirms it. So nothing can
        be decided over a connection that follows the daemon for long, even by a program that takes
        it from its owner (pidfd_getfd(2)).
        """
        is_answer = typed is not None and self._challenged is not None
        if self._has_served and order is not None and not is_answer:
            raise CallerRefused(
                "this is refused, since the connection has carried another request", _REMEDY
            )
        self._has_served = True

    async def introduce(self) -> None:
        """Remember what the caller is, because it is about to hide from all programs."""
        await self._guard.introduce(self._peer)

    async def actor(self) -> Actor:
        """Return the actor of a query: a person, unless the guard would refuse a command."""
        if self._guard.guard is Guard.OFF:
            return self._unchecked_actor()
        caller, finding = await self._guard.judge_peer(self._peer)
        refused = finding.action is GuardAction.REFUSE
        return Actor(ActorKind.CALLER if refused else ActorKind.PERSON, describe_caller(caller))

    async def admit(self, order: GuardedCommand, typed: str | None) -> Actor:
        """Return the actor of a command that the guard admits.

        Raises CallerRefused, or ChallengeNeeded if a person has to type a word first.
        """
        guard = self._guard
        if guard.guard is Guard.OFF:
            return self._unchecked_actor()
        caller, finding = await guard.judge_command(order, self._peer)
        match finding.action:
            case GuardAction.ADMIT:
                return Actor(ActorKind.PERSON, describe_caller(caller))
            case GuardAction.REFUSE:
                raise await guard.refuse(order, caller, finding)
            case GuardAction.CHALLENGE:
                pass
        asked, self._challenged = self._challenged, None
        if typed is None:
            word, terminal = await guard.challenge(order, caller, finding)
            self._challenged = (order.text, word)
            raise ChallengeNeeded(
                f"this has to be confirmed with the word shown on {terminal}, since {finding.why}",
                Challenge(terminal=terminal),
            )
        if asked != (order.text, typed.strip()):
            wrong = replace(finding, why="the word typed was not the one asked for", allow="")
            raise await guard.refuse(order, caller, wrong)
        return Actor(ActorKind.CHALLENGED, f"{describe_caller(caller)}: {finding.why}")

    def _unchecked_actor(self) -> Actor:
        """Return the caller as the socket names it. With the guard off, it is not looked up."""
        return Actor(ActorKind.PERSON, f"pid {self._peer.pid}, with the guard off")
