"""Aider, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile

PROFILE = AgentProfile(
    "Aider",
    folders=(AgentFolder(".aider", credentials=("oauth-keys.env",)),),
    reads=(".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json"),
)
