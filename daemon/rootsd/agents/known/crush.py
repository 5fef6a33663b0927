"""Crush. charmbracelet/crush: internal/config. It was not run."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Crush"
PROGRAMS = ("crush",)
PACKAGES = ("@charmland/crush/",)
# charmbracelet/crush: internal/shell/shell.go
MARKERS = ("CRUSH=1", "AGENT=crush", "AI_AGENT=crush")
SOURCE = "its source"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.CONFIG.at("crush"),
                loads=("*.json", "CRUSH.md", "commands", "skills"),
            ),
            forms.state.AgentFolder(
                forms.place.DATA.at("crush"),
                credentials=("crush.json", "providers.json"),
            ),
        ),
        reads=(".agents", ".config/agents"),
    )
