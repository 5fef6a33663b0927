"""Terminals that agents create, and people's terminals beside them.

All processes are in one control group, like the tabs of one terminal program on a desktop.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.control_groups import made_group, made_users_scope
from support.guarded_daemon import (
    AGENT,
    UNKNOWN,
    GuardedDaemon,
    Outcome,
    guarded_daemon,
    orders,
)
from support.process_launcher import Completed
from support.sizes import Sizes

pytestmark = [pytest.mark.needs("control-groups"), pytest.mark.needs("tmux")]

# Attempts of an agent that uses MCP, without a trace of it in the environment or among the
# ancestors.
OF_ITS_OWN = (
    "orphan on a terminal",
    "orphan on the agent's terminal",
    "own tmux with an empty environment",
    "orphan in script",
)


@pytest.fixture
def group() -> Iterator[Path]:
    with made_group() as group:
        yield group


@pytest.fixture
def scene(tmp_path: Path, group: Path, sizes: Sizes) -> Iterator[GuardedDaemon]:
    with guarded_daemon(tmp_path, orders(sizes), group) as scene:
        yield scene


def test_a_command_from_a_terminal_that_an_agent_created_is_challenged(
    scene: GuardedDaemon, sizes: Sizes
) -> None:
    told = dict[str, tuple[Outcome, str]]()
    for way in sizes.pick(test=OF_ITS_OWN[:3], check=OF_ITS_OWN, soak=OF_ITS_OWN):
        completed = scene.launcher.run(scene.named(UNKNOWN), AGENT, f"mcp-{way}", *scene.approve)
        told[way] = scene.outcome(completed), completed.output
    wrong = {way: got for way, got in told.items() if got[0] is not Outcome.ASKED_AND_PASSED}
    assert not wrong, json.dumps(wrong, indent=1)
    approvals = [event for event in scene.log() if event["verb"] == "approved"]
    assert {event["actor"] for event in approvals} == {"challenge confirmed"}


def test_in_one_shared_group_the_holder_of_the_terminal_is_evidence(
    tmp_path: Path, sizes: Sizes
) -> None:
    """This happens in a container."""
    with guarded_daemon(tmp_path, orders(sizes)) as scene:
        agent = scene.named(UNKNOWN)
        for way in sizes.pick(test=OF_ITS_OWN[:3], check=OF_ITS_OWN, soak=OF_ITS_OWN):
            completed = scene.launcher.run(agent, AGENT, f"mcp-{way}", *scene.approve)
            assert scene.outcome(completed) is Outcome.ASKED_AND_PASSED, (way, completed.output)


# A program that holds a terminal, in which a shell runs the command.
HOLDER = """
import sys
from support.fake_agent import on_a_terminal
sys.exit(on_a_terminal(["bash", "--norc", "-c", sys.argv[1] + "; exit $?"]))
"""
# The same, by a process that another one starts for that: an editor's.
EDITOR = """
import subprocess, sys
sys.exit(subprocess.call(sys.argv[1:]))
"""


def _in_another_tab(scene: GuardedDaemon) -> Completed:
    return scene.typed_into_bash(scene.line)


def _in_the_tab_of_another_agent_that_is_stopped(scene: GuardedDaemon) -> Completed:
    agent = f"{scene.named(UNKNOWN)} {AGENT} stay </dev/null >/dev/null 2>&1 &"
    return scene.typed_into_bash(agent, scene.line)


def _in_a_window_that_a_tab_opened(scene: GuardedDaemon) -> Completed:
    window = shlex.join([*scene.script("xterm", HOLDER), scene.line])
    return scene.typed_into_bash(window)


def _in_script_in_a_tab(scene: GuardedDaemon) -> Completed:
    return scene.typed_into_bash(f"script -qec {shlex.quote(scene.line)} /dev/null; exit")


def _in_an_editors_terminal(scene: GuardedDaemon) -> Completed:
    holder = scene.script("holder", HOLDER)
    editor = [*scene.script("code", EDITOR), *holder, scene.line]
    return scene.typed_into_bash(shlex.join(editor))


def _over_ssh(scene: GuardedDaemon) -> Completed:
    """Run the command below a server without a parent, with a process for each login."""
    holder = scene.script("sshd-session", HOLDER)
    server = [*scene.script("sshd", EDITOR), *holder, scene.line]
    told = scene.person.home / "told"
    line = f"(setsid {shlex.join(server)} >{shlex.quote(str(told))} 2>&1; echo $? >>{told}) &"
    scene.typed_into_bash(f"{line} wait")
    return Completed(0, told.read_text())


def _in_ones_own_tmux(scene: GuardedDaemon) -> Completed:
    """Run it in a tmux started in another tab after the agent, and displayed there."""
    told = scene.person.home / "told"
    done = f"{shlex.join(scene.tmux)} wait-for -S done"
    line = f"{scene.line} >{told} 2>&1; {done}"
    attached = [*scene.tmux, "new-session", "-s", "own", f"echo ready; {line}; cat"]
    scene.launcher.start(*attached)
    scene.launcher.run(*scene.tmux, "wait-for", "done")
    scene.launcher.run(*scene.tmux, "kill-server")
    return Completed(0, told.read_text())


def _in_ones_own_tmux_inside_script(scene: GuardedDaemon) -> Completed:
    """Do the same with the client on a terminal that another tab's program holds."""
    told = scene.person.home / "told"
    line = f"{scene.line} >{told} 2>&1; {shlex.join(scene.tmux)} kill-server"
    session = shlex.join([*scene.tmux, "new-session", "-s", "own", line])
    scene.typed_into_bash(f"script -qec {shlex.quote(session)} /dev/null; exit")
    return Completed(0, told.read_text())


