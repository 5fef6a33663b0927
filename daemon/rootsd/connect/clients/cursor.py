"""Cursor. Sources: the vendor's documentation of MCP servers and of hooks."""

from __future__ import annotations

from rootsd.agents.forms.place import SettingsPlace
from rootsd.connect.base import (
    HOOK_COMMAND,
    ClientFacts,
    DescribedClient,
    EntryReading,
    HookFile,
    NewJsonFile,
    Placeholder,
)

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="cursor",
            title="Cursor",
            places=(SettingsPlace(".cursor/mcp.json"),),
            keys=("mcpServers",),
            reading=EntryReading((Placeholder.ENV, Placeholder.EDITOR)),
            programs=("cursor", "cursor-agent"),
            hook=HookFile(
                SettingsPlace(".cursor/hooks.json"),
                {
                    ("hooks", event): {"command": HOOK_COMMAND, "timeout": 10}
                    for event in ("beforeReadFile", "preToolUse")
                },
                NewJsonFile('{"version": 1}\n'),
            ),
            worktrees=SettingsPlace(".cursor/worktrees"),
        )
    ),
)
