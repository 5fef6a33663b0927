"""Cline: the program for the terminal, and the extension of VS Code. Each has its own file.

The program reads entries with the command in `transport`. Other installers write it directly into
the entry, so both forms are understood. Its listing starts no server.

A server has three seconds to answer. With `timeout`, that is the limit, and the one of each
request, which is 60 seconds otherwise. Sources: runs of version 3.0.65, and its schema.
"""

from __future__ import annotations

from rootsd.agents.forms.place import HomeVariable, SettingsPlace, in_config_home
from rootsd.connect.base import (
    ENTRY_NAME,
    ClientFacts,
    ClientTrial,
    DescribedClient,
    EntryForm,
    EntryPart,
    EntryReading,
    HealthCheck,
)

_FILE = "cline_mcp_settings.json"
_EXTENSION = f"Code/User/globalStorage/saoudrizwan.claude-dev/settings/{_FILE}"
_LIMIT = {"timeout": 60}
# The first that is set wins (`resolveMcpSettingsPath` of its source).
_SETTINGS = SettingsPlace(
    f".cline/data/settings/{_FILE}",
    variables=(
        HomeVariable("CLINE_MCP_SETTINGS_PATH"),
        HomeVariable("CLINE_DATA_DIR", f"settings/{_FILE}"),
        HomeVariable("CLINE_DIR", f"data/settings/{_FILE}"),
    ),
)

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="cline",
            title="Cline",
            places=(_SETTINGS,),
            keys=("mcpServers",),
            form=EntryForm(
                fixed={"type": "stdio"}, inside="transport", more=_LIMIT, wrapped=_LIMIT
            ),
            reading=EntryReading(parts=frozenset((EntryPart.FOLDER,))),
            programs=("cline",),
            folder=SettingsPlace(".cline", variables=(HomeVariable("CLINE_DIR"),)),
            trial=ClientTrial.TRIED,
            health=HealthCheck(("config", "mcp"), listed=rf"(?m)^ +{ENTRY_NAME} \["),
            worktrees=SettingsPlace(
                ".cline/worktrees", variables=(HomeVariable("CLINE_DIR", "worktrees"),)
            ),
        )
    ),
    DescribedClient(
        ClientFacts(
            name="cline-vscode",
            title="Cline in VS Code",
            places=(
                in_config_home(_EXTENSION, macos=f"Library/Application Support/{_EXTENSION}"),
            ),
            keys=("mcpServers",),
        )
    ),
)
