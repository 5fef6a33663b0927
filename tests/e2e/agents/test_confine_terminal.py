"""The screen of a real agent program behind the wall, on a person's terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.agent_programs import ClaudeCode
from support.agent_world import ROOTSD, AgentWorld
from support.polling import until

pytestmark = pytest.mark.needs("user-namespaces", "npm", "tmux", "wall")
PROMPT = "outside$ "
WIDTH, WIDER = 100, 140
# The processes of the session that have the program's name in their words.
COUNT = "ps -eo args | grep -c '[c]laude'"


class Screen:
    """A shell of the person in tmux, in the folder `api`."""

    def __init__(self, world: AgentWorld, variables: dict[str, str]) -> None:
        self._world, self._variables = world, variables
        size = ("-x", str(WIDTH), "-y", "30")
        shell = ("env", f"PS1={PROMPT}", "bash", "--norc", "-i")
        self.tmux("new-session", "-d", *size, *shell)
        until(lambda: self.text.startswith(PROMPT.rstrip()))

    def run(self, *words: str) -> str:
        return self._world.user.run(words, self._variables, self._world.parent / "api").output

    def tmux(self, *words: str) -> str:
        return self.run("tmux", "-L", "screen", "-f", "/dev/null", *words)

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    @property
    def text(self) -> str:
        return self.tmux("capture-pane", "-p")


def test_the_screen_the_size_and_the_keys_are_those_of_a_terminal(tmp_path: Path) -> None:
    program = ClaudeCode()
    with AgentWorld(tmp_path, ["api"]) as world:
        world.rootsd("approve", "api")
        model = world.model([])
        program.configure(world.home, {}, model.url)
        environment = program.environment(model.url)
        seen_before = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [environment["ANTHROPIC_API_KEY"][-20:]]},
            "projects": {str(world.parent / "api"): {"hasTrustDialogAccepted": True}},
        }
        (world.home / ".claude.json").write_text(json.dumps(seen_before))
        try:
            screen = Screen(world, {**world.variables(program.packages), **environment})
            screen.press(f"{ROOTSD} confine -- claude", "Enter")
            until(lambda: "─" * WIDTH in screen.text)
            screen.tmux("resize-window", "-x", str(WIDER), "-y", "40")
            until(lambda: "─" * WIDER in screen.text)
            screen.press("C-z")
            until(lambda: "Stopped" in screen.text and screen.text.rstrip().endswith("outside$"))
            screen.press("fg", "Enter")
            until(lambda: "─" * WIDER in screen.text)
            screen.press("C-c")
            until(lambda: "Ctrl-C again" in screen.text)
            screen.press("C-c")
            until(lambda: screen.text.rstrip().endswith("outside$"))
            screen.press("echo status-$?", "Enter")
            until(lambda: "status-0" in screen.text)
            until(lambda: screen.run("sh", "-c", COUNT).strip() == "0")
        finally:
            model.close()
