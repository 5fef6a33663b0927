"""The SDK's server object: one for each source, with any transport."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mcp import Client

import rootsd
from rootsd import __version__
from rootsd.mcp.server import build_server, handshake_options
from support.list_roots_output import listed
from support.mcp_harness import FakeSource, connected, root

# The modules of the SDK that it documents. All others may change in any release.
PUBLIC_MODULES = {"mcp", "mcp.server", "mcp.types"}


def _imported_modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_one_module_uses_internals_of_the_sdk() -> None:
    package = Path(rootsd.__file__).parent
    users = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        for module in _imported_modules(file)
        if module.split(".")[0] == "mcp" and module not in PUBLIC_MODULES
    }
    assert users == {"mcp/server.py"}


async def test_the_sdks_own_transports_can_serve_it() -> None:
    async with Client(build_server(FakeSource(root("/src/api")))) as client:
        assert listed(await client.call_tool("list_roots", {})) == {"api": "/src/api"}


def test_a_source_has_one_server() -> None:
    source = FakeSource()
    assert build_server(source) is build_server(source)
    assert build_server(source) is not build_server(FakeSource())


async def test_the_server_states_its_name_its_version_and_that_it_does_not_enforce() -> None:
    options = handshake_options(build_server(FakeSource()))
    assert (options.server_name, options.server_version) == ("rootsd", __version__)
    async with connected(FakeSource()) as peer:
        found = (await peer.ask_2026("server/discover"))["result"]
    assert "does not enforce" in found["instructions"]
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "rootsd"
    assert found["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert found["capabilities"].keys() == {"tools", "resources", "completions"}