# The first four differ in what the guard sees.
PEOPLE: tuple[Callable[[GuardedDaemon], Completed], ...] = (
    _in_the_tab_of_another_agent_that_is_stopped,
    _in_an_editors_terminal,
    _over_ssh,
    _in_ones_own_tmux,
    _in_another_tab,
    _in_a_window_that_a_tab_opened,
    _in_script_in_a_tab,
    _in_ones_own_tmux_inside_script,
)


def test_a_person_in_the_same_terminal_program_is_not_challenged(
    scene: GuardedDaemon, sizes: Sizes
) -> None:
    scene.launcher.start(scene.named(UNKNOWN), AGENT, "stay")
    assert len(json.loads(scene.person.rootsd("status", "--json"))["sessions"]) == 1
    told = dict[str, tuple[Outcome, str]]()
    for way in sizes.pick(test=PEOPLE[:4], check=PEOPLE, soak=PEOPLE):
        completed = way(scene)
        told[way.__name__] = scene.outcome(completed), completed.output
    wrong = {way: got for way, got in told.items() if got[0] is not Outcome.PASSED}
    assert not wrong, json.dumps(wrong, indent=1)
    assert not [event for event in scene.log() if event["verb"] == "refused"]


def test_in_a_tmux_older_than_the_agent_a_person_is_not_challenged(scene: GuardedDaemon) -> None:
    scene.launcher.start(*scene.tmux, "new-session", "-s", "own", "echo ready; bash --norc")
    scene.launcher.start(scene.named(UNKNOWN), AGENT, "stay")
    told = scene.person.home / "told"
    line = f"{scene.line} >{told} 2>&1; {shlex.join(scene.tmux)} wait-for -S done"
    scene.launcher.run(*scene.tmux, "new-window", "-d", "-t", "own:", line)
    scene.launcher.run(*scene.tmux, "wait-for", "done")
    scene.launcher.run(*scene.tmux, "kill-server")
    assert scene.outcome(Completed(0, told.read_text())) is Outcome.PASSED


def test_an_orphan_without_a_terminal_is_refused(scene: GuardedDaemon) -> None:
    """A person's orphan and an agent's double fork look the same, and docs/SECURITY.md says so."""
    told = scene.person.home / "told"
    script = f"(setsid {scene.line} >{told} 2>&1; echo $? >>{told}) & wait"
    passed = scene.launcher.run("bash", "-c", script)
    assert scene.outcome(passed) is Outcome.PASSED, "the control: no agent uses MCP"
    scene.launcher.start(scene.named(UNKNOWN), AGENT, "stay")
    refused = scene.launcher.run("bash", "-c", script)
    assert scene.outcome(refused) is Outcome.REFUSED
    assert "control group of" in told.read_text()


def test_an_orphan_in_a_persons_scope_is_refused_without_an_agent(
    tmp_path: Path, sizes: Sizes
) -> None:
    """No program uses MCP here, so only the scope tells that a program has ended."""
    with made_users_scope() as scope, guarded_daemon(tmp_path, orders(sizes), scope) as scene:
        told = scene.person.home / "told"
        child = f"{scene.line} >{told} 2>&1; exit $?"
        passed = scene.launcher.run("bash", "-c", child)
        assert scene.outcome(passed) is Outcome.PASSED, "the control: a shell that still lives"
        adopted = "while read _ _ _ up _ </proc/$BASHPID/stat && [ $up = $$ ]; do :; done"
        orphan = f"({adopted}; {scene.line} >{told} 2>&1) & exit 0"
        refused = scene.launcher.run("bash", "-c", orphan)
        assert scene.outcome(refused) is Outcome.REFUSED
        assert "has ended, so rootsd cannot tell who gave it" in told.read_text()
