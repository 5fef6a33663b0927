"""Auggie, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile, CopiedFile

PROFILE = AgentProfile(
    "Auggie",
    folders=(
        AgentFolder(
            ".augment",
            loads=("agents", "commands", "hooks", "plugins", "rules", "skills"),
            copies=(CopiedFile("settings.json"),),
            credentials=("session.json",),
        ),
    ),
)
