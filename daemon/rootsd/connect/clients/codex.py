"""Codex. It asks for no permission to call our tools, and its listing starts no server.

Sources: its documentation of `config.toml`, and runs of version 0.169.0.
"""

from __future__ import annotations

from rootsd.agents.forms.place import HomeVariable, SettingsPlace
from rootsd.connect.base import (
    ENTRY_NAME,
    TOML,
    ClientFacts,
    ClientTrial,
    DescribedClient,
    EntryForm,
    EntryPart,
    EntryReading,
    HealthCheck,
    HookFile,
    nested_hook,
)


def _in_home(below: str) -> SettingsPlace:
    return SettingsPlace(f".codex/{below}", variables=(HomeVariable("CODEX_HOME", below),))


CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="codex",
            title="Codex",
            places=(_in_home("config.toml"),),
            keys=("mcp_servers",),
            language=TOML,
            # Otherwise it waits about a second, and its first request then has no rootsd tools.
            form=EntryForm(more={"required": True}),
            reading=EntryReading(parts=frozenset((EntryPart.FOLDER,))),
            programs=("codex",),
            trial=ClientTrial.TRIED,
            hook=HookFile(
                _in_home("hooks.json"),
                nested_hook("PreToolUse", 10, "apply_patch|Bash"),
            ),
            health=HealthCheck(("mcp", "list"), listed=rf"(?m)^{ENTRY_NAME}\s"),
            worktrees=_in_home("worktrees"),
        )
    ),
)
