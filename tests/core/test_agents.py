"""The list of known agents is data, and no editor is on it."""

from __future__ import annotations

import pytest

from rootsd.core.agents import KNOWN_AGENTS, further_agents
from rootsd.core.recognition import is_agent
from support.process_table import process

EDITORS = (
    "code", "codium", "cursor", "devenv", "emacs", "goland", "helix", "hx", "idea", "nano", "nvim",
    "pycharm", "rider", "subl", "vi", "vim", "webstorm", "windsurf", "zed", "zed-editor",
)  # fmt: skip


@pytest.mark.parametrize("editor", EDITORS)
def test_no_editor_is_an_agent(editor: str) -> None:
    assert not [a.label for a in KNOWN_AGENTS if is_agent(process(9, 1, editor), a)]


def test_every_known_agent_can_be_recognized() -> None:
    assert len({agent.label for agent in KNOWN_AGENTS}) == len(KNOWN_AGENTS) >= 13
    for agent in KNOWN_AGENTS:
        assert agent.names or agent.hints
        assert not agent.markers & agent.hints


def test_the_configuration_adds_names_and_markers() -> None:
    named, marked = further_agents(("my-agent",), ("MINE=1",))
    assert is_agent(process(9, 1, "my-agent"), named)
    assert marked.markers == {"MINE=1"}
