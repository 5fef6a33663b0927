"""What the flood is played against for comparison: asyncio's own server, which caps nothing.

`naive_server.py SOCKET`; it says `ready`, and answers each line as a server of MCP would at first.
"""

from __future__ import annotations

import asyncio
import resource
import sys

# As many files as may be open, so that two hundred silent clients are too many; any number ends.
_DESCRIPTORS = 128
_ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"naive","version":"1"}}}\n'


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each line."""
    while await reader.readline():
        writer.write(_ANSWER)
        await writer.drain()


async def main(path: str) -> None:
    """Serve for ever."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, _DESCRIPTORS))
    server = await asyncio.start_unix_server(answer, path)
    print("ready", flush=True)  # noqa: T201
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
