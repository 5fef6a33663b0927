"""Qwen Code, which began as a copy of Gemini CLI. Its model finds our tools only after a search.

Sources: its documentation of MCP servers, and runs of version 0.24.4.
"""

from __future__ import annotations

from rootsd.agents.forms.place import HomeVariable, SettingsPlace
from rootsd.connect.base import (
    ClientFacts,
    ClientTrial,
    DescribedClient,
    EntryPart,
    EntryReading,
    HookFile,
    Placeholder,
    nested_hook,
)
from rootsd.connect.clients.gemini import LISTING, TOOLS_IN_ENTRY

_SETTINGS = SettingsPlace(
    ".qwen/settings.json", variables=(HomeVariable("QWEN_HOME", "settings.json"),)
)

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="qwen",
            title="Qwen Code",
            places=(_SETTINGS,),
            keys=("mcpServers",),
            reading=EntryReading(
                (Placeholder.BRACES, Placeholder.BARE), frozenset((EntryPart.FOLDER,))
            ),
            programs=("qwen",),
            trial=ClientTrial.TRIED,
            tools=TOOLS_IN_ENTRY,
            hook=HookFile(_SETTINGS, nested_hook("PreToolUse", 10_000)),
            health=LISTING,
        )
    ),
)
