"""Zed. Its settings have comments, in one place on both systems.

Source: the vendor's documentation of context servers.
"""

from __future__ import annotations

from rootsd.connect.base import ClientFacts, DescribedClient, EntryForm, SettingsPlace

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="zed",
            title="Zed",
            places=(SettingsPlace(".config/zed/settings.json"),),
            keys=("context_servers",),
            form=EntryForm(fixed={"source": "custom"}),
            programs=("zed", "zeditor"),
            applies="at once",
        )
    ),
)
