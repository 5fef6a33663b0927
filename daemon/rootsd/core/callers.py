"""May this caller give orders? Facts about processes in; admitted, challenged or refused out.

It rests on who started whom. Nothing with the same user id is a boundary: an agent that means to
can get around every fact here. This stops and records the casual self-approval.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from itertools import product

from rootsd.core.agents import Agent
from rootsd.core.labels import safe_label


class Guard(StrEnum):
    """Who may decide."""

    AGENTS = "agents"
    """Whoever is not, and was not started by, an agent that can be seen."""
    TERMINAL = "terminal"
    """Of these, who has a terminal and types there what is asked for."""
    OFF = "off"
    """Everybody with this user id."""


@dataclass(frozen=True, slots=True)
class Process:
    """What is known of a process. `started` tells apart those that bear one pid after the other,
    and orders them; `terminal` is the device of the controlling one, 0 for none. `markers` are
    those asked for that stand in its environment."""

    pid: int
    started: int
    parent: int
    name: bytes
    arguments: tuple[bytes, ...] = ()
    terminal: int = 0
    control_group: bytes = b""
    markers: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[int, int]:
        """What no other process has had since the system started."""
        return self.pid, self.started


Lineage = Sequence[Process]
"""A process, then what started it, and so on up to but without the first of the system."""


class Response(Enum):
    """What becomes of an order."""

    ADMIT = auto()
    CHALLENGE = auto()
    REFUSE = auto()


@dataclass(frozen=True, slots=True)
class Finding:
    """`why` goes on from "this is refused, since"."""

    response: Response
    why: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `lineage` is None where nobody could look, and empty where there is nobody."""

    lineage: Lineage | None
    has_gone: bool = False


_ADMITTED = Finding(Response.ADMIT)
_UNSEEN = Finding(
    Response.CHALLENGE, "the helper process is missing, so that nobody can see who asks"
)
_ALWAYS = Finding(Response.CHALLENGE, "the guard asks every time")

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"})
_INTERPRETERS = frozenset({"bun", "deno", "node", "nodejs", "ruby"}) | _SHELLS
_PYTHON = re.compile(r"(python|pypy)[\d.]*$")
# They only stand between an agent and the bridge that it starts.
_LAUNCHERS = frozenset(
    {"direnv", "env", "mise", "nice", "nohup", "npm", "npx", "pipx", "timeout", "uv", "uvx"}
    | {"npm-cli", "npx-cli"}
)
# They start whatever anybody asks for, people above all.
_SERVICES = frozenset(
    {"anacron", "at", "atd", "cron", "crond", "dbus-daemon", "fcron", "init", "launchd", "login"}
    | {"runit", "runsvdir", "s6-svscan", "screen", "sshd", "sshd-session", "supervisord"}
    | {"systemd", "tmux: server", "tmux"}
)
_SHARED_GROUP = re.compile(rb"(?:|/|.*/(?:session-[^/]*\.scope|user@\d+\.service|init\.scope))$")
_EXTENSIONS = (".js", ".mjs", ".cjs", ".py", ".rb")


def judge_caller(
    guard: Guard, caller: Caller, hosts: Collection[Process], agents: Sequence[Agent]
) -> Finding:
    """What becomes of the caller's order. `hosts` hold an MCP connection, or started who does."""
    if guard is Guard.OFF:
        return _ADMITTED
    if caller.lineage is None:
        return _UNSEEN
    if caller.has_gone or not caller.lineage:
        return Finding(Response.REFUSE, "whoever asked is gone")
    has_terminal = caller.lineage[0].terminal != 0
    evidence = _evidence(caller.lineage, hosts, agents, has_terminal=has_terminal)
    if evidence is not None:
        return evidence
    if guard is Guard.TERMINAL:
        if not has_terminal:
            return Finding(Response.REFUSE, "the guard asks for a terminal, and there is none")
        return _ALWAYS
    return _ADMITTED


