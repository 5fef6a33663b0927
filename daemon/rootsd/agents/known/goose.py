"""Goose. block/goose: crates/goose/src/config. It was not run."""

from __future__ import annotations

from rootsd.agents.profile import AgentFolder, AgentProfile

PROFILE = AgentProfile(
    "Goose",
    folders=(
        AgentFolder(
            ".config/goose",
            variable="XDG_CONFIG_HOME",
            below="goose",
            loads=(
                ".goosehints", "*.yaml", "AGENTS.md", "agents", "custom_providers",
                "declarative_*", "memory", "prompts", "recipes", "skills",
            ),
        ),
        AgentFolder(".local/share/goose", variable="XDG_DATA_HOME", below="goose"),
        AgentFolder(".local/state/goose", variable="XDG_STATE_HOME", below="goose"),
    ),
    reads=(".agents",),
)  # fmt: skip
