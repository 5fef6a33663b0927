"""Auggie, by its documentation. It was not run."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Auggie"
PROGRAMS = ("auggie",)
PACKAGES = ("@augmentcode/auggie/",)
# phpstan/phpstan-src: AgentDetector.php, and vercel/vercel: packages/detect-agent
MARKERS = ("AUGMENT_AGENT",)
SOURCE = "programs that look for it"


def state() -> forms.state.AgentState:
    """Return what it needs behind the wall."""
    return forms.state.AgentState(
        folders=(
            forms.state.AgentFolder(
                forms.place.SettingsPlace(".augment"),
                loads=("agents", "commands", "hooks", "plugins", "rules", "skills"),
                copies=(forms.state.CopiedFile("settings.json"),),
                credentials=("session.json",),
            ),
        ),
    )
