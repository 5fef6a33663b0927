"""Droid, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Droid"
PROGRAMS = ("droid",)
SOURCE = "nothing is known"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.SettingsPlace(".factory"),
                loads=(
                    "AGENTS.md", "bin", "commands", "droids", "hooks", "hooks.json", "mcp.json",
                    "plugins", "rules", "skills",
                ),
                copies=(
                    forms.state.CopiedFile("settings.json"),
                    forms.state.CopiedFile("config.json"),
                ),
                credentials=("auth.json", "auth.encrypted", "auth.v2.file", "auth.v2.key"),
            ),
        ),
    )  # fmt: skip
