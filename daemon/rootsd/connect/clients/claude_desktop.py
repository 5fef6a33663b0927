"""Claude Desktop. It has no official build for Linux; the path there is that of others.

Source: the guide to local servers of the Model Context Protocol project.
"""

from __future__ import annotations

from rootsd.agents.forms.place import in_config_home
from rootsd.connect.base import ClientFacts, DescribedClient

CLIENTS = (
    DescribedClient(
        ClientFacts(
            name="claude-desktop",
            title="Claude Desktop",
            places=(
                in_config_home(
                    "Claude/claude_desktop_config.json",
                    macos="Library/Application Support/Claude/claude_desktop_config.json",
                ),
            ),
            keys=("mcpServers",),
            notes=("Quit Claude Desktop before you connect it.",),
        )
    ),
)
