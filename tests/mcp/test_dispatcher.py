"""The dispatch of requests to the SDK, and how results and errors leave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp.shared.exceptions import NoBackChannelError

from rootsd.mcp.responses import ResponseSender
from rootsd.mcp.server import SdkDispatcher, _DispatchContext, build_server
from rootsd.mcp.views import ConnectionView
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import ErrorResponse, Message, Notification, Request, Response
from support.bridges import META_2026
from support.mcp_harness import HANG_GUARD_S, FakeSource, no_wait
from support.recorded_session import RecordedObserver

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Peer:
    """Sends requests, and keeps the answers."""

    def __init__(self, calls: SdkDispatcher, sender: ResponseSender, told: list[Message]) -> None:
        self.calls = calls
        self.sender = sender
        self.told = told

    async def ask(self, request: Request) -> Message:
        """Return the last message once no answer is open."""
        assert not isinstance(request.params, list)
        await self.calls.dispatch(request, request.params)
        with anyio.fail_after(HANG_GUARD_S):
            await self.sender.all_answered()
        return self.told[-1]


@asynccontextmanager
async def peer(source: FakeSource) -> AsyncIterator[Peer]:
    told: list[Message] = []

    async def hear(line: bytes) -> None:
        message = jsonrpc.parse(line)
        assert isinstance(message, Response | ErrorResponse | Notification)
        told.append(message)

    sender = ResponseSender(hear, no_wait)
    async with anyio.create_task_group() as group:
        view = ConnectionView(source, RecordedObserver())
        yield Peer(SdkDispatcher(build_server(), view, group, sender), sender, told)
        group.cancel_scope.cancel()


async def test_a_message_right_after_initialize_finds_the_handshake_done() -> None:
    async with peer(FakeSource()) as client:
        await client.calls.dispatch(Request(1, "initialize", INITIALIZE), INITIALIZE)
        assert [type(message) for message in client.told] == [Response]
        assert await client.calls.initialized()
        assert isinstance(await client.ask(Request(2, "tools/list")), Response)


async def test_initialized_is_ignored_without_a_handshake() -> None:
    async with peer(FakeSource()) as client:
        await client.ask(Request(1, "server/discover", {"_meta": dict(META_2026)}))
        assert not await client.calls.initialized()


async def test_wrong_parameters_give_the_error_of_the_sdk() -> None:
    async with peer(FakeSource()) as client:
        await client.ask(Request(1, "initialize", INITIALIZE))
        answer = await client.ask(Request(2, "resources/read", {"uri": 7}))
    assert isinstance(answer, ErrorResponse)
    assert (answer.code, answer.data) == (jsonrpc.INVALID_PARAMS, "")


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
