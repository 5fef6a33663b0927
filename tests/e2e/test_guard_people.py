"""People who decide beside running agents, with real processes, are not asked needlessly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.guarded_daemon import (
    AGENT,
    KNOWN,
    MARKER,
    UNKNOWN,
    GuardedDaemon,
    Outcome,
    guarded_daemon,
    orders,
)
from support.process_launcher import ROOTSD, Completed
from support.sizes import Sizes

pytestmark = [pytest.mark.needs("linux"), pytest.mark.needs("make"), pytest.mark.needs("tmux")]


@pytest.fixture
def scene(tmp_path: Path, sizes: Sizes) -> Iterator[GuardedDaemon]:
    with guarded_daemon(tmp_path, orders(sizes)) as scene:
        yield scene


def _as_service(scene: GuardedDaemon, name: str) -> Completed:
    """Run the command from a shell below a process that only has a service's name."""
    service = "import subprocess, sys; sys.exit(subprocess.call(['sh', '-c', sys.argv[1]]))"
    return scene.launcher.run(*scene.script(name, service), f"{scene.line}; exit $?")


def _in_a_tab(scene: GuardedDaemon) -> Completed:
    return scene.typed_into_bash(scene.line)


def _in_the_tab_of_a_stopped_agent(scene: GuardedDaemon) -> Completed:
    agent = f"{scene.named(KNOWN)} {AGENT} stay </dev/null >/dev/null 2>&1 &"
    return scene.typed_into_bash(agent, scene.line)


def _in_the_shell_that_runs_a_bridge(scene: GuardedDaemon) -> Completed:
    bridge = f"sleep 60 | {' '.join(ROOTSD)} bridge >/dev/null 2>&1 &"
    return scene.typed_into_bash(bridge, scene.line, "kill %1")


def _in_a_tmux_pane(scene: GuardedDaemon) -> Completed:
    told = scene.person.home / "told"
    command = f"echo ready; {scene.line} >{told} 2>&1; {' '.join(scene.tmux)} wait-for -S done"
    scene.launcher.start(*scene.tmux, "new-session", f"{command}; cat")
    scene.launcher.run(*scene.tmux, "wait-for", "done")
    scene.launcher.run(*scene.tmux, "kill-server")
    return Completed(0, told.read_text())


# The person types the word, which they read in the editor's window.
EDITOR = """
import sys
from support.fake_agent import connect_bridge, on_a_terminal
bridge = connect_bridge() if sys.argv[1] == "both" else None
on_a_terminal(["bash", "--norc", "-c", sys.argv[2] + "; exit $?"])
if bridge:
    bridge.kill()
    bridge.wait()
"""


def _in_an_editors_terminal(scene: GuardedDaemon) -> Completed:
    return scene.launcher.run(*scene.script("code", EDITOR), "apart", scene.line)


def _in_the_terminal_of_an_editor_that_started_the_bridge(scene: GuardedDaemon) -> Completed:
    return scene.launcher.run(*scene.script("code", EDITOR), "both", scene.line)


def _by_ssh(scene: GuardedDaemon) -> Completed:
    return _as_service(scene, "sshd")


def _by_cron(scene: GuardedDaemon) -> Completed:
    return _as_service(scene, "cron")


def _by_a_script(scene: GuardedDaemon) -> Completed:
    script = scene.person.home / "provision.sh"
    script.write_text(f"set -e\n{scene.line}\n")
    return scene.typed_into_bash(f"bash {script} </dev/null")


def _by_a_script_without_a_terminal(scene: GuardedDaemon) -> Completed:
    return scene.launcher.run("bash", "-c", f"{scene.line}; exit $?")


def _by_make(scene: GuardedDaemon) -> Completed:
    makefile = scene.person.home / "Makefile"
    makefile.write_text(f"all:\n\t@{scene.line}\n")
    return scene.typed_into_bash(f"make -s -f {makefile}")


def _by_a_git_hook(scene: GuardedDaemon) -> Completed:
    hook = scene.person.parent / "one" / ".git" / "hooks" / "post-commit"
    hook.write_text(f"#!/bin/sh\n{scene.line}\n")
    hook.chmod(0o755)
    return _by_a_commit(scene)


def _by_a_commit(scene: GuardedDaemon) -> Completed:
    commit = f"git -C {scene.person.parent / 'one'} commit -q --allow-empty -m x"
    return scene.typed_into_bash(commit)


# The first ones differ in what the guard sees.
DIFFERENT_WAYS: dict[Callable[[GuardedDaemon], Completed], Outcome] = {
    _in_the_tab_of_a_stopped_agent: Outcome.PASSED,
    _in_the_shell_that_runs_a_bridge: Outcome.PASSED,
    _in_a_tmux_pane: Outcome.PASSED,
    _in_the_terminal_of_an_editor_that_started_the_bridge: Outcome.ASKED_AND_PASSED,
    _by_ssh: Outcome.PASSED,
    _by_a_script_without_a_terminal: Outcome.PASSED,
}
PEOPLE = DIFFERENT_WAYS | {
    _in_a_tab: Outcome.PASSED,
    _in_an_editors_terminal: Outcome.PASSED,
    _by_cron: Outcome.PASSED,
    _by_a_script: Outcome.PASSED,
    _by_make: Outcome.PASSED,
    _by_a_git_hook: Outcome.PASSED,
}


def test_people_beside_an_agent_are_neither_refused_nor_challenged(
    scene: GuardedDaemon, sizes: Sizes
) -> None:
    people = sizes.pick(test=DIFFERENT_WAYS, check=PEOPLE, soak=PEOPLE)
    scene.launcher.start(scene.named(KNOWN), AGENT, "stay", **MARKER)
    scene.launcher.start(scene.named(UNKNOWN), AGENT, "stay")
    clients = json.loads(scene.person.rootsd("status", "--json"))["sessions"]
    assert len(clients) == 2
    told, outputs = dict[str, Outcome](), dict[str, str]()
    for way in people:
        completed = way(scene)
        told[way.__name__] = scene.outcome(completed)
        outputs[way.__name__] = completed.output
    wrong = [
        (way.__name__, told[way.__name__], outputs[way.__name__])
        for way, outcome in people.items()
        if told[way.__name__] is not outcome
    ]
    assert not wrong, json.dumps(wrong, indent=1)
    assert not [event for event in scene.log() if event["verb"] == "refused"]
