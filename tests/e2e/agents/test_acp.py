"""Real adapters of ACP behind `rootsd acp`, with and without the wall."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import acp_driver
from support.agent_programs import ClaudeCode, Codex
from support.agent_world import ROOTSD, AgentWorld
from support.scripted_model import Shell, Step
from support.sizes import Size

pytestmark = pytest.mark.needs("user-namespaces", "npm", "wall")


@dataclass
class Relayed:
    """An adapter behind the relay, as the program that a world plays."""

    adapter: str
    flags: tuple[str, ...]
    world: AgentWorld

    packages = "acp"

    def command(self, prompt: str) -> list[str]:
        """Return the words that start the client."""
        src = self.world.parent
        folders = [str(self.world.folder / "result.json"), str(src / "api"), str(src / "secret")]
        relay = [str(ROOTSD), "acp", *self.flags, "--", self.adapter]
        return [sys.executable, acp_driver.__file__, *folders, prompt, *relay]


class ClaudeAdapter(Relayed, ClaudeCode):
    """The adapter of Claude Code."""

    packages = "acp"


class CodexAdapter(Relayed, Codex):
    """The adapter of Codex."""

    packages = "acp"


ADAPTERS = {"claude-agent-acp": ClaudeAdapter, "codex-acp": CodexAdapter}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let the second adapter take part only in `make soak`."""
    is_soak = metafunc.config.getoption("--sizes") == Size.SOAK
    metafunc.parametrize("adapter", list(ADAPTERS) if is_soak else ["claude-agent-acp"])


@pytest.mark.parametrize("flags", [(), ("--confine",)], ids=["relay", "wall"])
def test_an_adapter_works_in_an_approved_folder_only(
    adapter: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    with AgentWorld(tmp_path, ["api", "secret"]) as world:
        world.rootsd("approve", "api")
        secret = world.parent / "secret" / "README.md"
        script: list[Step] = [
            Shell("cat README.md"),
            Shell(f"cat {secret}; true"),
            Shell(
                "echo x > new && git add new && git -c user.name=a -c user.email=a@b commit -m new"
            ),
        ]
        program: Any = ADAPTERS[adapter](adapter, flags, world)
        model = world.play(program, script, {}, world.parent)
        found = json.loads((tmp_path / "result.json").read_text())
    assert found["refused"]["error"]["code"] == -32602
    assert f"rootsd approve {world.parent / 'secret'}" in found["refused"]["error"]["message"]
    assert found["stopped"]["result"]["stopReason"] == "end_turn"
    assert "the text of api" in model.results[0]
    # Without the wall, the relay bounds no reads. This is the control, too.
    assert ("the text of secret" in model.results[1]) == (not flags)
    assert "1 file changed" in model.results[2]
