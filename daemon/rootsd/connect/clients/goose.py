"""Goose. Its settings are YAML, and each entry repeats its name.

Source: the vendor's documentation of its configuration files.
"""

from __future__ import annotations

from rootsd.agents.forms.place import HomeVariable, SettingsPlace
from rootsd.connect.base import ENTRY_NAME, YAML, ClientFacts, DescribedClient, EntryForm

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="goose",
            title="Goose",
            places=(
                SettingsPlace(
                    ".config/goose/config.yaml",
                    variables=(HomeVariable("XDG_CONFIG_HOME", "goose/config.yaml"),),
                ),
            ),
            keys=("extensions",),
            language=YAML,
            form=EntryForm(
                fixed={"enabled": True, "type": "stdio", "name": ENTRY_NAME},
                more={"timeout": 300},
                program="cmd",
                environment="envs",
            ),
            programs=("goose",),
        )
    ),
)
