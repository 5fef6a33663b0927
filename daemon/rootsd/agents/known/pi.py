"""pi. badlogic/pi-mono: packages/coding-agent/src/config.ts. It was not run behind the wall."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "pi"
PROGRAMS = ("pi",)
PACKAGES = ("/pi-coding-agent/",)
MARKERS = ("PI_CODING_AGENT",)  # badlogic/pi-mono: packages/coding-agent/src/cli.ts
SOURCE = "run, 0.73.1"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("PI_CODING_AGENT_DIR", ".pi/agent"),
                loads=(
                    "AGENTS.md", "APPEND_SYSTEM.md", "CLAUDE.md", "SYSTEM.md", "commands",
                    "extensions", "hooks", "keybindings.json", "models.json", "npm", "prompts",
                    "skills", "themes", "tools",
                ),
                copies=(forms.state.CopiedFile("settings.json"),),
                credentials=("auth.json",),
            ),
        ),
        reads=(".agents",),
    )  # fmt: skip


def reach(
    home: forms.reach.AgentHome, inside: forms.reach.AgentFiles = ()
) -> forms.reach.AgentReach:
    """Return what it may do: it has no permissions, by its documentation of 0.73.1."""
    del home, inside
    access = forms.reach.by_default(forms.reach.Extent.EVERYTHING, "pi never asks")
    return forms.reach.AgentReach(access, access)
