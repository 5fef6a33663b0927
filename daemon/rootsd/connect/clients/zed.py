"""Zed. Its settings have comments, in one place on both systems.

It reads `XDG_CONFIG_HOME` on Linux alone.

Sources: the vendor's documentation of context servers, and `crates/paths` of its source.
"""

from __future__ import annotations

from rootsd.agents.forms.place import in_config_home
from rootsd.connect.base import ClientFacts, DescribedClient, EntryForm, from_flatpak

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="zed",
            title="Zed",
            places=(in_config_home("zed/settings.json", macos=".config/zed/settings.json"),),
            keys=("context_servers",),
            form=EntryForm(fixed={"source": "custom"}),
            programs=("zed", "zeditor"),
            applies="at once",
            others=(from_flatpak("Zed", "dev.zed.Zed"),),
        )
    ),
)
