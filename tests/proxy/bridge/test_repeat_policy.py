"""The table of repeatable requests, compared with the server's own tool definitions."""

from __future__ import annotations

import pytest
from mcp_types import Tool

from rootsd.mcp.tools import all_tools
from rootsd.proxy.bridge.session import DAEMON_POLICY
from rootsd.wire.jsonrpc import Request


@pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)
def test_a_tool_is_repeatable_if_its_definition_says_so(tool: Tool) -> None:
    request = Request(1, "tools/call", {"name": tool.name})
    assert tool.annotations
    assert DAEMON_POLICY.allows(request) == tool.annotations.idempotent_hint


@pytest.mark.parametrize(
    "request_",
    [
        Request(1, "tools/call", {"name": "from_the_future"}),
        Request(1, "tools/call", None),
        Request(1, "tools/call", {"name": 7}),
        Request(1, "unheard/of"),
    ],
)
def test_unknown_requests_are_not_repeated(request_: Request) -> None:
    assert not DAEMON_POLICY.allows(request_)
