"""The server object over HTTP, by the SDK's own transport: a program, not a test.

It says the URL on standard output and serves until it is ended. The roots are made up.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn

# Started as a program: the folder of the tests is not on the path.
sys.path.insert(0, str(Path(__file__).parent.parent))

from rootsd.mcp.server import build_server
from support.publishing import FakeSource, root


def main() -> None:
    """See the module's text."""
    source = FakeSource(root("/src/api", tags=("work",)), root("/src/web"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        app = build_server(source).streamable_http_app()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        server.run(sockets=[listening])


if __name__ == "__main__":
    main()
