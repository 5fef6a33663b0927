"""The guard's decisions, as tables of processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rootsd.agents.guarded import guarded_agents
from rootsd.core.agents import Agent
from rootsd.core.guard import (
    Caller,
    GuardAction,
    GuardDecision,
    McpHosts,
    check_caller,
    describe_caller,
    mcp_hosts_in,
)
from rootsd.core.guard_setting import Guard
from rootsd.core.processes import Lineage, LineageCompleteness, Process, TerminalHolder
from rootsd.core.recognition import agents_of
from support.counted_calls import count_calls
from support.process_table import OWN_GROUP, TERMINAL, process

KNOWN = guarded_agents()
ADMIT, CHALLENGE, REFUSE = GuardAction.ADMIT, GuardAction.CHALLENGE, GuardAction.REFUSE
ROOT_GROUP, SESSION = b"/", b"/user.slice/user-1000.slice/session-3.scope"
# A desktop: a tab with a shell, another with an agent, and an editor that starts a bridge and a
# terminal.
TERMINAL_EMULATOR = process(
    10, 1, "gnome-terminal-server", control_group=b"/user.slice/app-term.scope"
)
SHELL = process(20, 10, "bash", "-bash", terminal=TERMINAL)
CALLER = process(90, 20, "rootsd", "rootsd", "approve", "api", terminal=TERMINAL)


def judged(
    *line: Process, hosts: tuple[Process, ...] = (), guard: Guard = Guard.AGENTS
) -> GuardDecision:
    """Return the decision on a command of the first process; the others are its ancestors."""
    return check_caller(guard, Caller(Lineage(line)), McpHosts(hosts), KNOWN)


def without_terminal(*line: Process) -> tuple[Process, ...]:
    return tuple(replace(each, terminal=0) for each in line)


def test_a_caller_that_ended_is_refused() -> None:
    assert judged().action is REFUSE
    finding = check_caller(Guard.AGENTS, Caller(Lineage((CALLER,)), has_gone=True), McpHosts(), ())
    assert (finding.action, finding.why) == (REFUSE, "the process that sent it is gone")


@pytest.mark.parametrize(
    "seen_as", [each for each in LineageCompleteness if each is not LineageCompleteness.COMPLETE]
)
def test_an_incomplete_lineage_is_never_admitted(seen_as: LineageCompleteness) -> None:
    def judged_so(*line: Process) -> GuardAction:
        caller = Caller(Lineage(line, seen_as))
        return check_caller(Guard.AGENTS, caller, McpHosts(), KNOWN).action

    assert judged_so() is REFUSE
    assert judged_so(*without_terminal(CALLER, SHELL)) is REFUSE
    # Without the helper, the guard cannot show a challenge on a terminal.
    is_unseen = seen_as is LineageCompleteness.UNAVAILABLE
    assert judged_so(CALLER, SHELL) is (REFUSE if is_unseen else CHALLENGE)
    assert judged_so(CALLER, process(30, 20, "claude"), SHELL) is REFUSE


def test_every_caller_is_challenged_while_hosts_are_unknown() -> None:
    hosts = McpHosts((), are_all_known=False)
    caller = Caller(Lineage((CALLER, SHELL)))
    assert check_caller(Guard.AGENTS, caller, hosts, ()).action is CHALLENGE
    caller = Caller(Lineage(without_terminal(CALLER, SHELL)))
    assert check_caller(Guard.AGENTS, caller, hosts, ()).action is REFUSE


# Terminals and the programs that hold them: an agent in a tab, younger than the terminal program.
TAB = b"/user.slice/user-1000.slice/user@1000.service/app.slice/app-kitty-7.scope"
KITTY = process(10, 5, "kitty", control_group=TAB)
MANAGER = process(5, 1, "systemd", "/lib/systemd/systemd", "--user", control_group=b"/x")
TAB_SHELL = process(20, 10, "bash", "bash", terminal=TERMINAL, control_group=TAB)
HOST = process(30, 20, "my-agent", terminal=TERMINAL, control_group=TAB)
OTHER_TERMINAL = TERMINAL + 7
ORPHAN = process(90, 80, "rootsd", terminal=OTHER_TERMINAL, control_group=TAB)


def holder(*line: Process, displays: tuple[int, ...] = ()) -> TerminalHolder:
    return TerminalHolder(Lineage(line), displays)


def judged_on(
    *holders: TerminalHolder,
    hosts: tuple[Process, ...] = (HOST,),
    first: TerminalHolder | None = None,
) -> GuardDecision:
    """Return the decision on a command from OTHER_TERMINAL, which `holders` have open.

    `first` holds the terminal of the agent's tab.
    """
    terminals = {OTHER_TERMINAL: holders, TERMINAL: (first,) if first else ()}
    caller = Caller(Lineage((ORPHAN,)), terminals=terminals)
    return check_caller(Guard.AGENTS, caller, McpHosts(hosts), KNOWN)


def test_a_terminal_held_by_an_orphan_in_the_agents_group_is_challenged() -> None:
    orphan = process(40, 5, "script", control_group=TAB)
    assert judged_on(holder(orphan, MANAGER)).action is CHALLENGE
    assert judged_on(holder(replace(orphan, parent=1))).action is CHALLENGE
    below = process(45, 40, "script", control_group=TAB)
    assert judged_on(holder(below, orphan, MANAGER)).action is CHALLENGE
    finding = judged_on(holder(orphan, MANAGER))
    assert "script, pid 40 holds its terminal" in finding.why
    # The controls: no agent, an older holder, another group, a group shared by a login.
    assert judged_on(holder(orphan, MANAGER), hosts=()).action is ADMIT
    older = process(25, 5, "script", control_group=TAB)
    assert judged_on(holder(older, MANAGER)).action is ADMIT
    assert judged_on(holder(replace(orphan, started=HOST.started), MANAGER)).action is ADMIT
    elsewhere = replace(orphan, control_group=TAB + b"x")
    assert judged_on(holder(elsewhere, MANAGER)).action is ADMIT
    for shared in (ROOT_GROUP, SESSION, b""):
        host = replace(HOST, control_group=shared)
        alike = replace(orphan, control_group=shared)
        assert judged_on(holder(alike, MANAGER), hosts=(host,)).action is ADMIT


def test_a_terminal_held_by_a_child_of_an_agent_is_challenged_in_any_group() -> None:
    below = process(45, 30, "script", control_group=ROOT_GROUP)
    assert judged_on(holder(below, HOST, TAB_SHELL)).action is CHALLENGE
    claude = process(30, 20, "claude", control_group=ROOT_GROUP)
    assert judged_on(holder(below, claude), hosts=()).action is CHALLENGE
    marked = replace(below, markers=frozenset({"GEMINI_CLI"}))
    assert judged_on(holder(marked), hosts=()).action is CHALLENGE


def test_a_terminal_of_the_program_that_runs_the_agent_belongs_to_a_person() -> None:
    assert judged_on(holder(KITTY, MANAGER)).action is ADMIT
    script = process(45, 40, "script", control_group=TAB)
    second_tab = process(40, 10, "bash", "bash", control_group=TAB)
    assert judged_on(holder(script, second_tab, KITTY, MANAGER)).action is ADMIT
    pty_host = process(50, 25, "code", control_group=TAB)
    editor = process(25, 5, "code", control_group=TAB)
    assert judged_on(holder(pty_host, editor, MANAGER)).action is ADMIT


def test_a_terminal_of_a_service_or_an_unknown_holder_belongs_to_a_person() -> None:
    assert judged_on().action is ADMIT
    session = process(50, 45, "sshd-session", control_group=TAB)
    assert judged_on(holder(session, process(45, 1, "sshd"))).action is ADMIT


def test_one_holder_without_an_agent_is_enough_for_a_person() -> None:
    """A program may inherit the descriptor of another program's terminal."""
    orphan = process(40, 5, "python3", control_group=TAB)
    assert judged_on(holder(orphan, MANAGER), holder(KITTY, MANAGER)).action is ADMIT


