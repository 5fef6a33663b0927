"""Who may give orders, said in tables of processes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rootsd.core.agents import KNOWN_AGENTS
from rootsd.core.callers import (
    Caller,
    Finding,
    Guard,
    Process,
    Response,
    hosts_in,
    is_agent,
    judge_caller,
    who,
)
from support.street import OWN_GROUP, TERMINAL, Street, process

ADMIT, CHALLENGE, REFUSE = Response.ADMIT, Response.CHALLENGE, Response.REFUSE
ROOT_GROUP, SESSION = b"/", b"/user.slice/user-1000.slice/session-3.scope"
# A desktop: a tab with a shell, an agent in another, an editor that starts bridge and terminal.
TERMINAL_EMULATOR = process(10, 1, "gnome-terminal-", control_group=b"/user.slice/app-term.scope")
SHELL = process(20, 10, "bash", "-bash", terminal=TERMINAL)
CALLER = process(90, 20, "rootsd", "rootsd", "approve", "api", terminal=TERMINAL)


def judged(
    *line: Process, hosts: tuple[Process, ...] = (), guard: Guard = Guard.AGENTS
) -> Finding:
    """What becomes of the first's order; the others are those above it."""
    return judge_caller(guard, Caller(line), hosts, KNOWN_AGENTS)


def without_terminal(*line: Process) -> tuple[Process, ...]:
    return tuple(replace(each, terminal=0) for each in line)


def test_a_person_in_a_tab_may() -> None:
    assert judged(CALLER, SHELL, TERMINAL_EMULATOR).response is ADMIT


def test_who_is_gone_may_not() -> None:
    assert judged().response is REFUSE
    finding = judge_caller(Guard.AGENTS, Caller((CALLER,), has_gone=True), (), ())
    assert (finding.response, finding.why) == (REFUSE, "whoever asked is gone")


def test_whom_nobody_can_see_is_asked_for_a_word() -> None:
    assert judge_caller(Guard.AGENTS, Caller(None), (), ()).response is CHALLENGE


@pytest.mark.parametrize("agent", KNOWN_AGENTS, ids=lambda agent: agent.label)
def test_a_known_agent_above_refuses_by_each_name_and_marker(agent: object) -> None:
    known = next(a for a in KNOWN_AGENTS if a is agent)
    for name in known.names:
        above = process(30, 20, name, f"/usr/bin/{name}", terminal=TERMINAL)
        finding = judged(replace(CALLER, parent=30), above, SHELL)
        assert finding.response is REFUSE
        assert known.label in finding.why
    for marker in known.markers:
        marked = replace(CALLER, markers=frozenset({marker}))
        assert judged(marked, SHELL).response is REFUSE
        assert judged(CALLER, replace(SHELL, markers=frozenset({marker}))).response is REFUSE


@pytest.mark.parametrize(
    "words",
    [
        ("node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"),
        ("node", "--no-warnings", "/usr/bin/gemini"),
        ("/usr/bin/python3", "/home/ann/.local/bin/aider", "--model", "x"),
        ("python3.12", "-m", "aider"),
        ("bash", "/opt/tools/claude"),
        ("bun", "/home/ann/opencode.js"),
        ("/home/ann/.local/share/cursor-agent/versions/1/node", "/x/cursor-agent/index.js"),
    ],
)
def test_an_agent_is_told_by_the_script_that_an_interpreter_runs(words: tuple[str, ...]) -> None:
    assert any(is_agent(process(30, 20, "node", *words), agent) for agent in KNOWN_AGENTS)


@pytest.mark.parametrize(
    "words",
    [
        ("vim", "claude"), ("bash", "-c", "cd /src/claude"), ("node", "-e", "claude"),
        ("grep", "codex"), ("bash",), ("python3",), ("less", "/bin/amp"), ("node", "--version"),
    ],
)  # fmt: skip
def test_an_agent_is_not_told_by_what_somebody_works_on(words: tuple[str, ...]) -> None:
    assert not any(is_agent(process(30, 20, words[0], *words), agent) for agent in KNOWN_AGENTS)


def test_a_marker_that_terminals_of_editors_have_asks_there_and_refuses_elsewhere() -> None:
    marked = replace(CALLER, markers=frozenset({"CLAUDECODE"}))
    assert judged(marked, SHELL).response is CHALLENGE
    assert judged(*without_terminal(marked, SHELL)).response is REFUSE


def test_an_unknown_program_that_started_a_bridge_may_not_and_on_a_terminal_it_is_asked() -> None:
    host = process(30, 20, "my-agent", terminal=TERMINAL)
    caller = replace(CALLER, parent=30)
    assert judged(caller, host, SHELL, hosts=(host,)).response is CHALLENGE
    finding = judged(*without_terminal(caller, host, SHELL), hosts=(host,))
    assert finding.response is REFUSE
    assert "my-agent, pid 30" in finding.why


def test_another_process_that_got_the_pid_of_a_host_is_none() -> None:
    host = process(30, 20, "my-agent")
    later = replace(host, started=host.started + 1)
    assert judged(replace(CALLER, parent=30), later, SHELL, hosts=(host,)).response is ADMIT


