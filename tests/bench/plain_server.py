"""The server that the bridge is compared with: an SDK server on stdio with the tools of rootsd.

`python tests/bench/plain_server.py PATH…` has the folders as its roots. It needs no daemon, no
socket, and no disk access: less than any real server with the same answers.
"""

from __future__ import annotations

import sys

import anyio
from mcp.server.stdio import stdio_server

from rootsd.mcp.server import handshake_options
from support.mcp_harness import FakeSource, root, sdk_server


async def main(paths: list[str]) -> None:
    server = sdk_server(FakeSource(*map(root, sorted(paths))))
    async with stdio_server() as (read, write):
        await server.run(read, write, handshake_options(server))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