def test_tmux_belongs_to_a_person_if_a_persons_terminal_displays_it() -> None:
    tmux = process(40, 5, "tmux: server", control_group=TAB)
    assert judged_on(holder(tmux, MANAGER)).action is CHALLENGE
    shown = holder(tmux, MANAGER, displays=(TERMINAL,))
    assert judged_on(shown).action is ADMIT, "the holder of the terminal is unknown"
    assert judged_on(shown, first=holder(KITTY, MANAGER)).action is ADMIT
    script = process(50, 5, "script", control_group=TAB)
    assert judged_on(shown, first=holder(script, MANAGER)).action is CHALLENGE
    # A terminal that is displayed nowhere is no evidence, nor is one without a multiplexer.
    itself = holder(tmux, MANAGER, displays=(OTHER_TERMINAL,))
    assert judged_on(itself).action is CHALLENGE
    python = process(40, 5, "python3", control_group=TAB)
    assert judged_on(holder(python, MANAGER, displays=(TERMINAL,))).action is CHALLENGE


@pytest.mark.parametrize(
    ("name", "opens_clients"), [("tmux: server", True), ("screen", True), ("zellij", False)]
)
def test_a_multiplexer_that_no_terminal_of_a_person_displays_is_challenged(
    name: str, *, opens_clients: bool
) -> None:
    """Its parent is init, whoever started it, and here nobody uses MCP."""

    def judged_in(*shown: TerminalHolder) -> GuardDecision:
        server = process(40, 1, name, program=b"/usr/bin/" + name.partition(":")[0].encode())
        displays = (OTHER_TERMINAL,) if shown else ()
        terminals = {TERMINAL: (holder(server, displays=displays),), OTHER_TERMINAL: shown}
        line = Lineage((replace(CALLER, parent=30), replace(SHELL, pid=30, parent=40), server))
        return check_caller(Guard.AGENTS, Caller(line, terminals=terminals), McpHosts(), KNOWN)

    unseen = judged_in()
    assert unseen.action is (CHALLENGE if opens_clients else ADMIT)
    assert ("no terminal displays" in unseen.why) is opens_clients
    agent = process(60, 5, "agent", program=b"/home/ann/bin/agent")
    script = process(61, 60, "script", program=b"/usr/bin/script")
    shown = judged_in(holder(script, agent))
    assert shown.action is CHALLENGE
    assert "which started that" in shown.why
    assert "which holds its terminal" in judged_in(holder(agent)).why
    assert judged_in(holder(KITTY, MANAGER)).action is ADMIT
    assert judged_in(holder(script, agent), holder(KITTY, MANAGER)).action is ADMIT


