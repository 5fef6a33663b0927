"""Decide whether a caller may give commands. Pure.

The guard uses three facts: the processes that started the caller (its lineage), the programs that
use MCP (the hosts), and the program that has the master side of the caller's terminal open. A
missing fact counts against the caller. If there is doubt, the guard refuses a caller without a
terminal, and asks a person to type a word on a caller's terminal.

All of these processes have the same user id, so there is no security boundary between them. A
program that tries can get around every check here. The guard stops and records casual
self-approval by agents.

Sources for the names of terminals: proc(5), pts(4), Linux's Documentation/admin-guide/devices.txt,
and sys/types.h of macOS.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum, StrEnum, auto
from itertools import product

from msgspec import Struct, field

from rootsd.core.agents import Agent
from rootsd.core.labels import safe_label

_PTS_MAJORS = range(136, 144)
_PTS_PER_MAJOR = 256
_CONSOLES_MAJOR = 4
_CONSOLES = 64
_MAC_MAJOR = 16


def terminal_name(device: int) -> str:
    """Return the usual name of a terminal, such as `pts/1`, `tty1`, `ttyS0`, or `ttys001`.

    On Linux, `device` is `tty_nr` of /proc/PID/stat. On macOS, it is the `st_rdev` of the
    terminal. For a device of another kind, the name contains its numbers.
    """
    major, minor = device >> 8 & 0xFF, device & 0xFF | device >> 12 & 0xFFF00
    if major in _PTS_MAJORS:
        return f"pts/{(major - _PTS_MAJORS.start) * _PTS_PER_MAJOR + minor}"
    if device >> 24 == _MAC_MAJOR:
        return f"ttys{device & 0xFFFFFF:03}"
    if major == _CONSOLES_MAJOR:
        return f"tty{minor}" if minor < _CONSOLES else f"ttyS{minor - _CONSOLES}"
    return f"terminal {major}:{minor}"


class Guard(StrEnum):
    """Which callers may decide."""

    AGENTS = "agents"
    """Callers that no agent started, as far as the facts show."""
    TERMINAL = "terminal"
    """The same callers, but only if a person types the word that the guard shows on a terminal."""
    OFF = "off"
    """Every process with this user id."""


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """The facts about one process.

    * `started`: the start time. It orders processes, and distinguishes two with the same pid.
    * `terminal`: the device number of the controlling terminal, or 0.
    * `markers`: the variables in its environment that a known agent may have set.
    * `folder`: the working directory. It is empty if unknown, or if the process is in another PID
      namespace than the daemon.
    """

    pid: int
    started: int
    parent: int
    name: bytes
    arguments: tuple[bytes, ...] = ()
    terminal: int = 0
    control_group: bytes = b""
    markers: frozenset[str] = frozenset()
    folder: bytes = dataclasses.field(default=b"", compare=False)

    @property
    def key(self) -> tuple[int, int]:
        """Return the pid and the start time, which together are unique until the next boot."""
        return self.pid, self.started


ProcessChain = Sequence[Process]
"""A process, then the process that started it, and so on. The first process of the system is left
out.
"""


class LineageCompleteness(StrEnum):
    """How much of a lineage could be read."""

    COMPLETE = "complete"
    CUT_OFF = "cut off"
    """There are too many ancestors, or too large an environment, for the limits."""
    LATE = "late"
    """The time was over before everything was read."""
    UNAVAILABLE = "unavailable"
    """Nothing was read, because the helper process is missing or does not answer."""


class Lineage(Struct, frozen=True):
    """The facts about a process and its ancestors. It is empty for a process that ended."""

    processes: tuple[Process, ...] = ()
    completeness: LineageCompleteness = LineageCompleteness.COMPLETE

    @property
    def is_complete(self) -> bool:
        """Return whether everything was read."""
        return self.completeness is LineageCompleteness.COMPLETE


class TerminalHolder(Struct, frozen=True):
    """A process that has the master side of a terminal open, so it controls the terminal.

    `displays` are the device numbers of other terminals that it has open. For a multiplexer such
    as tmux, these are the terminals of its clients.
    """

    lineage: Lineage
    displays: tuple[int, ...] = ()


TerminalHolders = Mapping[int, tuple[TerminalHolder, ...]]
"""The holders of terminals, by device number."""


class GuardAction(Enum):
    """The action of the guard on a command."""

    ADMIT = auto()
    CHALLENGE = auto()
    REFUSE = auto()


class GuardDecision(Struct, frozen=True):
    """The decision of the guard. `why` completes the sentence "this is refused, since ..."."""

    action: GuardAction
    why: str = ""


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

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"})
_INTERPRETERS = frozenset({"bun", "deno", "node", "nodejs", "ruby"}) | _SHELLS
_PYTHON = re.compile(r"(python|pypy)[\d.]*$")
# Programs through which an agent may start the bridge.
_LAUNCHERS = frozenset(
    {"direnv", "env", "mise", "nice", "nohup", "npm", "npx", "pipx", "timeout", "uv", "uvx"}
    | {"npm-cli", "npx-cli"}
)
# Programs that start other programs on behalf of anybody, so they say nothing about the caller.
_SERVICES = frozenset(
    {"anacron", "at", "atd", "cron", "crond", "dbus-daemon", "fcron", "init", "launchd", "login"}
    | {"runit", "runsvdir", "s6-svscan", "screen", "sshd", "sshd-session", "supervisord"}
    | {"systemd", "tmux: server", "tmux"}
)
# Programs that display the terminals they hold on the terminals of their clients.
_MULTIPLEXERS = frozenset({"screen", "tmux: server"})
_SHARED_GROUP = re.compile(rb"(?:|/|.*/(?:session-[^/]*\.scope|user@\d+\.service|init\.scope))$")
_EXTENSIONS = (".js", ".mjs", ".cjs", ".py", ".rb")


def check_caller(
    guard: Guard, caller: Caller, hosts: McpHosts, agents: Sequence[Agent]
) -> GuardDecision:
    """Return the decision of the guard on a command of `caller`."""
    if guard is Guard.OFF:
        return _ADMITTED
    lineage = caller.lineage
    if lineage.completeness is LineageCompleteness.UNAVAILABLE:
        return _UNSEEN
    if caller.has_gone or caller.process is None:
        return _GONE
    if why := next(_proofs_of_agent(lineage.processes, agents), None):
        return GuardDecision(GuardAction.REFUSE, why)
    if why := next(_doubts(caller, hosts, agents), None):
        # This is evidence, but not proof: an editor may have started the agent and the caller. A
        # person can answer on a terminal.
        return GuardDecision(
            GuardAction.CHALLENGE if caller.has_terminal else GuardAction.REFUSE, why
        )
    if guard is Guard.TERMINAL:
        if not caller.has_terminal:
            return GuardDecision(
                GuardAction.REFUSE, "the guard requires a terminal, and it has none"
            )
        return _ALWAYS
    return _ADMITTED


def _doubts(caller: Caller, hosts: McpHosts, agents: Sequence[Agent]) -> Iterator[str]:
    """Yield each reason to doubt that a person gave the command."""
    lineage = caller.lineage
    yield from _doubts_about_lineage(lineage.processes, hosts, agents)
    if not lineage.is_complete:
        yield _MISSING_FACTS[lineage.completeness]
    if not hosts.are_all_known:
        yield _HOSTS_UNSEEN
    if caller.process is None:
        return
    if caller.has_terminal:
        check = _TerminalCheck(caller.terminals, hosts, agents)
        if why := check.why_made_by_agent(caller.process.terminal):
            yield why
        return
    for host in hosts.processes:
        if _shares_group(lineage.processes, host):
            named = describe_process(host)
            yield f"it has no terminal, and the control group of {named}, which uses MCP"


class _TerminalCheck(Struct, frozen=True):
    """A check whether an agent created a terminal for itself."""

    terminals: TerminalHolders
    hosts: McpHosts
    agents: Sequence[Agent]

    def why_made_by_agent(self, terminal: int, seen: frozenset[int] = frozenset()) -> str | None:
        """Return the evidence that an agent created `terminal`, or None.

        If there is no such evidence about one of the holders, the result is None: another holder
        may have inherited the descriptor and never use it. `seen` are the terminals that the check
        has already visited.
        """
        holders = self.terminals.get(terminal, ())
        doubts = [self._doubt_about(holder, seen | {terminal}) for holder in holders]
        return doubts[0] if doubts and all(doubts) else None

    def _doubt_about(self, holder: TerminalHolder, seen: frozenset[int]) -> str | None:
        why = next(_doubts_about_holder(holder, self.hosts, self.agents), None)
        if why is None or not _multiplexes(holder):
            return why
        # If no agent created a client's terminal, a person sees the multiplexer there.
        displays = (display for display in holder.displays if display not in seen)
        if any(self.why_made_by_agent(display, seen) is None for display in displays):
            return None
        return why


def _doubts_about_holder(
    holder: TerminalHolder, hosts: McpHosts, agents: Sequence[Agent]
) -> Iterator[str]:
    chain = holder.lineage.processes
    if not chain:
        return
    if not holder.lineage.is_complete:
        named = describe_process(chain[0])
        yield f"rootsd cannot see who started {named}, which holds its terminal"
    holds = f"{describe_process(chain[0])} holds its terminal"
    for why in (*_proofs_of_agent(chain, agents), *_host_doubts(chain, hosts)):
        yield f"{holds}, and {why}"
    for host in hosts.processes:
        if _started_in_group_of(chain, host):
            yield f"{holds}, in the control group of {describe_process(host)}, which uses MCP"


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
        if not _SERVICES.isdisjoint(_names(process)):
            break
        origin = process
    return origin


def _multiplexes(holder: TerminalHolder) -> bool:
    chain = holder.lineage.processes
    return bool(chain) and not _MULTIPLEXERS.isdisjoint(_names(chain[0]))


def _is_service(process: Process) -> bool:
    names = _names(process)
    return not _SERVICES.isdisjoint(names) and _MULTIPLEXERS.isdisjoint(names)


def _proofs_of_agent(chain: ProcessChain, agents: Sequence[Agent]) -> Iterator[str]:
    for process, agent in product(chain, agents):
        if is_agent(process, agent):
            yield f"{agent.label} started it ({describe_process(process)})"
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
            yield f"{describe_process(process)} started it, and uses MCP"


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
    return top.started > host.started and _SERVICES.isdisjoint(_names(top))


def is_agent(process: Process, agent: Agent) -> bool:
    """Return whether `process` is a program of `agent`."""
    if not agent.names.isdisjoint(_names(process)):
        return True
    script = _script(process)
    return script is not None and any(part in script for part in agent.packages)


def mcp_hosts_in(chain: ProcessChain) -> Iterator[Process]:
    """Yield the processes that count as hosts because the first one in `chain` is connected.

    These are the connected process itself and, if it is a bridge or run proxy, the program that
    started it, with the shells and launchers in between. An interactive shell or a service does
    not count.
    """
    if chain:
        yield chain[0]
    if not chain or not _is_proxy(chain[0]):
        return
    for process in chain[1:]:
        if _is_interactive_shell(process) or not _SERVICES.isdisjoint(_names(process)):
            return
        yield process
        if not _only_launches(process):
            return


def describe_process(process: Process) -> str:
    """Return the name and the pid of a process, safe to show."""
    return f"{safe_label(process.name)}, pid {process.pid}"


def describe_caller(caller: Caller) -> str:
    """Return a short description of the caller for the log, with its ancestors and terminal."""
    if caller.process is None:
        return "an unknown process"
    names = " < ".join(safe_label(process.name) for process in caller.lineage.processes[1:5])
    terminal = caller.process.terminal
    where = terminal_name(terminal) if terminal else "no terminal"
    return f"pid {caller.process.pid}, {names or 'unknown parent'}, {where}"


def _names(process: Process) -> set[str]:
    """Return the names of a process: from the kernel, its arguments, and the script it runs."""
    names = {_text(process.name)}
    if process.arguments:
        names.add(_base(process.arguments[0]).lstrip("-"))
    script = _script(process)
    if script is not None:
        name = script.rpartition("/")[2]
        names.add(name)
        names.update(name.removesuffix(end) for end in _EXTENSIONS if name.endswith(end))
    return names


def _script(process: Process) -> str | None:
    """Return the path of the script, or the module of `python -m`, that an interpreter runs."""
    if not process.arguments or not _interprets(_base(process.arguments[0]).lstrip("-")):
        return None
    rest = [_text(argument) for argument in process.arguments[1:]]
    for place, argument in enumerate(rest):
        if argument in ("-c", "-e", "-p", "--eval", "--print"):
            return None
        if argument == "-m":
            return "/".join(rest[place + 1 : place + 2])
        if not argument.startswith("-"):
            return argument
    return None


def _interprets(name: str) -> bool:
    return name in _INTERPRETERS or _PYTHON.match(name) is not None


def _is_interactive_shell(process: Process) -> bool:
    """Return whether the process is a shell without a command or a script."""
    if not process.arguments or _base(process.arguments[0]).lstrip("-") not in _SHELLS:
        return False
    return all(
        argument.startswith((b"-", b"+")) and not _has_command(argument)
        for argument in process.arguments[1:]
    )


def _has_command(flag: bytes) -> bool:
    return not flag.startswith(b"--") and b"c" in flag[1:]


def _is_proxy(process: Process) -> bool:
    words = [_base(argument) for argument in process.arguments]
    if "rootsd" not in words:
        return False
    verbs = (word for word in words[words.index("rootsd") + 1 :] if not word.startswith("-"))
    return next(verbs, None) in ("bridge", "run")


def _only_launches(process: Process) -> bool:
    names = _names(process)
    return not (_LAUNCHERS | _SHELLS).isdisjoint(names)


def _base(path: bytes) -> str:
    return _text(path.rpartition(b"/")[2])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
