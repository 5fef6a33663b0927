"""Visual Studio Code, its Insiders edition, its server for remote windows, and VSCodium.

Each profile but the default one has servers of its own. The program of VS Code adds them there.

Source: the vendor's documentation of MCP servers and of profiles.
"""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "VS Code"
RUNS = (".vscode/tasks.json", ".vscode/mcp.json")
OBEYS = (".vscode",)


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return the configuration file of each edition."""
    return (
        _edition("vscode", LABEL, "Code", "code", "com.visualstudio.code", _NO_SANDBOX),
        _edition(
            "vscode-insiders", "VS Code Insiders", "Code - Insiders", "code-insiders",
            not_synced=_NO_SANDBOX,
        ),
        forms.client.ClientFacts(
            name="vscode-server",
            title="VS Code for remote windows",
            places=(forms.place.SettingsPlace(".vscode-server/data/User/mcp.json"),),
            keys=("servers",),
            form=forms.client.EntryForm(fixed={"type": "stdio"}),
            reading=_reading(),
            folder=forms.place.SettingsPlace(".vscode-server"),
            applies=_APPLIES,
        ),
        _edition("vscodium", "VSCodium", "VSCodium", "codium", "com.vscodium.codium"),
    )  # fmt: skip


_APPLIES = "at once; VS Code asks whether to start the server"
_NO_SANDBOX = "the vendor deprecated the settings of its sandbox, and its own tools ignore them"


def _reading() -> forms.client.EntryReading:
    known = forms.client.Placeholder
    return forms.client.EntryReading((known.ENV, known.EDITOR))


def _edition(
    name: str, title: str, folder: str, program: str, flatpak: str = "", not_synced: str = ""
) -> forms.client.ClientFacts:
    below, support = f"{folder}/User/mcp.json", "Library/Application Support"
    profiles = forms.place.in_config_home(
        f"{folder}/User/profiles/*", f"{support}/{folder}/User/profiles/*"
    )
    what = (
        f"{title} has a profile with servers of its own in {{}}; rootsd does not change it"
        f" (try: {program} --profile NAME --add-mcp"
        """ '{{"name": "rootsd", "command": "rootsd", "args": ["bridge"]}}')"""
    )
    others = [forms.client.OtherSettings(what, profiles)]
    others += [forms.client.from_flatpak(title, flatpak)] if flatpak else []
    return forms.client.ClientFacts(
        name=name,
        title=title,
        places=(forms.place.in_config_home(below, f"{support}/{below}"),),
        keys=("servers",),
        form=forms.client.EntryForm(fixed={"type": "stdio"}),
        reading=_reading(),
        programs=(program,),
        applies=_APPLIES,
        not_synced=not_synced,
        others=tuple(others),
    )
