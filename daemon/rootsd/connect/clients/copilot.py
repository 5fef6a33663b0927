"""Copilot CLI. Its listing starts no server.

Sources: `copilot help config`, and runs of version 1.0.102.
"""

from __future__ import annotations

from rootsd.agents.forms.place import HomeVariable, SettingsPlace
from rootsd.connect.base import (
    ENTRY_NAME,
    HOOK_COMMAND,
    ClientFacts,
    ClientTrial,
    DescribedClient,
    EntryForm,
    EntryPart,
    EntryReading,
    HealthCheck,
    HookFile,
    NewJsonFile,
    Placeholder,
)


def _in_home(below: str) -> SettingsPlace:
    return SettingsPlace(f".copilot/{below}", variables=(HomeVariable("COPILOT_HOME", below),))


CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="copilot",
            title="Copilot CLI",
            places=(_in_home("mcp-config.json"),),
            keys=("mcpServers",),
            form=EntryForm(fixed={"type": "local", "tools": ["*"]}),
            reading=EntryReading(
                (Placeholder.BRACES, Placeholder.DEFAULT, Placeholder.BARE),
                frozenset((EntryPart.FOLDER, EntryPart.HOME_FOLDER)),
            ),
            programs=("copilot",),
            trial=ClientTrial.TRIED,
            hook=HookFile(
                _in_home("hooks/rootsd.json"),
                # It refuses each call whose hook fails, so a missing rootsd would refuse them all.
                {
                    ("hooks", "PreToolUse"): {
                        "type": "command",
                        "bash": f"{HOOK_COMMAND} || true",
                        "timeoutSec": 10,
                    }
                },
                NewJsonFile('{"version": 1}\n'),
            ),
            health=HealthCheck(("mcp", "list"), listed=rf"(?m)^\s+{ENTRY_NAME} \("),
        )
    ),
)
