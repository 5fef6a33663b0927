"""opencode. It merges several files, which may have comments and end in `.json` or `.jsonc`.

Our entry is in the later file of its own folder. Servers in the others are wrapped, too.

Sources: its documentation of MCP servers, and runs of version 1.18.33.
"""

from __future__ import annotations

import os
from pathlib import Path

from rootsd.agents.forms.place import HomeVariable, SettingsPlace
from rootsd.connect.base import (
    ENTRY_NAME,
    ClientEnvironment,
    ClientFacts,
    ClientTrial,
    DescribedClient,
    EntryForm,
    EntryPart,
    EntryReading,
    HealthCheck,
    Placeholder,
)

_NAMES = ("opencode.json", "opencode.jsonc")


class MergingClient(DescribedClient):
    """A client with more than one file for all projects."""

    def settings(self, environment: ClientEnvironment) -> Path:
        """Return the last of the places that exists, else the first one."""
        paths = [environment.locate(place) for place in self.facts.places]
        return next((path for path in reversed(paths) if os.path.lexists(path)), paths[0])

    def settings_files(self, environment: ClientEnvironment) -> list[Path]:
        """Return the files of a person in the order in which opencode merges them.

        Those of projects come between the third and the fourth line. Relative values of the
        variables are left out, because they would mean other files in each folder.
        """
        folder = environment.locate(self.facts.places[0]).parent
        added, last = (
            environment.variables.get(name, "")
            for name in ("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR")
        )
        paths = [folder / "config.json", *(folder / name for name in _NAMES)]
        paths += [Path(added)] if os.path.isabs(added) else []
        paths += [environment.home / ".opencode" / name for name in _NAMES]
        paths += [Path(last, name) for name in _NAMES] if os.path.isabs(last) else []
        found = dict.fromkeys(environment.locate(SettingsPlace(str(path))) for path in paths)
        own = self.settings(environment)
        return [path for path in found if path == own or path.is_file()]


CLIENTS = (
    MergingClient(
        ClientFacts(
            name="opencode",
            title="opencode",
            places=tuple(
                SettingsPlace(
                    f".config/opencode/{name}",
                    variables=(HomeVariable("XDG_CONFIG_HOME", f"opencode/{name}"),),
                )
                for name in _NAMES
            ),
            keys=("mcp",),
            form=EntryForm(
                fixed={"type": "local"},
                more={"enabled": True},
                arguments=None,
                environment="environment",
            ),
            reading=EntryReading(
                (Placeholder.CURLY, Placeholder.FILE), frozenset((EntryPart.FOLDER,))
            ),
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
