"""LM Studio. Older versions keep the file in their cache folder.

Source: the vendor's documentation of `mcp.json`.
"""

from __future__ import annotations

from rootsd.agents.forms.place import SettingsPlace
from rootsd.connect.base import ClientFacts, DescribedClient

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="lm-studio",
            title="LM Studio",
            places=(
                SettingsPlace(".lmstudio/mcp.json"),
                SettingsPlace(".cache/lm-studio/mcp.json"),
            ),
            keys=("mcpServers",),
            programs=("lms",),
            applies="at once",
        )
    ),
)