def test_a_holder_with_an_incomplete_lineage_is_challenged() -> None:
    late = TerminalHolder(Lineage((KITTY,), LineageCompleteness.LATE))
    assert judged_on(late).action is CHALLENGE


@pytest.mark.parametrize("known", KNOWN, ids=lambda agent: agent.label)
def test_a_known_agent_above_refuses_by_each_name_and_marker(known: Agent) -> None:
    for name in known.names:
        above = process(30, 20, name, f"/usr/bin/{name}", terminal=TERMINAL)
        finding = judged(replace(CALLER, parent=30), above, SHELL)
        assert finding.action is REFUSE
        assert known.label in finding.why
    for marker in known.markers:
        marked = replace(CALLER, markers=frozenset({marker}))
        assert judged(marked, SHELL).action is REFUSE
        assert judged(CALLER, replace(SHELL, markers=frozenset({marker}))).action is REFUSE


def test_an_agent_is_recognized_by_the_script_of_an_interpreter_and_by_no_other_argument() -> None:
    def is_agent(*words: str) -> bool:
        return bool(agents_of(process(30, 20, words[0].rpartition("/")[2], *words), KNOWN))

    for words in (
        ("node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"),
        ("node", "--no-warnings", "/usr/bin/gemini"),
        ("/usr/bin/python3", "/home/ann/.local/bin/aider", "--model", "x"),
        ("python3.12", "-m", "aider"),
        ("bash", "/opt/tools/claude"),
        ("bun", "/home/ann/opencode.js"),
        ("/home/ann/.local/share/cursor-agent/versions/1/node", "/x/cursor-agent/index.js"),
    ):
        assert is_agent(*words), words
    for others in (
        ("vim", "claude"), ("bash", "-c", "cd /src/claude"), ("node", "-e", "claude"),
        ("grep", "codex"), ("bash",), ("python3",), ("less", "/bin/amp"), ("node", "--version"),
    ):  # fmt: skip
        assert not is_agent(*others), others


def test_an_editors_marker_leads_to_a_challenge_on_a_terminal_and_a_refusal_elsewhere() -> None:
    marked = replace(CALLER, markers=frozenset({"CLAUDECODE"}))
    assert judged(marked, SHELL).action is CHALLENGE
    assert judged(*without_terminal(marked, SHELL)).action is REFUSE


def test_a_host_is_refused_without_a_terminal_and_challenged_with_one() -> None:
    host = process(30, 20, "my-agent", terminal=TERMINAL)
    caller = replace(CALLER, parent=30)
    assert judged(caller, host, SHELL, hosts=(host,)).action is CHALLENGE
    finding = judged(*without_terminal(caller, host, SHELL), hosts=(host,))
    assert finding.action is REFUSE
    assert "my-agent, pid 30" in finding.why


def test_a_process_that_reuses_the_pid_of_a_host_is_not_a_host() -> None:
    host = process(30, 20, "code")
    later = replace(host, started=host.started + 1)
    assert judged(replace(CALLER, parent=30), later, SHELL, hosts=(host,)).action is ADMIT


