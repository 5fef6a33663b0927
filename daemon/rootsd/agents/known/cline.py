"""Cline's command line. Its files in use, version 3.0.65; it was not run behind the wall."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Cline"
PROGRAMS = ("cline",)
PACKAGES = ("/node_modules/cline/",)
# Observed in the commands of its command-line program, version 3.0.65.
MARKERS = ("CLINE_CONNECTOR_CLI_LAUNCH",)
# cline/cline: VscodeTerminalRegistry.ts, also in terminals that people use.
HINTS = ("CLINE_ACTIVE",)
SOURCE = "run, 3.0.65; the one in italics by its source"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("CLINE_DIR", ".cline"),
                loads=(
                    "agents", "data/settings/cline_mcp_settings.json", "data/hooks", "data/rules",
                    "data/skills", "data/workflows", "hooks", "plugins", "rules", "skills",
                    "workflows",
                ),
                copies=(forms.state.CopiedFile("data/globalState.json"),),
                credentials=("data/secrets.json", "data/settings/providers.json"),
            ),
        ),
        reads=("Documents/Cline", ".agents"),
    )  # fmt: skip
