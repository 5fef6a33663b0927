"""Windsurf. Source: the vendor's documentation of MCP servers."""

from __future__ import annotations

from rootsd.agents.forms.place import SettingsPlace
from rootsd.connect.base import ClientFacts, DescribedClient, EntryReading, Placeholder

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="windsurf",
            title="Windsurf",
            places=(SettingsPlace(".codeium/windsurf/mcp_config.json"),),
            keys=("mcpServers",),
            reading=EntryReading((Placeholder.ENV,)),
            programs=("windsurf",),
        )
    ),
)
