"""Visual Studio Code, its Insiders edition, its server for remote windows, and VSCodium.

Each profile but the default one has servers of its own. The program of VS Code adds them there.

Source: the vendor's documentation of MCP servers and of profiles.
"""

from __future__ import annotations

from rootsd.agents.forms.place import SettingsPlace, in_config_home
from rootsd.connect.base import (
    ClientFacts,
    DescribedClient,
    EntryForm,
    EntryReading,
    OtherSettings,
    Placeholder,
    from_flatpak,
)

_APPLIES = "at once; VS Code asks whether to start the server"
_FORM = EntryForm(fixed={"type": "stdio"})
_READING = EntryReading((Placeholder.ENV, Placeholder.EDITOR))


def _edition(
    name: str, title: str, folder: str, program: str, *applications: str
) -> DescribedClient:
    below, support = f"{folder}/User/mcp.json", "Library/Application Support"
    profiles = in_config_home(f"{folder}/User/profiles/*", f"{support}/{folder}/User/profiles/*")
    what = (
        f"{title} has a profile with servers of its own in {{}}; rootsd does not change it"
        f" (try: {program} --profile NAME --add-mcp"
        """ '{{"name": "rootsd", "command": "rootsd", "args": ["bridge"]}}')"""
    )
    return DescribedClient(
        ClientFacts(
            name=name,
            title=title,
            places=(in_config_home(below, macos=f"{support}/{below}"),),
            keys=("servers",),
            form=_FORM,
            reading=_READING,
            programs=(program,),
            applies=_APPLIES,
            others=(
                OtherSettings(what, profiles),
                *(from_flatpak(title, application) for application in applications),
            ),
        )
    )


def _remote(name: str, title: str, folder: str) -> DescribedClient:
    return DescribedClient(
        ClientFacts(
            name=name,
            title=title,
            places=(SettingsPlace(f"{folder}/data/User/mcp.json"),),
            keys=("servers",),
            form=_FORM,
            reading=_READING,
            folder=SettingsPlace(folder),
            applies=_APPLIES,
        )
    )


CLIENTS = (
    _edition("vscode", "VS Code", "Code", "code", "com.visualstudio.code"),
    _edition("vscode-insiders", "VS Code Insiders", "Code - Insiders", "code-insiders"),
    _remote("vscode-server", "VS Code for remote windows", ".vscode-server"),
    _edition("vscodium", "VSCodium", "VSCodium", "codium", "com.vscodium.codium"),
)
