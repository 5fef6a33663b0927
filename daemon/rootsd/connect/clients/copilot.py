"""Copilot CLI. Its listing starts no server.

Sources: `copilot help config`, and runs of version 1.0.102.
"""

from __future__ import annotations

from rootsd.connect.base import (
    ENTRY_NAME,
    ClientFacts,
    ClientTrial,
    DescribedClient,
    EntryForm,
    HealthCheck,
    SettingsPlace,
)

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="copilot",
            title="Copilot CLI",
            places=(
                SettingsPlace(
                    ".copilot/mcp-config.json", override="COPILOT_HOME", below="mcp-config.json"
                ),
            ),
            keys=("mcpServers",),
            form=EntryForm(fixed={"type": "local", "tools": ["*"]}),
            programs=("copilot",),
            trial=ClientTrial.TRIED,
            health=HealthCheck(("mcp", "list"), listed=rf"(?m)^\s+{ENTRY_NAME} \("),
        )
    ),
)
