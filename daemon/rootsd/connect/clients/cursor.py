"""Cursor. Source: the vendor's documentation of MCP servers."""

from __future__ import annotations

from rootsd.connect.base import ClientFacts, DescribedClient, SettingsPlace

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="cursor",
            title="Cursor",
            places=(SettingsPlace(".cursor/mcp.json"),),
            keys=("mcpServers",),
            programs=("cursor", "cursor-agent"),
            worktrees=".cursor/worktrees",
        )
    ),
)
