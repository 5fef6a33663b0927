"""Cline's command line. Its files in use, version 3.0.65; it was not run behind the wall."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "Cline",
    folders=(
        AgentFolder(
            ".cline",
            loads=(
                "agents", "data/settings/cline_mcp_settings.json", "data/hooks", "data/rules",
                "data/skills", "data/workflows", "hooks", "plugins", "rules", "skills",
                "workflows",
            ),
            copies=(CopiedFile("data/globalState.json"),),
            credentials=("data/secrets.json", "data/settings/providers.json"),
        ),
    ),
    reads=("Documents/Cline", ".agents"),
)  # fmt: skip
