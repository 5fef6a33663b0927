"""Windsurf. Source: the vendor's documentation of MCP servers."""

from __future__ import annotations

from rootsd.connect.base import ClientFacts, DescribedClient, Placeholder, SettingsPlace

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="windsurf",
            title="Windsurf",
            places=(SettingsPlace(".codeium/windsurf/mcp_config.json"),),
            keys=("mcpServers",),
            placeholders=(Placeholder.ENV,),
            programs=("windsurf",),
        )
    ),
)