def test_without_a_terminal_the_control_group_of_a_host_is_evidence() -> None:
    host = process(30, 1, "my-agent")
    orphan = process(90, 1, "rootsd")
    assert judged(orphan, hosts=(host,)).action is REFUSE
    assert judged(replace(orphan, terminal=TERMINAL), hosts=(host,)).action is ADMIT
    assert judged(replace(orphan, control_group=b"/other"), hosts=(host,)).action is ADMIT


@pytest.mark.parametrize("group", [ROOT_GROUP, SESSION, b""])
def test_a_shared_control_group_is_evidence_only_for_orphans(group: bytes) -> None:
    assert group != OWN_GROUP
    host = process(30, 1, "my-agent", control_group=group)
    orphan = process(90, 1, "rootsd", control_group=group)
    assert judged(orphan, hosts=(host,)).action is REFUSE
    at_once = replace(orphan, started=host.started)
    is_alone = judged(orphan).action  # in the scope of a login, an orphan needs no host
    assert judged(at_once, hosts=(host,)).action is is_alone, "the host did not start it"
    script = process(80, 1, "sh", "sh", "-c", "rootsd approve x", control_group=group)
    assert judged(replace(orphan, parent=80), script, hosts=(host,)).action is REFUSE
    for above in ("cron", "sshd", "tmux: server"):
        service = process(70, 1, above, control_group=group)
        line = (replace(orphan, parent=80), replace(script, parent=70), service)
        assert judged(*line, hosts=(host,)).action is ADMIT
    earlier = process(20, 1, "kitty", control_group=group)
    assert judged(replace(orphan, parent=20), earlier, hosts=(host,)).action is ADMIT


MANAGER = process(5, 1, "systemd", "/usr/lib/systemd/systemd", "--user")


@pytest.mark.parametrize("group", [SESSION, TAB])
@pytest.mark.parametrize("above", [(), (MANAGER,)])
def test_a_caller_whose_starter_has_ended_is_not_admitted_in_a_scope(
    group: bytes, above: tuple[Process, ...]
) -> None:
    starter = above[0].pid if above else 1
    orphan = process(90, starter, "rootsd", control_group=group)
    shell = process(80, starter, "sh", "sh", "-c", "rootsd approve x", control_group=group)
    for line in ((orphan, *above), (replace(orphan, parent=80), shell, *above)):
        refused = judged(*line)
        assert refused.action is REFUSE
        assert "has ended, so rootsd cannot tell who gave it" in refused.why
        shown = tuple(replace(each, terminal=TERMINAL) for each in line)
        assert judged(*shown).action is CHALLENGE


@pytest.mark.parametrize("group", [SESSION, TAB])
@pytest.mark.parametrize("name", ["kitty", "tmux", "code", "sway", "mosh-server"])
def test_a_caller_below_a_program_that_detached_itself_is_admitted(
    group: bytes, name: str
) -> None:
    detached = process(70, MANAGER.pid, name, control_group=group)
    caller = process(90, 70, "rootsd", control_group=group)
    assert judged(caller, detached, MANAGER).action is ADMIT
    assert judged(caller, replace(detached, parent=1)).action is ADMIT


def test_what_systemd_and_containers_start_is_no_orphan() -> None:
    """The control: these look like an orphan, but for the control group or the parent."""
    unit = b"/user.slice/user-1000.slice/user@1000.service/app.slice/approve.service"
    for group in (unit, b"/system.slice/nightly.service", b"/init.scope", b"/", b""):
        caller = process(90, 1, "rootsd", control_group=group)
        assert judged(caller).action is ADMIT
        assert judged(replace(caller, parent=5), MANAGER).action is ADMIT
    container = b"/system.slice/docker-0a1b.scope"
    assert judged(process(90, 1, "rootsd", control_group=container)).action is ADMIT
    unread_login = process(90, 60, "rootsd", control_group=SESSION)  # hidepid in proc(5)
    assert judged(unread_login).action is ADMIT


def test_the_terminal_guard_challenges_everybody_and_still_refuses_agents() -> None:
    claude = process(30, 20, "claude", terminal=TERMINAL)
    assert judged(CALLER, SHELL, guard=Guard.TERMINAL).action is CHALLENGE
    no_terminal = without_terminal(CALLER, SHELL)
    assert judged(*no_terminal, guard=Guard.TERMINAL).action is REFUSE
    assert judged(CALLER, claude, guard=Guard.TERMINAL).action is REFUSE


