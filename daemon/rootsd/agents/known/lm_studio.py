"""LM Studio. Source: the vendor's documentation of `mcp.json`."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "LM Studio"


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file. Older versions keep it in their cache folder."""
    return (
        forms.client.ClientFacts(
            name="lm-studio",
            title=LABEL,
            places=(
                forms.place.SettingsPlace(".lmstudio/mcp.json"),
                forms.place.SettingsPlace(".cache/lm-studio/mcp.json"),
            ),
            keys=("mcpServers",),
            programs=("lms",),
            applies="at once",
        ),
    )
