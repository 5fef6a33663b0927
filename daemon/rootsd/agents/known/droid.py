"""Droid, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "Droid",
    folders=(
        AgentFolder(
            ".factory",
            loads=(
                "AGENTS.md", "bin", "commands", "droids", "hooks", "hooks.json", "mcp.json",
                "plugins", "rules", "skills",
            ),
            copies=(CopiedFile("settings.json"), CopiedFile("config.json")),
            credentials=("auth.json", "auth.encrypted", "auth.v2.file", "auth.v2.key"),
        ),
    ),
)  # fmt: skip
