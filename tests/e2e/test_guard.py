"""Who may decide, with real processes: an agent's ways to approve its own root, and people's ways.

Nothing here is a boundary, and the table says so: what is not refused is in it, too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from support import agent as agent_script
from support.person import Person
from support.stage import Played, Stage

pytestmark = [pytest.mark.needs("linux"), pytest.mark.needs("make"), pytest.mark.needs("tmux")]

KNOWN, UNKNOWN = "goose", "my-agent"
MARKER = {"GOOSE_TERMINAL": "1"}
ROOTSD = [sys.executable, "-m", "rootsd"]
AGENT = Path(agent_script.__file__)


class Outcome(StrEnum):
    """What became of an attempt."""

    REFUSED = "refused"
    PASSED = "passed"
    ASKED_AND_PASSED = "asked for a word, typed it, passed"


# The ways of agents: under which name, by which way, with the mark that known ones set or not.
SELF_APPROVAL = {
    ("known", "child"): Outcome.REFUSED,
    ("known", "shell"): Outcome.REFUSED,
    ("known", "session"): Outcome.REFUSED,
    ("known", "terminal"): Outcome.REFUSED,
    ("known", "empty environment"): Outcome.REFUSED,
    ("known", "orphan"): Outcome.REFUSED,
    ("known", "mcp-orphan with an empty environment"): Outcome.REFUSED,
    ("known", "make"): Outcome.REFUSED,
    ("known", "protocol"): Outcome.REFUSED,
    ("known", "connection handed on"): Outcome.REFUSED,
    ("known", "guard off first"): Outcome.REFUSED,
    ("unknown", "mcp-child"): Outcome.REFUSED,
    ("unknown", "mcp-shelled-child"): Outcome.REFUSED,
    ("unknown", "mcp-alone-child"): Outcome.REFUSED,
    ("unknown", "mcp-orphan with an empty environment"): Outcome.REFUSED,
    # Honestly:
    ("unknown", "mcp-terminal"): Outcome.ASKED_AND_PASSED,
    ("known", "orphan with an empty environment"): Outcome.PASSED,
    ("unknown", "child"): Outcome.PASSED,
}


class Street:
    """A daemon that is guarded, one project, programs under names, and a stage for all."""

    def __init__(self, person: Person, folder: Path) -> None:
        self.person = person
        self._folder = folder
        environment = {**person.environment(), "PYTHON": sys.executable, "TERM": "xterm"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        self.stage = Stage(folder, environment)

    def named(self, name: str) -> Path:
        """A Python that is called so."""
        program = self._folder / name
        if not program.exists():
            program.symlink_to(os.path.realpath(sys.executable))
        return program

    def outcome(self, played: Played) -> Outcome:
        """What became of an approval, which is taken back."""
        (item,) = self.person.items("ls")
        if item["verdict"] != "approved":
            assert item["verdict"] == "pending", played.output
            return Outcome.REFUSED
        self.stage.play(*ROOTSD, "forget", "one")
        asked = " to go on: " in played.output
        return Outcome.ASKED_AND_PASSED if asked else Outcome.PASSED

    def log(self) -> list[dict[str, str]]:
        return self.person.items("log")


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    person = Person(tmp_path, guard="agents")
    person.clone("one")
    person.rootsd("up", str(person.parent))
    person.wait_until_listed("one", "pending")
    street = Street(person, tmp_path)
    with street.stage:
        yield street
    person.run("down")


APPROVE = (*ROOTSD, "approve", "one")


def test_ways_of_self_approval_and_what_becomes_of_them(street: Street) -> None:
    told: dict[tuple[str, str], Outcome] = {}
    outputs: dict[tuple[str, str], str] = {}
    for kind, way in SELF_APPROVAL:
        program = street.named(KNOWN if kind == "known" else UNKNOWN)
        variables = MARKER if kind == "known" else {}
        played = street.stage.play(program, AGENT, way, *APPROVE, **variables)
        told[kind, way] = street.outcome(played)
        outputs[kind, way] = played.output
    wrong = [
        (*way, told[way], outputs[way])
        for way, outcome in SELF_APPROVAL.items()
        if told[way] is not outcome
    ]
    assert not wrong, json.dumps(wrong, indent=1)
    refusals = [event for event in street.log() if event["verb"] == "refused"]
    refused = [way for way, outcome in SELF_APPROVAL.items() if outcome is Outcome.REFUSED]
    assert len(refusals) == len(refused)
    assert {event["actor"] for event in refusals} == {"caller"}
    status = json.loads(street.person.rootsd("status", "--json"))
    assert status["guard"] == "agents"
    assert status["refused"]["count"] == len(refusals)


def _as_service(street: Street, name: str) -> Played:
    """From what only bears a service's name: it starts a shell, which runs the command."""
    service = "import subprocess, sys; sys.exit(subprocess.call(['sh', '-c', sys.argv[1]]))"
    return street.stage.play(street.named(name), "-c", service, f"{' '.join(APPROVE)}; exit $?")


