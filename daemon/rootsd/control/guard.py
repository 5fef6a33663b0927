"""Judge who may give commands through the control socket, as the guard mode says.

`core.guard` is the judgment itself. This module gives it the caller, the programs that use MCP,
the known agents, and the programs that a person allowed. It refuses commands, and keeps the last
judgment for `rootsd guard`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime

from rootsd.agents.guarded import guarded_agents
from rootsd.config.schema import ApprovalTable
from rootsd.control.attempts import AttemptRecorder
from rootsd.control.callers import CallerFinder
from rootsd.control.process_view import ProcessView
from rootsd.control.routes import GuardedCommand
from rootsd.core.agents import Agent, markers_of
from rootsd.core.changes import AuditRecord, ChangeVerb, SettingChange
from rootsd.core.encoding import AllowedPrograms
from rootsd.core.errors import CallerRefused
from rootsd.core.guard import Caller, GuardAction, GuardDecision, check_caller
from rootsd.core.guard_setting import Guard
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, ActorKind
from rootsd.core.processes import LineageCompleteness, Process
from rootsd.core.recognition import agents_of, allow_command, allowance, is_interpreter, uses_of
from rootsd.core.timestamps import rfc3339
from rootsd.processes.process_exit import ProcessHandle
from rootsd.wire.guard import JudgedCaller, JudgedProgram
from rootsd.wire.request import BadRequest

_CONFIGURED = Actor(ActorKind.PERSON, "the configuration, when the store was made")
REMEDY = "run it yourself, in your own terminal"
_RESTART = "rootsd down && rootsd up"
_MODULE = "python -m "
_MAX_SHOWN = 64
_JUDGMENTS = {
    GuardAction.ADMIT: "passed",
    GuardAction.CHALLENGE: "asked",
    GuardAction.REFUSE: "refused",
}


class CommandGuard:
    """Decides which callers of the control socket may give commands.

    `guard` is the mode. `allowed` are the programs that a person has added to the known ones, and
    `last` is how the last command was judged. `note` saves an event in the store. `connected`
    returns the processes with an MCP connection. `refused` records the refused commands, and
    `agent_commands` those of agents that decide nothing.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        view: ProcessView,
        note: Callable[[AuditRecord], Awaitable[None]],
        connected: Callable[[], Iterable[int]],
        now: Callable[[], datetime],
        refused: AttemptRecorder,
        agent_commands: AttemptRecorder,
    ) -> None:
        self.guard = guard
        self.allowed: frozenset[str] = frozenset()
        self.last: JudgedCaller | None = None
        self.refused = refused
        self.agent_commands = agent_commands
        self.view = view
        self._note = note
        self._now = now
        self._callers = CallerFinder(view, connected)
        self._recognize(guarded_agents())

    def mark_seen(self) -> None:
        """Note that a person has seen what agents tried."""
        self.refused.mark_seen()
        self.agent_commands.mark_seen()

    def set_agents(self, approval: ApprovalTable) -> None:
        """Recognize agents by these names and markers, too."""
        self._recognize(guarded_agents(approval.agents, approval.markers))

    def _recognize(self, agents: Sequence[Agent]) -> None:
        self._agents = agents
        self._callers.markers = markers_of(agents)

    async def adopt_mode(self, approval: ApprovalTable) -> None:
        """Judge by the configured mode, because the store is new. Raises what the store raises."""
        if approval.guard is not self.guard:
            await self.set_guard(approval.guard, _CONFIGURED)

    async def set_guard(
        self, guard: Guard, actor: Actor, verb: ChangeVerb = ChangeVerb.GUARD_SET
    ) -> None:
        """Judge callers by this mode from now on.

        Raises what the store raises. The old mode then stays, unless the new one is the strictest.
        """
        change = SettingChange(guard, actor, verb)
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
        await self._note(SettingChange(AllowedPrograms(programs), actor, verb))
        self.allowed = programs

    def _check_can_be_allowed(self, program: str) -> None:
        is_module = program.startswith(_MODULE) and "/" not in program
        name = program.removeprefix(_MODULE) if is_module else program.rpartition("/")[2]
        if not (program.startswith("/") or is_module) or not program.isprintable():
            raise BadRequest(
                f"{safe_label(program)} is neither a path nor python -m NAME",
                f"command -v {safe_label(program)}",
            )
        as_script = Process(
            0, 0, 0, b"python3", (b"python3", os.fsencode(name if is_module else program))
        )
        if agent := next(iter(agents_of(as_script, self._agents)), None):
            raise BadRequest(
                f"{safe_label(name)} is the name of {agent.label}, which may never decide",
                "rootsd guard off, if every program may decide",
            )
        if not is_module and is_interpreter(program):
            raise BadRequest(
                f"{safe_label(name)} runs any script: name the script instead",
                "rootsd guard allow --help",
            )

    async def record_connection(self) -> None:
        """Wait until the programs that started a new MCP connection are known, for 2 s at most."""
        await self._callers.record_connection()

    async def keep_recording_hosts(self) -> None:
        """Keep finding out which programs use MCP, unless the guard is off."""
        await self._callers.keep_recording_hosts(lambda: self.guard is not Guard.OFF)

    async def introduce(self, peer: ProcessHandle) -> None:
        """Remember what the caller is, because it is about to hide from all programs."""
        if self.guard is not Guard.OFF:
            await self._callers.introduce(peer)

    async def judge_peer(self, peer: ProcessHandle) -> tuple[Caller, GuardDecision]:
        """Return the caller at the other end, and the guard's decision about its command."""
        caller = await self._callers.find(peer)
        return caller, self._judge(self.guard, caller)

    async def judge_command(
        self, order: GuardedCommand, peer: ProcessHandle
    ) -> tuple[Caller, GuardDecision]:
        """Do the same for a command, and remember the decision for `rootsd guard`."""
        caller = await self._callers.find(peer)
        finding = self._judge(self.guard, caller)
        chain = caller.lineage.processes[:_MAX_SHOWN]
        self.last = JudgedCaller(
            at=rfc3339(self._now()),
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

    async def refuse(
        self, order: GuardedCommand, caller: Caller, finding: GuardDecision
    ) -> CallerRefused:
        """Record that the command was refused, and return the error to raise."""
        why = finding.why
        await self.refused.add(order.text, caller, why)
        if caller.lineage.completeness is LineageCompleteness.UNAVAILABLE:
            return CallerRefused(f"this command is refused: {why}", _RESTART)
        if finding.allow:
            return CallerRefused(
                f"this command is refused: {why}. If it is yours, allow it in your own terminal",
                finding.allow,
            )
        return CallerRefused(f"this command is refused: {why}", REMEDY)

    async def note_command(self, words: str, peer: ProcessHandle) -> None:
        """Record a command that decides nothing, if an agent gives it.

        The guard allows such a command, because a person must always be able to stop the daemon.
        If the caller could not be looked up, it does not count as an agent.
        """
        if self.guard is Guard.OFF:
            return
        caller = await self._callers.find(peer)
        finding = self._judge(Guard.AGENTS, caller)
        if caller.process is not None and finding.action is GuardAction.REFUSE:
            await self.agent_commands.add(words, caller, finding.why)

    def _judge(self, guard: Guard, caller: Caller) -> GuardDecision:
        return check_caller(guard, caller, self._callers.hosts, self._agents, self.allowed)


def _program_of(process: Process) -> str | None:
    """Return what a process runs, safe to show: its script, if it is an interpreter."""
    program = allowance(process) or process.program
    return safe_label(program, limit=None) if program else None
