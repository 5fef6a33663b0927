"""The sender of responses: order, open requests, and cancellation."""

from __future__ import annotations

import anyio
import pytest
from mcp_types import JSONRPCNotification, JSONRPCResponse

from rootsd.mcp.responses import ResponseSender
from support.mcp_harness import HANG_GUARD_S, no_wait


def answer(id_: int | str) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=id_, result={})


class Lines:
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def take(self, line: bytes) -> None:
        self.sent.append(line)


async def test_an_id_is_open_until_just_before_its_answer_leaves() -> None:
    left: list[tuple[bytes, bool]] = []

    async def take(line: bytes) -> None:
        left.append((line, sender.is_open(0)))

    sender = ResponseSender(take, no_wait)
    await sender.open(0)
    assert sender.is_open(0)
    assert not sender.is_open("0")
    await sender.send(answer(0))
    assert left == [(b'{"jsonrpc":"2.0","id":0,"result":{}}\n', False)]
    await sender.all_answered()


async def test_an_answer_waits_for_its_turn() -> None:
    lines = Lines()
    turn = anyio.Event()
    sender = ResponseSender(lines.take, turn.wait)
    await sender.open(1)
    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(sender.send, answer(1))
            await anyio.wait_all_tasks_blocked()
            assert lines.sent == []
            turn.set()
    assert len(lines.sent) == 1


async def test_too_many_open_requests_wait_for_an_answer() -> None:
    sender = ResponseSender(Lines().take, no_wait)
    for number in range(32):
        await sender.open(number)
    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(sender.open, 32)
            await anyio.wait_all_tasks_blocked()
            assert not sender.is_open(32)
            await sender.send(answer(0))
    assert sender.is_open(32)


async def test_no_request_is_accepted_while_an_answer_is_unread() -> None:
    may_leave = anyio.Event()
    begun: list[bytes] = []

    async def wait(line: bytes) -> None:
        begun.append(line)
        await may_leave.wait()

    sender = ResponseSender(wait, no_wait)
    await sender.open(1)
    await sender.open(2)
    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            for number in (1, 2):
                group.start_soon(sender.send, answer(number))
            group.start_soon(sender.open, 3)
            await anyio.wait_all_tasks_blocked()
            assert len(begun) == 1
            assert not sender.is_open(3)
            may_leave.set()
    assert len(begun) == 2
    assert sender.is_open(3)


@pytest.mark.parametrize(("opened", "cancelled"), [(7, 7), (7, "7"), ("7", 7), ("x", "x")])
async def test_the_work_on_a_canceled_request_ends_without_an_answer(
    opened: int | str, cancelled: int | str
) -> None:
    sender = ResponseSender(Lines().take, no_wait)
    scope = await sender.open(opened)
    await sender.cancel(cancelled)
    assert scope.cancel_called
    assert not sender.is_open(opened)
    with anyio.fail_after(HANG_GUARD_S):
        await sender.all_answered()
    await sender.cancel(cancelled)
    await sender.all_answered()


async def test_waiting_for_all_answers_ends_when_the_last_one_leaves() -> None:
    sender = ResponseSender(Lines().take, no_wait)
    await sender.open("a")
    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(sender.all_answered)
            await anyio.wait_all_tasks_blocked()
            await sender.send(answer("a"))


async def test_notifications_complete_no_request() -> None:
    lines = Lines()
    sender = ResponseSender(lines.take, no_wait)
    await sender.open(1)
    await sender.send(JSONRPCNotification(jsonrpc="2.0", method="m"))
    assert lines.sent == [b'{"jsonrpc":"2.0","method":"m"}\n']
    assert sender.is_open(1)


async def test_a_disconnected_peer_gets_no_answers() -> None:
    async def refuse(_: bytes) -> None:
        raise anyio.BrokenResourceError

    sender = ResponseSender(refuse, no_wait)
    await sender.open(7)
    await sender.send(answer(7))
    with anyio.fail_after(HANG_GUARD_S):
        await sender.all_answered()
