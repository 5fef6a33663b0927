"""A client asks for a folder, with real processes: the person is told, decides, and it hears."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from support.person import HANG_GUARD, Person


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    yield person
    person.run("down")


def bridge_of(person: Person) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "rootsd", "bridge", "--client", "an agent"],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"], "HOME": str(person.home)},
    )


async def test_a_denial_answers_the_waiting_call_and_afterwards_nothing_is_learnt(
    person: Person,
) -> None:
    person.rootsd("up", str(person.parent))
    (person.home / "wanted").mkdir()
    told: list[Any] = []

    async def ask(name: str, wait: int) -> None:
        arguments = {"path": str(person.home / name), "reason": "x", "wait_seconds": wait}
        told.append((await client.call_tool("request_root", arguments)).structured_content)

    with anyio.fail_after(HANG_GUARD):
        async with Client(bridge_of(person)) as client, anyio.create_task_group() as group:
            group.start_soon(ask, "wanted", 120)
            await to_thread.run_sync(person.wait_until_listed, "wanted", "pending")
            assert told == []
            await to_thread.run_sync(person.rootsd, "deny", "wanted")
            while not told:
                await anyio.lowlevel.checkpoint()
            await ask("wanted", 0)
            await ask("no-such", 0)
    assert [answer["denied"] for answer in told] == [True, False, False]
    assert told[1] == told[2]


async def test_a_wish_is_pending_at_once_and_the_waiting_call_is_answered_by_the_approval(
    person: Person,
) -> None:
    person.rootsd("up", str(person.parent))
    wanted = person.home / "wanted"
    wanted.mkdir()
    bridge = bridge_of(person)
    answers: list[Any] = []

    async def ask() -> None:
        arguments = {"path": str(wanted), "reason": "to fix it", "wait_seconds": 120}
        answers.append((await client.call_tool("request_root", arguments)).structured_content)

    with anyio.fail_after(HANG_GUARD):
        async with Client(bridge) as client, anyio.create_task_group() as group:
            group.start_soon(ask)
            await to_thread.run_sync(person.wait_until_listed, "wanted", "pending")
            [item] = await to_thread.run_sync(person.items, "pending")
            assert item["note"] == 'an agent asks for it: "to fix it"'
            assert answers == []
            await to_thread.run_sync(person.rootsd, "approve", "wanted")
    [answer] = answers
    assert answer["approved"] is True
    assert answer["root"]["path"] == str(wanted)
    [session] = await to_thread.run_sync(person.items, "sessions", "--history")
    assert session["client"] == "an agent"
    assert [each["gained"] for each in session["given"]] == [[], ["wanted"]]
