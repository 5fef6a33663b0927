"""Who may decide, with real processes: the attempts of an agent, and the ways of people.

The guard is no security boundary, and the table says so: it includes the attempts that are not
refused.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.guarded_daemon import (
    AGENT,
    APPROVE,
    KNOWN,
    MARKER,
    UNKNOWN,
    GuardedDaemon,
    Outcome,
    guarded_daemon,
    orders,
)
from support.polling import until
from support.process_launcher import ROOTSD
from support.sizes import Sizes

pytestmark = [pytest.mark.needs("linux"), pytest.mark.needs("make"), pytest.mark.needs("tmux")]


# The attempts of agents: the program's name, the way, and whether the known mark is set. The first
# ones differ in what the guard sees.
DIFFERENT_ATTEMPTS = {
    ("known", "terminal"): Outcome.REFUSED,
    ("known", "empty environment"): Outcome.REFUSED,
    ("known", "orphan"): Outcome.REFUSED,
    ("known", "connection handed on"): Outcome.REFUSED,
    ("known", "guard off first"): Outcome.REFUSED,
    ("unknown", "mcp-child"): Outcome.REFUSED,
    ("unknown", "mcp-orphan with an empty environment"): Outcome.REFUSED,
    # Honestly:
    ("unknown", "mcp-terminal"): Outcome.ASKED_AND_PASSED,
    ("unknown", "terminal"): Outcome.ASKED_AND_PASSED,
    ("known", "orphan with an empty environment"): Outcome.PASSED,
}
MOST_LOGGED_AT_ONCE = 20
"""More refusals within a minute are counted in one event."""
ATTEMPTS = DIFFERENT_ATTEMPTS | {
    ("known", "child"): Outcome.REFUSED,
    ("known", "shell"): Outcome.REFUSED,
    ("known", "session"): Outcome.REFUSED,
    ("known", "mcp-orphan with an empty environment"): Outcome.REFUSED,
    ("known", "make"): Outcome.REFUSED,
    ("known", "protocol"): Outcome.REFUSED,
    ("unknown", "mcp-shelled-child"): Outcome.REFUSED,
    ("unknown", "mcp-alone-child"): Outcome.REFUSED,
    ("unknown", "child"): Outcome.REFUSED,
    ("unknown", "shell"): Outcome.REFUSED,
    ("unknown", "session"): Outcome.REFUSED,
    ("unknown", "make"): Outcome.REFUSED,
    ("unknown", "empty environment"): Outcome.REFUSED,
    ("unknown", "protocol"): Outcome.REFUSED,
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, sizes: Sizes) -> Iterator[GuardedDaemon]:
    with guarded_daemon(tmp_path_factory.mktemp("shared"), orders(sizes)) as scene:
        yield scene


@pytest.fixture
def guarded(shared: GuardedDaemon) -> Iterator[GuardedDaemon]:
    """The daemon of all tests. Each one leaves it running, with the guard on."""
    shared.begin()
    yield shared
    shared.person.run("forget", "one")


def test_attempts_of_self_approval_and_their_outcomes(
    guarded: GuardedDaemon, sizes: Sizes
) -> None:
    attempts = sizes.pick(test=DIFFERENT_ATTEMPTS, check=ATTEMPTS, soak=ATTEMPTS)
    told: dict[tuple[str, str], Outcome] = {}
    outputs: dict[tuple[str, str], str] = {}
    for kind, way in attempts:
        program = guarded.named(KNOWN if kind == "known" else UNKNOWN)
        variables = MARKER if kind == "known" else {}
        completed = guarded.launcher.run(program, AGENT, way, *guarded.approve, **variables)
        told[kind, way] = guarded.outcome(completed)
        outputs[kind, way] = completed.output
    wrong = [
        (*way, told[way], outputs[way])
        for way, outcome in attempts.items()
        if told[way] is not outcome
    ]
    assert not wrong, json.dumps(wrong, indent=1)
    refusals = [event for event in guarded.log() if event["verb"] == "refused"]
    refused = [way for way, outcome in attempts.items() if outcome is Outcome.REFUSED]
    assert min(len(refused), MOST_LOGGED_AT_ONCE) <= len(refusals) <= len(refused)
    assert {event["actor"] for event in refusals} == {"caller"}
    status = json.loads(guarded.person.rootsd("status", "--json"))
    assert status["guard"] == "agents"
    assert status["refused"]["count"] == len(refused)


def test_an_agent_passes_by_a_program_that_a_person_runs(guarded: GuardedDaemon) -> None:
    """This is not refused, and docs/SECURITY.md says so: the caller looks like a person's
    program.
    """
    agent = guarded.named(KNOWN)
    own = guarded.launcher.run(agent, AGENT, "own tmux", *guarded.approve, **MARKER)
    assert guarded.outcome(own) is Outcome.REFUSED, "the server has the agent's mark from it"
    guarded.launcher.run(*guarded.tmux, "kill-server")
    hook = guarded.person.parent / "one" / ".git" / "hooks" / "pre-commit"
    planting = f"printf '#!/bin/sh\\n%s\\n' '{' '.join(guarded.approve)}' >{hook}; chmod +x {hook}"
    guarded.launcher.run(agent, AGENT, "shell", "sh", "-c", planting, **MARKER)
    commit = f"git -C {guarded.person.parent / 'one'} commit -q --allow-empty -m x"
    assert guarded.outcome(guarded.typed_into_bash(commit)) is Outcome.PASSED


BY_A_PERSONS_TMUX = ("keys", "run-shell", "if-shell", "new-window", "new-session")


def test_an_agent_passes_by_a_persons_tmux(guarded: GuardedDaemon, sizes: Sizes) -> None:
    """This is not refused, and docs/SECURITY.md says so: the server runs commands for every client
    alike.

    The client that asked for the command has ended by then, and the server keeps no record of it.
    """
    agent = guarded.named(KNOWN)
    # The pane prints it. tmux discards what its client's terminal has not passed on yet.
    session = ["new-session", "-d", "-s", "person", "echo ready; exec bash --norc"]
    guarded.launcher.run_on_terminal(*guarded.tmux, *session)
    guarded.launcher.start(*guarded.tmux, "attach", "-t", "person")
    every = BY_A_PERSONS_TMUX
    for way in sizes.pick(test=every[:2], check=every, soak=every):
        completed = guarded.launcher.run(
            agent, AGENT, f"mcp-tmux {way}", *guarded.approve, **MARKER
        )
        assert guarded.outcome(completed) is Outcome.PASSED, (way, completed.output)
        clients = guarded.launcher.run(*guarded.tmux, "list-clients", "-F", "#{client_pid}").output
        assert len(clients.split()) == 1, "the person's: the agent's client has gone"
    guarded.launcher.run(*guarded.tmux, "kill-server")


def test_an_agents_status_query_does_not_hide_its_refusals(guarded: GuardedDaemon) -> None:
    agent = guarded.named(KNOWN)
    guarded.launcher.run(agent, AGENT, "child", *guarded.approve, **MARKER)
    shown = guarded.launcher.run(agent, AGENT, "terminal", *ROOTSD, "status", **MARKER)
    assert "refused   1 command" in shown.output
    assert "refused   1 command" in guarded.typed_into_bash(" ".join([*ROOTSD, "status"])).output
    assert "refused" not in guarded.launcher.run_on_terminal(*ROOTSD, "status").output


def test_the_terminal_guard_asks_a_person_and_no_pipe_can_answer(
    guarded: GuardedDaemon,
) -> None:
    person, launcher = guarded.person, guarded.launcher
    assert launcher.run(*ROOTSD, "guard", "terminal").status == 0
    assert launcher.run(*APPROVE).status == 7
    asked = launcher.run_on_terminal(*APPROVE, typed=[("to go on: ", "nonsense\n")])
    assert asked.status == 7
    assert f"approve {person.parent / 'one'}" in asked.output
    right = launcher.run_on_terminal(*APPROVE, typed=[("to go on: ", "{word}\n")])
    assert right.status == 0, right.output
    assert launcher.run(*ROOTSD, "guard", "off").status == 7
    assert person.rootsd("guard") == "terminal\n"
    loosened = launcher.run_on_terminal(
        *ROOTSD, "guard", "agents", typed=[("to go on: ", "{word}\n")]
    )
    assert loosened.status == 0, loosened.output
    told = [(event["verb"], event["what"]) for event in guarded.log()]
    assert ("guard set", "terminal") in told
    assert ("refused", "guard off") in told
    # It is stored: the configuration does not apply to an existing store.
    assert person.rootsd("down") is not None
    config = Path(person.environment()["ROOTSD_DIR"], "config", "config.toml")
    before = config.read_text()
    config.write_text(before.replace('"agents"', '"off"'))
    person.rootsd("up")
    config.write_text(before)
    assert person.rootsd("guard") == "agents\n"


def test_other_commands_of_an_agent_are_recorded(guarded: GuardedDaemon) -> None:
    person, agent = guarded.person, guarded.named(KNOWN)
    config = Path(person.environment()["ROOTSD_DIR"], "config", "config.toml")
    before = config.read_text()

    def run(*words: str, **more: str) -> None:
        completed = guarded.launcher.run(agent, AGENT, "child", *ROOTSD, *words, **MARKER, **more)
        assert completed.status == 0, completed.output

    more = person.home / "more"
    more.mkdir()
    run("up", str(more))
    run("parent", "rm", str(person.parent))
    run("config", "edit", EDITOR="sh -c 'printf \"# x\\n\" >>$0'")
    run("down")
    assert config.read_text() != before
    config.write_text(before)
    guarded.launcher.run_on_terminal(*ROOTSD, "up")
    # The same commands of a person are not recorded.
    guarded.launcher.run_on_terminal(*ROOTSD, "parent", "rm", str(person.parent))
    told = [event for event in guarded.log() if event["verb"] == "agent command"]
    assert [event["what"] for event in told] == [
        f"up {more}",
        f"parent rm {person.parent}",
        "config edit",
        "down",
    ]
    assert {event["actor"] for event in told} == {"caller"}
    assert all("Goose started it" in event["by"] for event in told)
    commands = json.loads(person.rootsd("status", "--json"))["agent_commands"]
    assert (commands["count"], commands["what"]) == (4, "down")
    shown = guarded.launcher.run_on_terminal(*ROOTSD, "status").output
    assert "agents    4 commands, the last" in shown
    assert "agents" not in guarded.launcher.run_on_terminal(*ROOTSD, "status").output
    person.rootsd("up", str(person.parent))


def test_without_the_helper_every_order_is_refused(guarded: GuardedDaemon) -> None:
    person, launcher = guarded.person, guarded.launcher
    keeper = _child_of(person.daemon_pid())
    helper = _child_of(keeper)
    os.kill(helper, signal.SIGKILL)
    until(lambda: launcher.run(*APPROVE).status == 0)  # another helper starts
    assert launcher.run(*ROOTSD, "forget", "one").status == 0
    helper = _child_of(keeper)
    os.kill(keeper, signal.SIGKILL)
    os.kill(helper, signal.SIGKILL)
    until(lambda: "helper process" in person.rootsd("status"))
    agent = guarded.named(KNOWN)
    for completed in (
        launcher.run(*APPROVE),
        launcher.run_on_terminal(*APPROVE),
        launcher.run(agent, AGENT, "child", *guarded.approve, **MARKER),
        launcher.run(agent, AGENT, "terminal", *guarded.approve, **MARKER),
    ):
        assert completed.status == 7, completed.output
        assert "try: rootsd down && rootsd up" in completed.output
    person.rootsd("down")
    person.rootsd("up")
    assert launcher.run(*APPROVE).status == 0


def test_a_stopped_helper_is_replaced_and_no_order_passes_unexamined(
    guarded: GuardedDaemon,
) -> None:
    person, launcher = guarded.person, guarded.launcher
    keeper = _child_of(person.daemon_pid())
    helper = _child_of(keeper)
    os.kill(helper, signal.SIGSTOP)
    completed = launcher.run(guarded.named(UNKNOWN), AGENT, "mcp-child", *guarded.approve)
    assert guarded.outcome(completed) is Outcome.REFUSED, completed.output
    assert _child_of(keeper) != helper


def test_an_agent_behind_many_ancestors_is_not_admitted(
    guarded: GuardedDaemon, sizes: Sizes
) -> None:
    """There are 300 of them, or 200 with environments of 1 MB each."""
    agent = guarded.named(KNOWN)
    many, large = "behind 300 ancestors", "behind 200 large environments"
    for way in sizes.pick(test=(many,), check=(many, large), soak=(many, large)):
        completed = guarded.launcher.run(agent, AGENT, way, *guarded.approve)
        assert guarded.outcome(completed) is Outcome.REFUSED, completed.output
        completed = guarded.launcher.run(agent, AGENT, f"{way} on a terminal", *guarded.approve)
        assert guarded.outcome(completed) is not Outcome.PASSED, completed.output
        if way == many:
            assert "too many ancestors" in completed.output
    log = guarded.log()
    assert not [each for each in log if each["actor"] == "person" and each["verb"] == "approved"]


def _child_of(pid: int) -> int:
    """Return the only child of a process."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)