def test_without_a_terminal_the_control_group_of_a_host_speaks() -> None:
    host = process(30, 1, "my-agent")
    orphan = process(90, 1, "rootsd")
    assert judged(orphan, hosts=(host,)).response is REFUSE
    assert judged(replace(orphan, terminal=TERMINAL), hosts=(host,)).response is ADMIT
    assert judged(replace(orphan, control_group=b"/other"), hosts=(host,)).response is ADMIT


@pytest.mark.parametrize("group", [ROOT_GROUP, SESSION, b""])
def test_a_group_that_all_share_speaks_of_those_alone_that_nobody_started(
    group: bytes,
) -> None:
    host = process(30, 1, "my-agent", control_group=group)
    orphan = process(90, 1, "rootsd", control_group=group)
    assert judged(orphan, hosts=(host,)).response is REFUSE
    script = process(80, 1, "sh", "sh", "-c", "rootsd approve x", control_group=group)
    assert judged(replace(orphan, parent=80), script, hosts=(host,)).response is REFUSE
    for above in ("cron", "sshd", "systemd", "tmux: server"):
        service = process(70, 1, above, control_group=group)
        line = (replace(orphan, parent=80), replace(script, parent=70), service)
        assert judged(*line, hosts=(host,)).response is ADMIT
    earlier = process(20, 1, "supervisor", control_group=group)
    assert judged(replace(orphan, parent=20), earlier, hosts=(host,)).response is ADMIT


def test_the_guard_of_terminals_asks_everybody_and_refuses_agents_all_the_same() -> None:
    claude = process(30, 20, "claude", terminal=TERMINAL)
    assert judged(CALLER, SHELL, guard=Guard.TERMINAL).response is CHALLENGE
    no_terminal = without_terminal(CALLER, SHELL)
    assert judged(*no_terminal, guard=Guard.TERMINAL).response is REFUSE
    assert judged(CALLER, claude, guard=Guard.TERMINAL).response is REFUSE


def test_no_guard_lets_everybody() -> None:
    claude = process(30, 20, "claude")
    assert judged(CALLER, claude, guard=Guard.OFF).response is ADMIT
    assert judge_caller(Guard.OFF, Caller((), has_gone=True), (), ()).response is ADMIT


def names_of_hosts(*line: Process) -> list[bytes]:
    return [host.name for host in hosts_in(line)]


BRIDGE = process(50, 40, "rootsd", "/usr/bin/python3", "-m", "rootsd", "bridge", "--only", "cwd")
AGENT = process(30, 20, "my-agent", terminal=TERMINAL)


def test_who_started_a_bridge_is_a_host_through_shells_and_launchers() -> None:
    wrapper = process(40, 30, "sh", "sh", "-c", "rootsd bridge")
    assert names_of_hosts(BRIDGE, wrapper, AGENT, SHELL) == [b"rootsd", b"sh", b"my-agent"]
    assert names_of_hosts(replace(BRIDGE, parent=30), AGENT, SHELL) == [b"rootsd", b"my-agent"]
    launcher = process(40, 30, "uv", "uvx", "rootsd", "bridge")
    assert names_of_hosts(BRIDGE, launcher, AGENT, SHELL)[-1] == b"my-agent"


@pytest.mark.parametrize("shell", [("bash",), ("-zsh",), ("bash", "-i", "-l"), ("fish",)])
def test_a_shell_that_somebody_types_into_is_no_host(shell: tuple[str, ...]) -> None:
    typed = process(20, 10, shell[0].lstrip("-"), *shell, terminal=TERMINAL)
    assert names_of_hosts(BRIDGE, typed, TERMINAL_EMULATOR) == [b"rootsd"]


@pytest.mark.parametrize("service", ["systemd", "sshd", "tmux: server", "cron"])
def test_what_starts_everything_is_no_host(service: str) -> None:
    wrapper = process(40, 12, "sh", "sh", "-c", "rootsd bridge")
    line = (BRIDGE, wrapper, process(12, 1, service))
    assert names_of_hosts(*line) == [b"rootsd", b"sh"]


def test_who_speaks_mcp_itself_is_a_host_and_who_started_it_is_not() -> None:
    direct = process(50, 20, "python3", "python3", "client.py")
    assert names_of_hosts(direct, AGENT) == [b"python3"]
    assert names_of_hosts() == []
    listing = process(50, 20, "rootsd", "rootsd", "ls")
    assert names_of_hosts(listing, AGENT) == [b"rootsd"]


def test_names_from_processes_are_made_safe_in_what_is_told() -> None:
    evil = process(30, 20, "my\x1b]0;x\n-agent")
    finding = judged(replace(CALLER, parent=30, terminal=0), evil, hosts=(evil,))
    assert finding.why.isprintable()
    told = who(Caller((CALLER, evil)))
    assert told.isprintable()
    assert "pid 90" in told
    assert "terminal 136:0" in told
    assert who(Caller(())) == who(Caller(None)) == "nobody could see who"
    assert "no terminal" in who(Caller(without_terminal(CALLER)))


def test_the_group_of_the_table_is_none_that_all_share() -> None:
    assert OWN_GROUP not in (ROOT_GROUP, SESSION)
    assert Street(SHELL, TERMINAL_EMULATOR).lineage(20) == (SHELL, TERMINAL_EMULATOR)