def _typed_into_bash(street: Street, *lines: str) -> Played:
    typed = [("$ ", f"{line}\n") for line in lines]
    return street.stage.play_on_terminal(
        "bash", "--norc", "-i", typed=[*typed, ("$ ", "exit\n")], PS1="$ "
    )


def _in_a_tab(street: Street) -> Played:
    return _typed_into_bash(street, " ".join(APPROVE))


def _in_the_tab_of_a_stopped_agent(street: Street) -> Played:
    agent = f"{street.named(KNOWN)} {AGENT} stay </dev/null >/dev/null 2>&1 &"
    return _typed_into_bash(street, agent, " ".join(APPROVE))


def _in_the_shell_that_runs_a_bridge(street: Street) -> Played:
    bridge = f"sleep 60 | {' '.join(ROOTSD)} bridge >/dev/null 2>&1 &"
    return _typed_into_bash(street, bridge, " ".join(APPROVE), "kill %1")


def _in_a_tmux_pane(street: Street) -> Played:
    told = street.person.home / "told"
    command = f"{' '.join(APPROVE)} >{told} 2>&1; tmux wait-for -S done"
    server = ("tmux", "-L", "guard", "-f", "/dev/null")
    street.stage.play_on_terminal(*server, "new-session", "-d", command, TMUX_TMPDIR="/tmp")
    street.stage.play(*server, "wait-for", "done", TMUX_TMPDIR="/tmp")
    street.stage.play(*server, "kill-server", TMUX_TMPDIR="/tmp")
    return Played(0, told.read_text())


EDITOR = """
import os, pty, subprocess, sys
bridge = None
if sys.argv[1] == "both":
    from support.agent import connect_bridge
    bridge = connect_bridge()
pid, terminal = pty.fork()
if not pid:
    os.execvp("bash", ["bash", "--norc", "-c", sys.argv[2] + "; exit $?"])
shown = b""
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    shown += part
    if shown.endswith(b" to go on: "):      # the person, who reads it in the editor's window
        os.write(terminal, shown.rpartition(b"Type ")[2].split()[0] + b"\\n")
print(shown.decode())
if bridge:
    bridge.kill()
    bridge.wait()
"""


def _in_an_editors_terminal(street: Street) -> Played:
    return street.stage.play(street.named("code"), "-c", EDITOR, "apart", " ".join(APPROVE))


def _in_the_terminal_of_an_editor_that_started_the_bridge(street: Street) -> Played:
    return street.stage.play(street.named("code"), "-c", EDITOR, "both", " ".join(APPROVE))


def _by_ssh(street: Street) -> Played:
    return _as_service(street, "sshd")


def _by_cron(street: Street) -> Played:
    return _as_service(street, "cron")


def _by_a_script(street: Street) -> Played:
    script = street.person.home / "provision.sh"
    script.write_text(f"set -e\n{' '.join(APPROVE)}\n")
    return _typed_into_bash(street, f"bash {script} </dev/null")


def _by_a_script_without_a_terminal(street: Street) -> Played:
    return street.stage.play("bash", "-c", f"{' '.join(APPROVE)}; exit $?")


def _by_make(street: Street) -> Played:
    makefile = street.person.home / "Makefile"
    makefile.write_text(f"all:\n\t@{' '.join(APPROVE)}\n")
    return _typed_into_bash(street, f"make -s -f {makefile}")


def _by_a_git_hook(street: Street) -> Played:
    hook = street.person.parent / "one" / ".git" / "hooks" / "post-commit"
    hook.write_text(f"#!/bin/sh\n{' '.join(APPROVE)}\n")
    hook.chmod(0o755)
    return _by_a_commit(street)


def _by_a_commit(street: Street) -> Played:
    commit = f"git -C {street.person.parent / 'one'} commit -q --allow-empty -m x"
    return _typed_into_bash(street, commit)


PEOPLE: dict[Callable[[Street], Played], Outcome] = {
    _in_a_tab: Outcome.PASSED,
    _in_the_tab_of_a_stopped_agent: Outcome.PASSED,
    _in_the_shell_that_runs_a_bridge: Outcome.PASSED,
    _in_a_tmux_pane: Outcome.PASSED,
    _in_an_editors_terminal: Outcome.PASSED,
    _in_the_terminal_of_an_editor_that_started_the_bridge: Outcome.ASKED_AND_PASSED,
    _by_ssh: Outcome.PASSED,
    _by_cron: Outcome.PASSED,
    _by_a_script: Outcome.PASSED,
    _by_a_script_without_a_terminal: Outcome.PASSED,
    _by_make: Outcome.PASSED,
    _by_a_git_hook: Outcome.PASSED,
}