def _evidence(
    lineage: Lineage, hosts: Collection[Process], agents: Sequence[Agent], *, has_terminal: bool
) -> Finding | None:
    """What speaks for an agent behind the caller; None where nothing does."""
    if why := next(_sure_signs(lineage, agents), None):
        return Finding(Response.REFUSE, why)
    if why := next(_signs(lineage, hosts, agents), None):
        # An editor may have started both, and on a terminal somebody can answer for himself.
        return Finding(Response.CHALLENGE if has_terminal else Response.REFUSE, why)
    for host in hosts:
        if not has_terminal and _shares_group(lineage, host):
            why = f"it has no terminal, and the control group of {told(host)}, which uses MCP"
            return Finding(Response.REFUSE, why)
    return None


def _sure_signs(lineage: Lineage, agents: Sequence[Agent]) -> Iterator[str]:
    for process, agent in product(lineage, agents):
        if is_agent(process, agent):
            yield f"{agent.label} started it ({told(process)})"
        if marks := agent.markers & process.markers:
            yield _marked(agent, marks, process)


def _signs(lineage: Lineage, hosts: Collection[Process], agents: Sequence[Agent]) -> Iterator[str]:
    known = {host.key for host in hosts}
    for process in lineage:
        for agent in agents:
            if marks := agent.hints & process.markers:
                yield _marked(agent, marks, process)
        if process.key in known:
            yield f"{told(process)} started it, and uses MCP"


def _marked(agent: Agent, marks: Collection[str], process: Process) -> str:
    return f"{agent.label} started it ({', '.join(sorted(marks))} is set for {told(process)})"


def _shares_group(lineage: Lineage, host: Process) -> bool:
    """Whether the group speaks for the host. In one that everything shares it does only where
    nothing else tells what started the caller, and that was after the host."""
    if lineage[0].control_group != host.control_group:
        return False
    if not _SHARED_GROUP.match(host.control_group):
        return True
    top = lineage[-1]
    return top.started > host.started and _SERVICES.isdisjoint(_names(top))


def is_agent(process: Process, agent: Agent) -> bool:
    """Whether `process` is a program of `agent`."""
    if not agent.names.isdisjoint(_names(process)):
        return True
    script = _script(process)
    return script is not None and any(part in script for part in agent.packages)


def hosts_in(lineage: Lineage) -> Iterator[Process]:
    """Who counts as using MCP, of a process that holds a connection and those above it: itself,
    and for our bridge or relay who started it, through shells and launchers. Not a shell that
    somebody types into, nor what starts everything."""
    if lineage:
        yield lineage[0]
    if not lineage or not _is_pump(lineage[0]):
        return
    for process in lineage[1:]:
        if _is_typed_into(process) or not _SERVICES.isdisjoint(_names(process)):
            return
        yield process
        if not _only_launches(process):
            return


def told(process: Process) -> str:
    """A process in a few words that are safe to show."""
    return f"{safe_label(process.name)}, pid {process.pid}"


def who(caller: Caller) -> str:
    """The caller in a few words for the log: the programs above it, and where it types."""
    if not caller.lineage:
        return "nobody could see who"
    names = " < ".join(safe_label(process.name) for process in caller.lineage[1:5])
    terminal = caller.lineage[0].terminal
    where = f"terminal {terminal >> 8}:{terminal & 0xFF}" if terminal else "no terminal"
    return f"pid {caller.lineage[0].pid}, {names or 'started by nobody'}, {where}"


def _names(process: Process) -> set[str]:
    """What a process is called: by the kernel, by itself, and by the script that it runs."""
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
    """What an interpreter runs: the path of a script, or for Python the name of a module."""
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


def _is_typed_into(process: Process) -> bool:
    """Whether it is a shell with neither a command nor a script."""
    if not process.arguments or _base(process.arguments[0]).lstrip("-") not in _SHELLS:
        return False
    return all(
        argument.startswith((b"-", b"+")) and not _has_command(argument)
        for argument in process.arguments[1:]
    )


def _has_command(flag: bytes) -> bool:
    return not flag.startswith(b"--") and b"c" in flag[1:]


def _is_pump(process: Process) -> bool:
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
