"""A server to compare with the daemon under a flood: asyncio's own, without limits.

Run `naive_server.py SOCKET`. It prints `ready`, and answers each line like an MCP server's first
answer.
"""

from __future__ import annotations

import asyncio
import resource
import sys

# The limit on open files, low enough that two hundred silent clients exceed it. Any limit can be
# exceeded.
_DESCRIPTORS = 128
_ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"naive","version":"1"}}}\n'


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each line."""
    while await reader.readline():
        writer.write(_ANSWER)
        await writer.drain()


async def main(path: str) -> None:
    """Serve forever."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, _DESCRIPTORS))
    server = await asyncio.start_unix_server(answer, path)
    print("ready", flush=True)  # noqa: T201
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
