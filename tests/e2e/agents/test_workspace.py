"""A server that a real agent program wraps in `rootsd run` gets the session's workspace."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support import roots_recorder
from support.agent_programs import FIVE, AgentProgram, Server
from support.agent_world import ROOTSD, AgentWorld
from support.scripted_model import Call

pytestmark = pytest.mark.needs("user-namespaces", "npm")


@pytest.mark.parametrize("program", FIVE, ids=lambda program: program.name)
def test_a_wrapped_server_gets_the_workspace_of_the_session(
    program: AgentProgram, tmp_path: Path
) -> None:
    """An approval made during the session arrives. An earlier root outside the workspace never
    does.
    """
    record = tmp_path / "record"
    with AgentWorld(tmp_path, ["api", "private", "during"]) as world:
        world.rootsd("approve", "api", "private", "--yes")
        recorder = (sys.executable, roots_recorder.__file__, str(record))
        wrapped = Server((str(ROOTSD), "run", "--", *recorder), world.bridge().environment)
        script = [
            Call("await_root", {"name": "api"}),
            Call(
                "await_root", {"name": "during"}, before=lambda: world.rootsd("approve", "during")
            ),
        ]
        model = world.play(program, script, {"recorder": wrapped}, world.parent / "api")
        received = [set(json.loads(line)) for line in record.read_text().splitlines()]
    assert received[0] == {"api"}, received
    assert received[-1] == {"api", "during"}, (received, model.results)
    assert not [roots for roots in received if "private" in roots], received
