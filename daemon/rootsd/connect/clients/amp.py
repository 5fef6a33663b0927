"""Amp. Its MCP servers start only after a login.

Source: the owner's manual of its vendor.
"""

from __future__ import annotations

from rootsd.agents.forms.place import HomeVariable, SettingsPlace
from rootsd.connect.base import ClientFacts, DescribedClient

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="amp",
            title="Amp",
            places=(
                SettingsPlace(
                    ".config/amp/settings.json",
                    variables=(HomeVariable("XDG_CONFIG_HOME", "amp/settings.json"),),
                ),
            ),
            keys=("amp.mcpServers",),
            programs=("amp",),
        )
    ),
)
