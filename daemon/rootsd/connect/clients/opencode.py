"""opencode. Its settings may have comments, in a file that ends in `.json` or `.jsonc`.

Sources: its documentation of MCP servers, and runs of version 1.18.33.
"""

from __future__ import annotations

from rootsd.connect.base import (
    ENTRY_NAME,
    ClientFacts,
    ClientTrial,
    DescribedClient,
    EntryForm,
    HealthCheck,
    HomeVariable,
    Placeholder,
    SettingsPlace,
)

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="opencode",
            title="opencode",
            places=tuple(
                SettingsPlace(
                    f".config/opencode/{name}",
                    variables=(HomeVariable("XDG_CONFIG_HOME", f"opencode/{name}"),),
                )
                for name in ("opencode.json", "opencode.jsonc")
            ),
            keys=("mcp",),
            form=EntryForm(
                fixed={"type": "local"},
                more={"enabled": True},
                arguments=None,
                environment="environment",
            ),
            placeholders=(Placeholder.CURLY,),
            programs=("opencode",),
            trial=ClientTrial.TRIED,
            no_hook="its hooks are code that it loads, and run no command",
            health=HealthCheck(
                ("mcp", "list"),
                listed=rf"{ENTRY_NAME} ",
                connected=rf"{ENTRY_NAME} +connected",
            ),
        )
    ),
)
