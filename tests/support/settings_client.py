"""An MCP client that starts the server of its settings file, and prints the roots that it gets.

    settings_client.py FILE

It needs only the SDK that rootsd brings, so it runs in an environment with the wheel alone.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def print_roots(server: dict[str, Any]) -> None:
    """Connect as a client of today does, and print the answer of the tool `list_roots`."""
    parameters = StdioServerParameters(
        command=server["command"], args=server["args"], env=server.get("env")
    )
    async with Client(parameters, mode="legacy") as client:
        told = await client.call_tool("list_roots", {})
        sys.stdout.writelines(f"{part.text}\n" for part in told.content if part.type == "text")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the SDK deprecates parts that its own legacy mode still uses
    anyio.run(print_roots, json.loads(Path(sys.argv[1]).read_text())["mcpServers"]["rootsd"])