def test_people_beside_an_agent_are_never_refused(street: Street) -> None:
    street.stage.begin(street.named(KNOWN), AGENT, "stay", **MARKER)
    street.stage.begin(street.named(UNKNOWN), AGENT, "stay")
    clients = json.loads(street.person.rootsd("status", "--json"))["sessions"]
    assert len(clients) == 2
    told, outputs = dict[str, Outcome](), dict[str, str]()
    for way in PEOPLE:
        played = way(street)
        told[way.__name__] = street.outcome(played)
        outputs[way.__name__] = played.output
    wrong = [
        (way.__name__, told[way.__name__], outputs[way.__name__])
        for way, outcome in PEOPLE.items()
        if told[way.__name__] is not outcome
    ]
    assert not wrong, json.dumps(wrong, indent=1)
    assert not [event for event in street.log() if event["verb"] == "refused"]


def test_by_way_of_what_a_person_runs_an_agent_passes(street: Street) -> None:
    """Not refused, and the README says so: nobody can tell whose idea it was."""
    agent, server = street.named(KNOWN), {"TMUX_TMPDIR": "/tmp", "TMUX_SERVER": "guard2"}
    tmux = ("tmux", "-L", server["TMUX_SERVER"], "-f", "/dev/null")
    own = street.stage.play(agent, AGENT, "own tmux", *APPROVE, **MARKER, **server)
    assert street.outcome(own) is Outcome.REFUSED, "the server has the agent's mark from it"
    street.stage.play(*tmux, "kill-server", **server)
    pane = (*tmux, "new-session", "-d", "-s", "person", "bash --norc")
    street.stage.play_on_terminal(*pane, TMUX_TMPDIR="/tmp")
    keys = street.stage.play(agent, AGENT, "tmux keys", *APPROVE, **MARKER, **server)
    street.stage.play(*tmux, "kill-server", **server)
    assert street.outcome(keys) is Outcome.PASSED, keys.output
    hook = street.person.parent / "one" / ".git" / "hooks" / "pre-commit"
    planting = f"printf '#!/bin/sh\\n%s\\n' '{' '.join(APPROVE)}' >{hook}; chmod +x {hook}"
    street.stage.play(agent, AGENT, "shell", "sh", "-c", planting, **MARKER)
    assert street.outcome(_by_a_commit(street)) is Outcome.PASSED


def test_an_agent_that_looks_does_not_hide_what_was_refused_to_it(street: Street) -> None:
    agent = street.named(KNOWN)
    street.stage.play(agent, AGENT, "child", *APPROVE, **MARKER)
    shown = street.stage.play(agent, AGENT, "terminal", *ROOTSD, "status", **MARKER)
    assert "refused   an order" in shown.output
    assert "refused   an order" in _typed_into_bash(street, " ".join([*ROOTSD, "status"])).output
    assert "refused" not in street.stage.play_on_terminal(*ROOTSD, "status").output


def test_a_guard_of_terminals_asks_a_person_and_no_pipe_can_answer(street: Street) -> None:
    person, stage = street.person, street.stage
    assert stage.play(*ROOTSD, "guard", "terminal").status == 0
    assert stage.play(*APPROVE).status == 7
    asked = stage.play_on_terminal(*APPROVE, typed=[("to go on: ", "nonsense\n")])
    assert asked.status == 7
    assert f"approve {person.parent / 'one'}" in asked.output
    right = stage.play_on_terminal(*APPROVE, typed=[("to go on: ", "{word}\n")])
    assert right.status == 0, right.output
    assert stage.play(*ROOTSD, "guard", "off").status == 7
    assert person.rootsd("guard") == "terminal\n"
    loosened = stage.play_on_terminal(
        *ROOTSD, "guard", "agents", typed=[("to go on: ", "{word}\n")]
    )
    assert loosened.status == 0, loosened.output
    told = [(event["verb"], event["what"]) for event in street.log()]
    assert ("guard set", "terminal") in told
    assert ("refused", "guard off") in told
    # It is kept: the configuration does not speak for a store that is there already.
    assert person.rootsd("down") is not None
    config = Path(os.environ["ROOTSD_DIR"], "config", "config.toml")
    config.write_text(config.read_text().replace('"agents"', '"off"'))
    person.rootsd("up")
    assert person.rootsd("guard") == "agents\n"


def test_without_the_helper_an_order_needs_a_terminal_and_a_word(street: Street) -> None:
    person, stage = street.person, street.stage
    keeper = _child_of(person.daemon_pid())
    helper = _child_of(keeper)
    os.kill(helper, 9)
    assert stage.play(*APPROVE).status == 0, "another helper is started"
    assert stage.play(*ROOTSD, "forget", "one").status == 0
    helper = _child_of(keeper)
    os.kill(keeper, 9)
    os.kill(helper, 9)
    assert "helper process" in person.rootsd("status")
    assert stage.play(*APPROVE).status == 7
    asked = stage.play_on_terminal(*APPROVE, typed=[("to go on: ", "{word}\n")])
    assert asked.status == 0, asked.output
    # An agent can kill it, too, and type; not without a terminal.
    agent = street.named(KNOWN)
    forget = (*ROOTSD, "forget", "one")
    assert stage.play(agent, AGENT, "child", *forget, **MARKER).status == 7
    assert stage.play(agent, AGENT, "terminal", *forget, **MARKER).status == 0


def _child_of(pid: int) -> int:
    """The only one there is."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)
