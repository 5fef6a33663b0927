"""Kiro CLI, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile

PROFILE = AgentProfile(
    "Kiro CLI",
    folders=(
        AgentFolder(
            ".kiro",
            loads=("agents", "hooks", "prompts", "settings", "skills", "steering"),
        ),
        # The login is in a database there, together with the history.
        AgentFolder(".local/share/kiro-cli", variable="XDG_DATA_HOME", below="kiro-cli"),
    ),
)
