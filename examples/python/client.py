"""An MCP client that passes the approved roots, and each change, to its server.

    python client.py COMMAND ARGS…

This starts the MCP server COMMAND, answers its `roots/list`, and prints the roots until Ctrl-C.
"""

import asyncio
import sys
import warnings

from mcp import Client, MCPDeprecationWarning
from mcp.client.stdio import StdioServerParameters

from rootsd.client import RootsdError, list_roots_callback, watch_roots

# MCP 2026-07-28 deprecates roots, but older servers still need them.
warnings.simplefilter("ignore", MCPDeprecationWarning)


async def main(command: str, *arguments: str) -> None:
    server = StdioServerParameters(command=command, args=list(arguments))
    async with Client(server, list_roots_callback=list_roots_callback) as client:
        print(f"connected, {client.protocol_version}", flush=True)
        async for roots in watch_roots(client="example"):
            print("roots:", *(root.name for root in roots), flush=True)
            if client.protocol_version < "2026-07-28":  # later revisions need no notification
                await client.send_roots_list_changed()


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except RootsdError as error:
        sys.exit(f"{error.message}; try: {error.remedy}")
