"""What may be asked twice: the list here against what the server says of itself."""

from __future__ import annotations

import pytest
from mcp_types import Tool

from rootsd.mcp.tools import TOOLS
from rootsd.proxy.bridge.pending import ReplayRole, replay_role_of
from rootsd.wire.jsonrpc import Request


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_may_be_called_again_if_it_says_so_itself(tool: Tool) -> None:
    role = replay_role_of(Request(1, "tools/call", {"name": tool.name}))
    assert tool.annotations
    assert (role is ReplayRole.REPEAT) == tool.annotations.idempotent_hint


@pytest.mark.parametrize(
    "request_",
    [
        Request(1, "tools/call", {"name": "from_the_future"}),
        Request(1, "tools/call", None),
        Request(1, "tools/call", {"name": 7}),
        Request(1, "unheard/of"),
    ],
)
def test_what_is_not_known_may_not_be_asked_again(request_: Request) -> None:
    assert replay_role_of(request_) is ReplayRole.ONCE
