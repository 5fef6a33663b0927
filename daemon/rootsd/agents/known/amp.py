"""Amp, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "Amp",
    folders=(
        AgentFolder(
            ".config/amp",
            variable="XDG_CONFIG_HOME",
            below="amp",
            loads=("AGENT.md", "AGENTS.md", "checks", "commands", "plugins", "skills", "tools"),
            copies=(CopiedFile("settings.json"), CopiedFile("settings.jsonc")),
        ),
        AgentFolder(
            ".local/share/amp",
            variable="XDG_DATA_HOME",
            below="amp",
            credentials=("secrets.json", "device-id.json"),
        ),
    ),
    reads=(".config/AGENTS.md", ".config/agents", ".agents"),
)  # fmt: skip
