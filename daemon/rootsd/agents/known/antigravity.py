"""Antigravity CLI, by the reports of others, which disagree. It was not run."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Antigravity CLI"
PROGRAMS = ("agy",)
SOURCE = "nothing is known"
RUNS = (".agents/mcp_config.json", ".agents/hooks.json")
OBEYS = RUNS


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return the configuration file that most reports name."""
    return (
        forms.client.ClientFacts(
            name="antigravity",
            title=LABEL,
            places=(forms.place.SettingsPlace(".gemini/config/mcp_config.json"),),
            keys=("mcpServers",),
            programs=PROGRAMS,
            only_printed=(
                "it was never run with rootsd, and may read"
                " ~/.gemini/antigravity-cli/mcp_config.json instead"
            ),
        ),
    )
