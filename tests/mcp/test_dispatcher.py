"""The dispatch of requests to the SDK, and how results and errors leave."""

from __future__ import annotations

import pytest
from mcp.shared.exceptions import NoBackChannelError

from rootsd.mcp.responses import ResponseSender
from rootsd.mcp.server import _DispatchContext
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import Notification
from support.mcp_harness import no_wait


async def test_progress_is_sent_to_requests_with_a_token() -> None:
    told: list[bytes] = []

    async def hear(line: bytes) -> None:
        told.append(line)

    sender = ResponseSender(hear, no_wait)
    await _DispatchContext(sender, 1, {}).progress(1.0)
    await _DispatchContext(sender, 1, {"_meta": {"progressToken": 0}}).progress(
        1.0, message="wait"
    )
    (line,) = told
    said = {"progressToken": 0, "progress": 1.0, "message": "wait"}
    assert jsonrpc.parse(line) == Notification("notifications/progress", said)


async def test_no_handler_can_send_a_request_to_the_client() -> None:
    call = _DispatchContext(ResponseSender(_nowhere, no_wait))
    with pytest.raises(NoBackChannelError):
        await call.send_raw_request("roots/list", None)


async def _nowhere(_: bytes) -> None:
    pass
