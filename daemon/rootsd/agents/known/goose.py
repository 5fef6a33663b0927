"""Goose. block/goose: crates/goose/src/config. It was not run."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Goose"
PROGRAMS = ("goose", "goosed")
# block/goose: crates/goose-mcp/src/developer/shell.rs
MARKERS = ("GOOSE_TERMINAL", "AGENT=goose")
SOURCE = "its source"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("XDG_CONFIG_HOME", ".config/goose", inside="goose"),
                loads=(
                    ".goosehints", "*.yaml", "AGENTS.md", "agents", "custom_providers",
                    "declarative_*", "memory", "prompts", "recipes", "skills",
                ),
            ),
            forms.state.AgentFolder(
                forms.place.moved_by("XDG_DATA_HOME", ".local/share/goose", inside="goose")
            ),
            forms.state.AgentFolder(
                forms.place.moved_by("XDG_STATE_HOME", ".local/state/goose", inside="goose")
            ),
        ),
        reads=(".agents",),
    )  # fmt: skip
