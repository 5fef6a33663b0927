"""Visual Studio Code and its Insiders edition.

Source: the vendor's documentation of MCP servers.
"""

from __future__ import annotations

from rootsd.connect.base import ClientFacts, DescribedClient, EntryForm, SettingsPlace


def _edition(name: str, title: str, folder: str, program: str) -> DescribedClient:
    below = f"{folder}/User/mcp.json"
    return DescribedClient(
        ClientFacts(
            name=name,
            title=title,
            places=(
                SettingsPlace(f".config/{below}", macos=f"Library/Application Support/{below}"),
            ),
            keys=("servers",),
            form=EntryForm(fixed={"type": "stdio"}),
            programs=(program,),
            applies="at once; VS Code asks whether to start the server",
        )
    )


CLIENTS = (
    _edition("vscode", "VS Code", "Code", "code"),
    _edition("vscode-insiders", "VS Code Insiders", "Code - Insiders", "code-insiders"),
)
