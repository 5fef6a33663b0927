"""Damaged messages on one connection: it stays open, answers in JSON-RPC, and affects no other
connection.
"""

from __future__ import annotations

import json
import logging
import random
from typing import Any

import anyio
import pytest

from rootsd.mcp.connection import DisconnectReason, PeerLimits
from rootsd.mcp.views import WaitLimits
from support.bridges import Message
from support.damaged_messages import damaged, message
from support.list_roots_output import listed
from support.mcp_harness import FakeSource, Peer, connected, root
from support.sizes import Sizes

LINES_PER_CONNECTION = 200
LIMITS = PeerLimits(wait_limits=WaitLimits(default_s=0))
API, WEB, NEW = root("/src/api"), root("/src/web"), root("/src/new")


def check_is_json_rpc(answer: Message) -> None:
    assert answer["jsonrpc"] == "2.0", answer
    match answer:
        case {"method": str(), **rest}:
            assert "id" not in rest
            assert rest.keys() <= {"jsonrpc", "params"}
        case {"id": int() | str(), "result": dict(), **rest}:
            assert rest == {"jsonrpc": "2.0"}
        case {"id": int() | str() | None, "error": {"code": int(), "message": str()}, **rest}:
            assert rest == {"jsonrpc": "2.0"}
            assert answer["error"].keys() <= {"code", "message", "data"}
        case _:
            raise AssertionError(f"no JSON-RPC: {answer}")


async def hear_checked(peer: Peer) -> Any:  # noqa: ANN401
    """Return the next line: a message, or the answers to a whole batch."""
    heard: Any = await peer.hear()
    for answer in heard if isinstance(heard, list) else (heard,):
        check_is_json_rpc(answer)
    return heard


async def hear_until(peer: Peer, id_: str) -> Message:
    """Return the answer with that id, after checking everything before it."""
    while True:
        answer = await hear_checked(peer)
        if isinstance(answer, dict) and answer.get("id") == id_:
            return answer


async def check_other_connection(neighbour: Peer, names: list[str], number: int) -> None:
    await neighbour.say("tools/call", {"name": "list_roots"}, id_=f"n{number}")
    answer: dict[str, Any] = await hear_until(neighbour, f"n{number}")
    assert list(listed(answer["result"])) == names


async def fuzz(source: FakeSource, seed: int, lines: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - to be repeatable is the point
    async with connected(source, limits=LIMITS) as neighbour:
        await neighbour.shake_hands()
        async with connected(source, limits=LIMITS) as peer:
            if chance.random() < 0.5:
                await peer.shake_hands()
            for number in range(lines):
                await peer.write(damaged(chance, message(chance, chance.choice([number, "s"]))))
                mark = f"mark {number}"
                await peer.say("roots/list", id_=mark)
                answer = await hear_until(peer, mark)
                assert "result" in answer, answer
                if number % 20 == 0:
                    source.publish(*((API, WEB, NEW) if number % 40 else (API, WEB)))
                    names = [each.name for each in (await source.current()).roots]
                    await check_other_connection(neighbour, names, number)
            await peer.stream.send_eof()
            with anyio.fail_after(60):
                try:
                    while True:
                        await hear_checked(peer)
                except anyio.EndOfStream:
                    pass
        assert peer.end is DisconnectReason.LEFT


async def test_damaged_lines_never_crash_it_and_never_reach_another_connection(
    sizes: Sizes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    lines = sizes.pick(test=500, check=10_000, soak=30_000)
    for seed in range(lines // LINES_PER_CONNECTION):
        try:
            await fuzz(FakeSource(API, WEB), seed, LINES_PER_CONNECTION)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        assert not caplog.records, f"seed {seed}: {caplog.text}"


def test_the_lines_vary_and_most_are_damaged_but_readable() -> None:
    chance = random.Random(1)  # noqa: S311
    lines = [damaged(chance, message(chance, 1)) for _ in range(1_000)]
    assert len(set(lines)) > 900
    readable = 0
    for line in lines:
        try:
            json.loads(line)
        except ValueError:
            continue
        readable += 1
    assert 300 < readable < 900
