"""Gemini CLI. In a folder that it does not trust, it starts no server.

Sources: its documentation of MCP servers, and runs of version 0.61.0.
"""

from __future__ import annotations

from msgspec.structs import replace

from rootsd.agents.forms.place import HomeVariable, SettingsPlace
from rootsd.connect.base import (
    ENTRY_NAME,
    ClientFacts,
    ClientTrial,
    DescribedClient,
    EntryPart,
    EntryReading,
    HealthCheck,
    HookFile,
    Placeholder,
    ToolFile,
    ToolPermission,
    nested_hook,
)

TOOLS_IN_ENTRY = ToolPermission(ToolFile.ENTRY, members={"trust": True})
LISTING = HealthCheck(
    ("mcp", "list"),
    listed=rf" {ENTRY_NAME}: ",
    connected=rf" {ENTRY_NAME}: .*- Connected",
)
# The variable replaces the home folder (`packages/core/src/utils/paths.ts`).
_SETTINGS = SettingsPlace(
    ".gemini/settings.json", variables=(HomeVariable("GEMINI_CLI_HOME", ".gemini/settings.json"),)
)

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="gemini",
            title="Gemini CLI",
            places=(_SETTINGS,),
            keys=("mcpServers",),
            # In a variable, it replaces each other `${...}` by nothing.
            reading=EntryReading(
                (Placeholder.BRACES, Placeholder.DEFAULT, Placeholder.BARE),
                frozenset((EntryPart.FOLDER, EntryPart.OTHER_PLACEHOLDERS)),
            ),
            programs=("gemini",),
            trial=ClientTrial.TRIED,
            tools=TOOLS_IN_ENTRY,
            hook=HookFile(_SETTINGS, nested_hook("BeforeTool", 10_000)),
            health=replace(
                LISTING,
                problems={
                    rf" {ENTRY_NAME}: .*- Disabled": "it does not trust your home folder",
                },
                # The listing runs in the home folder, whose settings are those of the user anyway.
                variables={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
            ),
            notes=("Gemini CLI starts servers only in folders that you trust.",),
        )
    ),
)
