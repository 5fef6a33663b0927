"""Aider, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Aider"
PROGRAMS = ("aider",)
PACKAGES = ("/aider/",)
SOURCE = "its source: it sets none"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.SettingsPlace(".aider"), credentials=("oauth-keys.env",)
            ),
        ),
        reads=(".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json"),
    )
