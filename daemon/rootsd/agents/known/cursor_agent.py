"""Cursor's agent, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "Cursor agent",
    folders=(
        AgentFolder(
            ".cursor",
            loads=(
                "agents", "commands", "hooks", "hooks.json", "mcp.json", "permissions.json",
                "plugins", "rules", "sandbox.json", "skills", "skills-cursor",
            ),
            copies=(CopiedFile("cli-config.json"),),
        ),
        AgentFolder(
            ".config/cursor",
            variable="XDG_CONFIG_HOME",
            below="cursor",
            credentials=("auth.json",),
        ),
    ),
    reads=(".local/share/cursor-agent",),
)  # fmt: skip
