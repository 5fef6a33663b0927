"""A program that serves the MCP server object over HTTP, by the SDK's own transport.

It prints its URL and serves until it is stopped. The roots are invented.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn

# As a program, it does not have the tests' folder on its path.
sys.path.insert(0, str(Path(__file__).parent.parent))

from support.mcp_harness import FakeSource, root, sdk_server


def main() -> None:
    """Serve until stopped."""
    source = FakeSource(root("/src/api", tags=("work",)), root("/src/web"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        app = sdk_server(source).streamable_http_app()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        server.run(sockets=[listening])


if __name__ == "__main__":
    main()
