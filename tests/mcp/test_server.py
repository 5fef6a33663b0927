"""The SDK's server object: one for all connections, with any transport."""

from __future__ import annotations

from mcp import Client

from rootsd import __version__
from rootsd.mcp.server import build_server, handshake_options
from support.list_roots_output import listed
from support.mcp_harness import FakeSource, connected, root, sdk_server


async def test_the_sdks_own_transports_can_serve_it() -> None:
    async with Client(sdk_server(FakeSource(root("/src/api")))) as client:
        assert listed(await client.call_tool("list_roots", {})) == {"api": "/src/api"}


async def test_the_server_states_its_name_its_version_and_that_it_does_not_enforce() -> None:
    options = handshake_options(build_server())
    assert (options.server_name, options.server_version) == ("rootsd", __version__)
    async with connected(FakeSource()) as peer:
        found = (await peer.ask_2026("server/discover"))["result"]
    assert "does not enforce" in found["instructions"]
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "rootsd"
    assert found["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert found["capabilities"].keys() == {"tools", "resources", "completions"}
