"""Continue. continuedev/continue: core/util/paths.ts. It was not run behind the wall."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Continue"
PROGRAMS = ("cn",)
PACKAGES = ("@continuedev/cli/",)
SOURCE = "its source: it sets none"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.moved_by("CONTINUE_GLOBAL_DIR", ".continue"),
                loads=(
                    ".env", "agents", "assistants", "config.json", "config.ts", "config.yaml",
                    "mcpServers", "models", "permissions.yaml", "prompts", "rules", "skills",
                ),
                credentials=("auth.json",),
            ),
        ),
    )  # fmt: skip
