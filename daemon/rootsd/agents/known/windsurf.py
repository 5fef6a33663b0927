"""Windsurf. Source: the vendor's documentation of MCP servers."""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Windsurf"


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file."""
    form = forms.client
    return (
        form.ClientFacts(
            name="windsurf",
            title=LABEL,
            places=(forms.place.SettingsPlace(".codeium/windsurf/mcp_config.json"),),
            keys=("mcpServers",),
            reading=form.EntryReading((form.Placeholder.ENV,)),
            programs=("windsurf",),
        ),
    )
