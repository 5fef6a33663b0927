"""Qwen Code. Its model finds our tools only after a search.

Sources: its documentation of MCP servers, and runs of version 0.24.4.
"""

from __future__ import annotations

from rootsd.connect.base import (
    ENTRY_NAME,
    ClientFacts,
    ClientTrial,
    DescribedClient,
    HealthCheck,
    SettingsPlace,
    ToolFile,
    ToolPermission,
)

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="qwen",
            title="Qwen Code",
            places=(SettingsPlace(".qwen/settings.json"),),
            keys=("mcpServers",),
            programs=("qwen",),
            trial=ClientTrial.TRIED,
            tools=ToolPermission(ToolFile.ENTRY, members={"trust": True}),
            health=HealthCheck(
                ("mcp", "list"),
                listed=rf" {ENTRY_NAME}: ",
                connected=rf" {ENTRY_NAME}: .*- Connected",
            ),
        )
    ),
)
