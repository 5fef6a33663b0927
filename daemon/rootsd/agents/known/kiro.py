"""Kiro CLI, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Kiro CLI"
PROGRAMS = ("kiro-cli", "kiro-cli-chat")
SOURCE = "nothing is known"
RUNS = (".kiro/settings/mcp.json",)
OBEYS = (".kiro",)


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.SettingsPlace(".kiro"),
                loads=("agents", "hooks", "prompts", "settings", "skills", "steering"),
            ),
            # The login is in a database there, together with the history.
            forms.state.AgentFolder(forms.place.DATA.at("kiro-cli")),
        ),
    )
