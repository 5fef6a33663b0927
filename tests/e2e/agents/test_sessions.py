"""Sessions of real agent programs that are connected by the bridge."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.agents.guarded import guarded_agents
from rootsd.core.processes import Process
from rootsd.core.recognition import agents_of
from support import environment_report
from support.agent_programs import PROGRAMS, AgentProgram
from support.agent_world import AgentWorld
from support.polling import until
from support.scripted_model import Call, Shell, Step
from support.sizes import Size

pytestmark = pytest.mark.needs("user-namespaces", "npm")
REASON = "needed for the test"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let the programs that speak no MCP take part only in `make soak`."""
    is_soak = metafunc.config.getoption("--sizes") == Size.SOAK
    programs = [each for each in PROGRAMS.values() if is_soak or each.speaks_mcp]
    metafunc.parametrize("program", programs, ids=[program.name for program in programs])


def in_another_terminal(act: Callable[[], object]) -> Callable[[], None]:
    """Return a function that starts `act`, a person's action while the agent continues."""
    return threading.Thread(target=act).start


def test_a_session_is_known_and_gets_decisions(program: AgentProgram, tmp_path: Path) -> None:
    """The shell tool shows that rootsd recognizes the agent. The next answer of any tool lists the
    changes, and `request_root` waits for a person in another terminal.
    """
    around = tmp_path / "around"
    with AgentWorld(tmp_path, ["api", "old", "web", "wanted"]) as world:
        world.rootsd("approve", "api", "old", "--yes")

        def decide() -> None:
            world.rootsd("approve", "web")
            world.rootsd("deny", "old")

        def approve_when_asked() -> None:
            until(lambda: any(REASON in str(item) for item in world.items("pending")))
            world.rootsd("approve", "wanted")

        asked = {"path": str(world.parent / "wanted"), "reason": REASON}
        script: list[Step] = [Shell(f"{sys.executable} {environment_report.__file__} {around}")]
        if program.speaks_mcp:
            script += [
                Call("list_roots"),
                Call("resolve_root", {"name": "api"}, before=decide),
                Call("list_roots"),
                Call("request_root", asked, before=in_another_terminal(approve_when_asked)),
            ]
        servers = {"rootsd": world.bridge()} if program.speaks_mcp else {}
        model = world.play(program, script, servers, world.parent / "api")
        published = world.published()
    assert_known(program, json.loads(around.read_text()))
    if program.speaks_mcp:
        assert published == {"api", "web"}, "the approval for the session ended with it"
        _, first, told, second, third = (model.results[step] for step in range(5))
        paths = [str(world.parent / name) for name in ("api", "old", "web")]
        assert [path in first for path in paths] == [True, True, False], first
        assert "added web; removed old" in told, told
        assert [path in second for path in paths] == [True, False, True], second
        assert [first.count(paths[0]), second.count(paths[0])] == [1, 1], "the list comes once"
        assert "added wanted" in third, third
        assert '"approved":true' in third.replace(" ", ""), third


def assert_known(program: AgentProgram, around: environment_report.Surroundings) -> None:
    """Check that its process is known by name, and its commands by each variable, except those
    that it sets at other times.
    """
    (agent,) = (agent for agent in guarded_agents() if agent.label == program.label)
    line = [
        Process(
            pid=process["pid"], started=0, parent=0, name=process["name"].encode(),
            arguments=tuple(argument.encode() for argument in process["arguments"]),
        )
        for process in around["lineage"]
    ]  # fmt: skip
    known = [found for process in line for found in agents_of(process, guarded_agents())]
    assert set(known) == {agent}, line
    assert set(program.sets) <= around["environment"].keys()
    assert set(program.sets) <= {mark.partition("=")[0] for mark in agent.markers}
