"""Amp. Its MCP servers start only after a login.

Source: the owner's manual of its vendor.
"""

from __future__ import annotations

from rootsd.connect.base import ClientFacts, DescribedClient, SettingsPlace

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="amp",
            title="Amp",
            places=(
                SettingsPlace(
                    ".config/amp/settings.json",
                    override="XDG_CONFIG_HOME",
                    below="amp/settings.json",
                ),
            ),
            keys=("amp.mcpServers",),
            programs=("amp",),
        )
    ),
)
