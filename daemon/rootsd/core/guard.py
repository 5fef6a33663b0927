"""Decide whether a caller may give commands. Pure.

The guard asks unless it knows. Each program between the caller and the start of its login has to
be a known program of a person (`core.recognition`). It also uses the programs that use MCP (the
hosts), and the program that has the master side of the caller's terminal open. A missing fact
counts against the caller. If there is doubt, the guard refuses a caller without a terminal, and
asks a person to type a word on a caller's terminal.

All of these processes have the same user id, so there is no security boundary between them. A
program that tries can get around every check here. The guard stops and records casual
self-approval by agents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from enum import Enum, auto
from itertools import product

from msgspec import Struct, field

from rootsd.core.agents import Agent
from rootsd.core.guard_setting import Guard
from rootsd.core.known_programs import ProgramUse
from rootsd.core.labels import safe_label
from rootsd.core.processes import (
    Lineage,
    LineageCompleteness,
    Process,
    ProcessChain,
    TerminalHolder,
    TerminalHolders,
    describe_process,
    terminal_name,
)
from rootsd.core.recognition import (
    agents_of,
    allow_command,
    base_name,
    describe_program,
    has_use,
    names_of,
    uses_of,
)


class GuardAction(Enum):
    """The action of the guard on a command."""

    ADMIT = auto()
    CHALLENGE = auto()
    REFUSE = auto()


class GuardDecision(Struct, frozen=True):
    """The decision of the guard. `why` completes the sentence "this command is refused: ...".

    `allow` is the command by which a person makes the unknown program a known one, or empty.
    """

    action: GuardAction
    why: str = ""
    allow: str = ""


class Caller(Struct, frozen=True):
    """The process that sent a command.

    `terminals` has the holders of its terminal. If one of them is a multiplexer, it also has the
    holders of the terminals of that multiplexer's clients.
    """

    lineage: Lineage
    has_gone: bool = False
    terminals: TerminalHolders = field(default_factory=dict)

    @property
    def process(self) -> Process | None:
        """Return the calling process itself, or None if it could not be read."""
        return self.lineage.processes[0] if self.lineage.processes else None

    @property
    def has_terminal(self) -> bool:
        """Return whether the process is known to have a controlling terminal."""
        return self.process is not None and self.process.terminal != 0


class McpHosts(Struct, frozen=True):
    """The processes that have an MCP connection, or started a process that has one.

    `are_all_known` is False while the lineage of any connection is unknown.
    """

    processes: tuple[Process, ...] = ()
    are_all_known: bool = True


_ADMITTED = GuardDecision(GuardAction.ADMIT)
_GONE = GuardDecision(GuardAction.REFUSE, "the process that sent it is gone")
_UNSEEN = GuardDecision(
    GuardAction.REFUSE, "the helper process does not answer, so rootsd cannot see the caller"
)
_MISSING_FACTS = {
    LineageCompleteness.CUT_OFF: (
        "it has too many ancestors, or its environment is too large, to inspect"
    ),
    LineageCompleteness.LATE: "reading its ancestors took too long",
    LineageCompleteness.UNAVAILABLE: _UNSEEN.why,
}
_HOSTS_UNSEEN = "rootsd could not read all programs that use MCP"
_ALWAYS = GuardDecision(GuardAction.CHALLENGE, "the guard asks every time")

# Programs that start other programs on behalf of anybody, so they say nothing about the caller.
_SESSION_STARTS = frozenset({ProgramUse.LOGIN, ProgramUse.REMOTE, ProgramUse.SCHEDULER})
_SERVICES = _SESSION_STARTS | {ProgramUse.MULTIPLEXER}
# Programs that a person uses to start an agent, so they are not its parts.
_NO_HOSTS = _SERVICES | {ProgramUse.DESKTOP, ProgramUse.TERMINAL}
# Multiplexers whose server opens the terminals of its clients. The others use a socket for each.
_OPENS_CLIENTS = frozenset({"tmux", "screen"})
_PASSED_THROUGH = frozenset({ProgramUse.SHELL, ProgramUse.LAUNCHER})
# What runs whatever it is told, so it says nothing about who told it.
_OBEYS = _PASSED_THROUGH | {ProgramUse.ROOTSD}
# systemd itself starts services, and nothing in a scope (systemd.scope(5)).
_USERS_SCOPE = re.compile(rb".*/user-\d+\.slice/(?:.*/)?[^/]+\.scope$")
_SHARED_GROUP = re.compile(rb"(?:|/|.*/(?:session-[^/]*\.scope|user@\d+\.service|init\.scope))$")


def check_caller(
    guard: Guard,
    caller: Caller,
    hosts: McpHosts,
    agents: Sequence[Agent],
    allowed: Collection[str] = frozenset(),
) -> GuardDecision:
    """Return the decision of the guard on a command of `caller`.

    `allowed` are the programs that a person has added to the known ones.
    """
    if guard is Guard.OFF:
        return _ADMITTED
    lineage = caller.lineage
    if lineage.completeness is LineageCompleteness.UNAVAILABLE:
        return _UNSEEN
    if caller.has_gone or caller.process is None:
        return _GONE
    if why := next(_proofs_of_agent(lineage.processes, agents), None):
        return GuardDecision(GuardAction.REFUSE, why)
    if doubt := next(_doubts(caller, hosts, agents, allowed), None):
        # This is evidence, but not proof: an editor may have started the agent and the caller. A
        # person can answer on a terminal.
        action = GuardAction.CHALLENGE if caller.has_terminal else GuardAction.REFUSE
        return GuardDecision(action, doubt.why, doubt.allow)
    if guard is Guard.TERMINAL:
        if not caller.has_terminal:
            return GuardDecision(
                GuardAction.REFUSE, "the guard requires a terminal, and it has none"
            )
        return _ALWAYS
    return _ADMITTED


class _Doubt(Struct, frozen=True):
    """A reason to doubt that a person gave the command, as in `GuardDecision`."""

    why: str
    allow: str = ""


def _doubts(
    caller: Caller, hosts: McpHosts, agents: Sequence[Agent], allowed: Collection[str]
) -> Iterator[_Doubt]:
    """Yield each reason to doubt that a person gave the command."""
    lineage = caller.lineage
    yield from map(_Doubt, _doubts_about_lineage(lineage.processes, hosts, agents))
    if not lineage.is_complete:
        yield _Doubt(_MISSING_FACTS[lineage.completeness])
    if not hosts.are_all_known:
        yield _Doubt(_HOSTS_UNSEEN)
    uses = uses_of(lineage.processes, allowed)
    for stranger in _strangers(lineage.processes, uses):
        role = "sent" if stranger is caller.process else "started"
        yield _Doubt(
            f"rootsd does not know {describe_program(stranger)}, which {role} it",
            allow_command(stranger),
        )
    if orphan := _orphan(lineage.processes, uses):
        yield _Doubt(
            f"the program that started {describe_process(orphan)}, has ended,"
            " so rootsd cannot tell who gave it"
        )
    if caller.process is None:
        return
    if caller.has_terminal:
        check = _TerminalCheck(caller.terminals, hosts, agents, allowed)
        if doubt := check.why_made_by_agent(caller.process.terminal):
            yield doubt
        return
    for host in hosts.processes:
        if _shares_group(lineage.processes, host):
            named = describe_process(host)
            yield _Doubt(
                f"it has no terminal and runs in the control group of {named}, which uses MCP"
            )


def _strangers(chain: ProcessChain, uses: Sequence[ProgramUse | None]) -> Iterator[Process]:
    """Yield the programs in `chain`, up to the start of its login, that are not a person's.

    `uses` are those of `chain`, as `uses_of` returns them.
    """
    for process, use in zip(chain, uses, strict=True):
        if use is None:
            yield process
        elif use in _SESSION_STARTS:
            return


def _orphan(chain: ProcessChain, uses: Sequence[ProgramUse | None]) -> Process | None:
    """Return the shell, launcher, or rootsd in `chain` whose starter has certainly ended, or None.

    Init or the user's systemd is its parent now. Both start programs, too, but not in a scope.
    Elsewhere, such as in a container or on macOS, nothing tells the two apart.
    """
    for process, use, above in zip(chain, uses, (*chain[1:], None), strict=True):
        if above is None:
            is_adopted = process.parent == 1
        elif has_use(above, _SESSION_STARTS):
            is_adopted = "systemd" in names_of(above)
        else:
            continue
        is_orphan = is_adopted and use in _OBEYS and _USERS_SCOPE.match(process.control_group)
        return process if is_orphan else None
    return None


class _TerminalCheck(Struct, frozen=True):
    """A check whether an agent created a terminal for itself."""

    terminals: TerminalHolders
    hosts: McpHosts
    agents: Sequence[Agent]
    allowed: Collection[str]

    def why_made_by_agent(
        self, terminal: int, seen: frozenset[int] = frozenset()
    ) -> _Doubt | None:
        """Return the evidence that an agent created `terminal`, or None.

        If there is no such evidence about one of the holders, the result is None: another holder
        may have inherited the descriptor and never use it. `seen` are the terminals that the check
        has already visited.
        """
        holders = self.terminals.get(terminal, ())
        doubts = [self._doubt_about(holder, seen | {terminal}) for holder in holders]
        return doubts[0] if doubts and all(doubts) else None

    def _doubt_about(self, holder: TerminalHolder, seen: frozenset[int]) -> _Doubt | None:
        why = next(_doubts_about_holder(holder, self.hosts, self.agents, self.allowed), None)
        if not _multiplexes(holder):
            return why
        # If no agent created a client's terminal, a person sees the multiplexer there.
        displays = [display for display in holder.displays if display not in seen]
        doubts = [self.why_made_by_agent(display, seen) for display in displays]
        if any(doubt is None for doubt in doubts):
            return None
        return why or next(iter(doubts), None) or _why_unseen(holder)


def _doubts_about_holder(
    holder: TerminalHolder, hosts: McpHosts, agents: Sequence[Agent], allowed: Collection[str]
) -> Iterator[_Doubt]:
    chain = holder.lineage.processes
    if not chain:
        return
    if not holder.lineage.is_complete:
        named = describe_process(chain[0])
        yield _Doubt(f"rootsd cannot see who started {named}, which holds its terminal")
    holds = f"{describe_process(chain[0])} holds its terminal"
    for why in (*_proofs_of_agent(chain, agents), *_host_doubts(chain, hosts)):
        yield _Doubt(f"{holds}, and {why}")
    for host in hosts.processes:
        if _started_in_group_of(chain, host):
            named = describe_process(host)
            yield _Doubt(f"{holds}, in the control group of {named}, which uses MCP")
    for stranger in _strangers(chain, uses_of(chain, allowed)):
        named = describe_program(stranger)
        if stranger is chain[0]:
            why = f"rootsd does not know {named}, which holds its terminal"
        else:
            why = f"{holds}, and rootsd does not know {named}, which started that"
        yield _Doubt(why, allow_command(stranger))


def _started_in_group_of(holder: ProcessChain, host: Process) -> bool:
    """Return whether the holder of a terminal is in the host's control group and started later.

    A new tab, or a terminal in an editor, does not count: it has an ancestor that is older than
    the host. A control group that a whole login shares is no evidence.
    """
    group = holder[0].control_group
    if group != host.control_group or _SHARED_GROUP.match(group):
        return False
    return _origin(holder).started > host.started and not _is_service(holder[0])


def _origin(chain: ProcessChain) -> Process:
    """Return the oldest ancestor in `chain` that is not a service, or the process itself."""
    origin = chain[0]
    for process in chain[1:]:
        if has_use(process, _SERVICES):
            break
        origin = process
    return origin


def _multiplexes(holder: TerminalHolder) -> bool:
    chain = holder.lineage.processes
    return bool(chain) and has_use(chain[0], {ProgramUse.MULTIPLEXER})


def _why_unseen(holder: TerminalHolder) -> _Doubt | None:
    """Return a doubt if no terminal displays a multiplexer that opens those of its clients.

    A server of tmux or GNU screen belongs to nobody else: its parent is init, whoever started it.
    """
    server = holder.lineage.processes[0]
    if not has_use(server, {ProgramUse.MULTIPLEXER}) or names_of(server).isdisjoint(
        _OPENS_CLIENTS
    ):
        return None
    named = describe_process(server)
    return _Doubt(f"{named} holds its terminal, and no terminal displays {named}")


def _is_service(process: Process) -> bool:
    return has_use(process, _SESSION_STARTS)


def _proofs_of_agent(chain: ProcessChain, agents: Sequence[Agent]) -> Iterator[str]:
    for process in chain:
        for agent in agents_of(process, agents):
            yield f"{agent.label} started it ({describe_process(process)})"
        for agent in agents:
            if marks := agent.markers & process.markers:
                yield _marked(agent, marks, process)


def _doubts_about_lineage(
    chain: ProcessChain, hosts: McpHosts, agents: Sequence[Agent]
) -> Iterator[str]:
    for process, agent in product(chain, agents):
        if marks := agent.hints & process.markers:
            yield _marked(agent, marks, process)
    yield from _host_doubts(chain, hosts)


def _host_doubts(chain: ProcessChain, hosts: McpHosts) -> Iterator[str]:
    known = {host.key for host in hosts.processes}
    for process in chain:
        if process.key in known:
            yield f"{describe_process(process)}, which uses MCP, started it"


def _marked(agent: Agent, marks: Collection[str], process: Process) -> str:
    names = ", ".join(sorted(marks))
    return f"{agent.label} started it ({names} is set for {describe_process(process)})"


def _shares_group(chain: ProcessChain, host: Process) -> bool:
    """Return whether the control group of the caller is evidence that the host started it.

    If a whole login shares the group, it is evidence only about an orphan that is younger than the
    host, because nothing else shows what started the orphan. A person may have started it, too.
    """
    if chain[0].control_group != host.control_group:
        return False
    if not _SHARED_GROUP.match(host.control_group):
        return True
    top = chain[-1]
    return top.started > host.started and not has_use(top, _SERVICES)


def mcp_hosts_in(chain: ProcessChain) -> Iterator[Process]:
    """Yield the processes that count as hosts because the first one in `chain` is connected.

    These are the connected process itself and, if it is a bridge or run proxy, the program that
    started it, with the shells and launchers in between. An interactive shell, a terminal program,
    or a service does not count.
    """
    if chain:
        yield chain[0]
    if not chain or not _is_proxy(chain[0]):
        return
    for process in chain[1:]:
        if _is_interactive_shell(process) or has_use(process, _NO_HOSTS):
            return
        yield process
        if not only_launches(process):
            return


def describe_caller(caller: Caller) -> str:
    """Return a short description of the caller for the log, with its ancestors and terminal."""
    if caller.process is None:
        return "an unknown process"
    names = " < ".join(safe_label(process.name) for process in caller.lineage.processes[1:5])
    terminal = caller.process.terminal
    where = terminal_name(terminal) if terminal else "no terminal"
    return f"pid {caller.process.pid}, {names or 'unknown parent'}, {where}"


def only_launches(process: Process) -> bool:
    """Return whether a process only runs others, as shells, `env`, and `make` do."""
    return has_use(process, _PASSED_THROUGH)


def _is_interactive_shell(process: Process) -> bool:
    """Return whether the process is a shell without a command or a script."""
    if not process.arguments or not has_use(process, {ProgramUse.SHELL}):
        return False
    return all(
        argument.startswith((b"-", b"+")) and not _has_command(argument)
        for argument in process.arguments[1:]
    )


def _has_command(flag: bytes) -> bool:
    return not flag.startswith(b"--") and b"c" in flag[1:]


def _is_proxy(process: Process) -> bool:
    words = [base_name(argument) for argument in process.arguments]
    if "rootsd" not in words:
        return False
    verbs = (word for word in words[words.index("rootsd") + 1 :] if not word.startswith("-"))
    return next(verbs, None) in ("bridge", "run")
