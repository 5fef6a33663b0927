"""Agents of an editor get a second entry that runs them under `rootsd acp`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.connect.client_files import Wired
from rootsd.connect.wiring import ClientWiring, Consent
from rootsd.settings.formats import JsonFormat
from support.client_home import ROOTSD, WISH, ClientHome

ZED = """{
  // agents of mine
  "agent_servers": {
    "claude-acp": { "type": "registry", "env": {} }, // it has no command
    "Codex": { "type": "custom", "command": "/opt/codex-acp", "args": ["-v"], "env": {"A": "1"} },
  },
  "theme": "One"
}
"""
JETBRAINS = '{"default_mcp_settings": {}, "agent_servers": {}}'


@pytest.fixture
def client_home(tmp_path: Path) -> ClientHome:
    return ClientHome(tmp_path)


@pytest.fixture
def editor(client_home: ClientHome) -> ClientWiring:
    """Return the settings of Zed, with one agent in them and another one on the PATH."""
    client_home.settings("zed", ZED)
    client_home.program("claude-agent-acp", "exit 0")
    return client_home.wiring("zed")


def connect(wiring: ClientWiring) -> None:
    wish = replace(WISH, agents=wiring.agents_to_relay())
    wiring.connect(wiring.wish_again(wish), Consent.NONE)


def agents_in(wiring: ClientWiring) -> dict[str, Any]:
    found: dict[str, Any] = JsonFormat().values(wiring.settings.read_text())["agent_servers"]
    return found


def test_agents_in_the_settings_and_on_the_path_get_a_second_entry(
    editor: ClientWiring, client_home: ClientHome
) -> None:
    for _ in range(2):
        connect(editor)
        found = agents_in(editor)
        assert found.keys() == {"claude-acp", "Codex", "Codex (rootsd)", "Claude Code (rootsd)"}
        assert found["Codex (rootsd)"] == {
            "type": "custom", "command": ROOTSD, "args": ["acp", "--", "/opt/codex-acp", "-v"],
            "env": {"A": "1"},
        }  # fmt: skip
        own = str(client_home.programs / "claude-agent-acp")
        assert found["Claude Code (rootsd)"]["args"] == ["acp", "--", own]
    assert "// it has no command" in editor.settings.read_text()
    assert editor.take_back(None)[1] == []
    assert editor.settings.read_text() == ZED


@pytest.mark.parametrize("text", [None, JETBRAINS])
def test_an_editor_without_mcp_servers_gets_agents_only(
    client_home: ClientHome, text: str | None
) -> None:
    file = client_home.settings("jetbrains", text)
    client_home.program("codex-acp", "exit 0")
    wiring = client_home.wiring("jetbrains")
    connect(wiring)
    program = str(client_home.programs / "codex-acp")
    own = {"command": ROOTSD, "args": ["acp", "--", program]}
    assert json.loads(file.read_text())["agent_servers"] == {"Codex CLI (rootsd)": own}
    assert wiring.state().wired is Wired.YES
    wiring.take_back(None)
    assert (file.read_text() if file.exists() else None) == text


def test_flags_that_a_person_added_to_an_entry_stay(editor: ClientWiring) -> None:
    connect(editor)
    text = re.sub(r'"acp",(\s*)"--"', r'"acp",\1"--confine",\1"--"', editor.settings.read_text())
    editor.settings.write_text(text)
    connect(editor)
    assert agents_in(editor)["Codex (rootsd)"]["args"][:3] == ["acp", "--confine", "--"]


def test_an_entry_that_runs_another_program_stays(editor: ClientWiring) -> None:
    connect(editor)
    text = editor.settings.read_text()
    at = text.index(ROOTSD, text.index("Codex (rootsd)"))
    editor.settings.write_text(text[:at] + "/usr/bin/other" + text[at + len(ROOTSD) :])
    _, left = editor.take_back(None)
    assert left == ["the agent Codex (rootsd) runs another program now, so it stays"]
    assert agents_in(editor).keys() == {"claude-acp", "Codex", "Codex (rootsd)"}


def test_without_the_record_the_entries_are_taken_back(
    editor: ClientWiring, client_home: ClientHome
) -> None:
    connect(editor)
    for file in client_home.record.folder.iterdir():
        file.unlink()
    client_home.wiring("zed").take_back(None)
    assert agents_in(editor).keys() == {"claude-acp", "Codex"}
