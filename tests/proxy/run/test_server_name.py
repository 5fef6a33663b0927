"""Display names of servers."""

from __future__ import annotations

import pytest

from rootsd.proxy.run.command import server_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("mcp-server-git --repository /src", "mcp-server-git"),
        ("/usr/bin/mcp-server-git", "mcp-server-git"),
        ("npx -y @scope/server-files /secret", "@scope/server-files"),
        ("uvx mcp-server-git --token=x", "mcp-server-git"),
        ("uv tool run mcp-server-git", "mcp-server-git"),
        ("/usr/bin/python3 -m rootsd.x /y", "rootsd.x"),
        ("node /opt/server/index.js --key k", "server"),
        ("node /opt/server-files/dist/index.js /secret", "server-files"),
        ("python3 src/main.py", "main.py"),
        ("/opt/x/server", "server"),
        ("docker run -e TOKEN=x image", "docker"),
        ("npx", "npx"),
        ("/", "/"),
    ],
)  # fmt: skip
def test_a_server_name_contains_only_the_program(command: str, name: str) -> None:
    assert server_name(command.split()) == f"run: {name}"
