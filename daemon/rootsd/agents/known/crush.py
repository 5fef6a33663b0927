"""Crush. charmbracelet/crush: internal/config. It was not run."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile

PROFILE = AgentProfile(
    "Crush",
    folders=(
        AgentFolder(
            ".config/crush",
            variable="XDG_CONFIG_HOME",
            below="crush",
            loads=("*.json", "CRUSH.md", "commands", "skills"),
        ),
        AgentFolder(
            ".local/share/crush",
            variable="XDG_DATA_HOME",
            below="crush",
            credentials=("crush.json", "providers.json"),
        ),
    ),
    reads=(".agents", ".config/agents"),
)