def test_without_a_guard_everybody_is_admitted() -> None:
    claude = process(30, 20, "claude")
    assert judged(CALLER, claude, guard=Guard.OFF).action is ADMIT
    assert (
        check_caller(Guard.OFF, Caller(Lineage(), has_gone=True), McpHosts(), ()).action is ADMIT
    )


def names_of_hosts(*line: Process) -> list[bytes]:
    return [host.name for host in mcp_hosts_in(line)]


BRIDGE = process(50, 40, "rootsd", "/usr/bin/python3", "-m", "rootsd", "bridge", "--only", "cwd")
AGENT = process(30, 20, "my-agent", terminal=TERMINAL)


def test_the_starter_of_a_bridge_is_a_host_behind_shells_and_launchers() -> None:
    wrapper = process(40, 30, "sh", "sh", "-c", "rootsd bridge")
    assert names_of_hosts(BRIDGE, wrapper, AGENT, SHELL) == [b"rootsd", b"sh", b"my-agent"]
    odd = process(40, 30, "sh", "sh", "-lc", "-rootsd")
    assert names_of_hosts(BRIDGE, odd, AGENT, SHELL) == [b"rootsd", b"sh", b"my-agent"]
    assert names_of_hosts(replace(BRIDGE, parent=30), AGENT, SHELL) == [b"rootsd", b"my-agent"]
    launcher = process(40, 30, "uv", "uvx", "rootsd", "bridge")
    assert names_of_hosts(BRIDGE, launcher, AGENT, SHELL)[-1] == b"my-agent"


def test_neither_an_interactive_shell_nor_a_service_is_a_host() -> None:
    for shell in (("bash",), ("-zsh",), ("bash", "-i", "-l"), ("fish",), ("bash", "--norc")):
        typed = process(20, 10, shell[0].lstrip("-"), *shell, terminal=TERMINAL)
        assert names_of_hosts(BRIDGE, typed, TERMINAL_EMULATOR) == [b"rootsd"]
    wrapper = process(40, 12, "sh", "sh", "-c", "rootsd bridge")
    for service in ("systemd", "sshd", "tmux: server", "cron"):
        assert names_of_hosts(BRIDGE, wrapper, process(12, 1, service)) == [b"rootsd", b"sh"]


def test_an_mcp_client_is_a_host_and_its_starter_is_not() -> None:
    direct = process(50, 20, "python3", "python3", "client.py")
    assert names_of_hosts(direct, AGENT) == [b"python3"]
    assert names_of_hosts() == []
    listing = process(50, 20, "rootsd", "rootsd", "ls")
    assert names_of_hosts(listing, AGENT) == [b"rootsd"]


def test_names_of_processes_are_escaped_in_messages() -> None:
    evil = process(30, 20, "my\x1b]0;x\n-agent")
    finding = judged(replace(CALLER, parent=30, terminal=0), evil, hosts=(evil,))
    assert finding.why.isprintable()
    description = describe_caller(Caller(Lineage((CALLER, evil))))
    assert description.isprintable()
    assert "pid 90" in description
    assert "unknown parent" not in description
    assert "unknown parent" in describe_caller(Caller(Lineage((CALLER,))))
    assert "pts/0" in description
    assert describe_caller(Caller(Lineage())) == "an unknown process"
    assert "no terminal" in describe_caller(Caller(Lineage(without_terminal(CALLER))))


def test_the_work_on_a_process_does_not_grow_with_the_number_of_agents() -> None:
    caller = Caller(Lineage((CALLER, SHELL, TERMINAL_EMULATOR)))

    def work(agents: Sequence[Agent]) -> Counter[str]:
        return count_calls(lambda: check_caller(Guard.AGENTS, caller, McpHosts(), agents))

    def work_for_each(agents: Sequence[Agent]) -> Counter[str]:
        lines = [(process, agent) for process in caller.lineage.processes for agent in agents]
        return count_calls(lambda: [agents_of(process, (agent,)) for process, agent in lines])

    few, many = KNOWN[:2], KNOWN
    assert work(many)["_names"] == work(few)["_names"] > 0
    assert work_for_each(many)["_names"] > work_for_each(few)["_names"], "the control"


def test_the_use_of_each_program_in_a_lineage_is_found_once() -> None:
    line = (CALLER, SHELL, TERMINAL_EMULATOR)
    calls = count_calls(lambda: judged(*line))
    assert calls["_use_in"] == len(line)
    control = count_calls(lambda: [judged(*line), judged(*line)])
    assert control["_use_in"] == 2 * len(line)
