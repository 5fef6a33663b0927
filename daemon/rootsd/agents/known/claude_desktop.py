"""Claude Desktop. It has no official build for Linux; the path there is that of others.

Source: the guide to local servers of the Model Context Protocol project.
"""

from __future__ import annotations

from rootsd.agents import forms

LABEL = "Claude Desktop"


def clients() -> tuple[forms.client.ClientFacts, ...]:
    """Return its configuration file."""
    file = "Claude/claude_desktop_config.json"
    return (
        forms.client.ClientFacts(
            name="claude-desktop",
            title=LABEL,
            places=(forms.place.in_config_home(file, f"Library/Application Support/{file}"),),
            keys=("mcpServers",),
            notes=("Quit Claude Desktop before you connect it.",),
        ),
    )
