"""A client requests a folder, with real processes: the person is notified and decides, and the
client gets the answer.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from rootsd.link.connect import connect
from rootsd.places.runtime_dir import find_runtime_dir
from support.bridges import HANDSHAKE, request
from support.fake_desktop import desktop
from support.person import HANG_GUARD, Person
from support.polling import until


def bridge_of(person: Person) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "rootsd", "bridge", "--client", "an agent"],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"], "HOME": str(person.home)},
    )


async def test_a_denial_answers_the_waiting_call_and_later_calls_reveal_nothing(
    person: Person,
) -> None:
    person.rootsd("up", str(person.parent))
    (person.home / "wanted").mkdir()
    told: list[Any] = []
    answered = anyio.Event()

    async def ask(name: str, wait: int) -> None:
        arguments = {"path": str(person.home / name), "reason": "x", "wait_seconds": wait}
        told.append((await client.call_tool("request_root", arguments)).structured_content)
        answered.set()

    with anyio.fail_after(HANG_GUARD):
        async with Client(bridge_of(person)) as client, anyio.create_task_group() as group:
            group.start_soon(ask, "wanted", 120)
            await to_thread.run_sync(person.wait_until_listed, "wanted", "pending")
            assert told == []
            await to_thread.run_sync(person.rootsd, "deny", "wanted")
            await answered.wait()
            await ask("wanted", 0)
            await ask("no-such", 0)
    assert [answer["denied"] for answer in told] == [True, False, False]
    assert told[1] == told[2]


async def test_a_request_is_pending_at_once_and_an_approval_answers_the_waiting_call(
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

    def is_noted() -> bool:
        notes = [item["note"] for item in person.items("pending")]
        said = ' (its own name: "an agent") asks for it: "to fix it"'
        return len(notes) == 1 and str(notes[0]).endswith(said)

    with anyio.fail_after(HANG_GUARD):
        async with Client(bridge) as client, anyio.create_task_group() as group:
            group.start_soon(ask)
            # The folder is pending first, and the request is noted a moment later.
            await to_thread.run_sync(until, is_noted)
            assert answers == []
            await to_thread.run_sync(person.rootsd, "approve", "wanted")
    [answer] = answers
    assert answer["approved"] is True
    assert answer["root"]["path"] == str(wanted)
    [session] = await to_thread.run_sync(person.items, "sessions", "--history")
    assert session["client"] == "an agent"
    assert [each["gained"] for each in session["given"]] == [[], ["wanted"]]


def _shake_hands() -> socket.socket:
    channel = connect(find_runtime_dir().mcp_socket)
    channel.settimeout(HANG_GUARD)
    channel.sendall(HANDSHAKE)
    return channel


async def test_a_client_with_endless_requests_leaves_room_for_others(
    person: Person,
) -> None:
    person.rootsd("up", str(person.parent))
    (person.home / "wanted").mkdir()
    refused = 0
    with ExitStack() as stack:
        greedy = [stack.enter_context(_shake_hands()) for _ in range(8)]
        for number, channel in enumerate(greedy):
            for call in range(1, 6):
                wish = {"path": f"/tmp/{number}-{call}", "reason": "x", "wait_seconds": 0}
                about = {"name": "request_root", "arguments": wish}
                channel.sendall(request(call, "tools/call", about))
        for channel in greedy:
            with channel.makefile("rb") as lines:
                answers = [next(lines) for _ in range(6)]
            refused += sum(b"too many requests for folders" in line for line in answers)
        assert refused == 35, "five of forty are let through"
        with anyio.fail_after(HANG_GUARD):
            async with Client(bridge_of(person)) as client:
                arguments = {"path": str(person.home / "wanted"), "reason": "x"}
                answer = await client.call_tool("request_root", {**arguments, "wait_seconds": 0})
                assert not answer.is_error
                await to_thread.run_sync(person.wait_until_listed, "wanted", "pending")


@pytest.mark.needs("dbus-daemon")
async def test_a_confined_daemon_shows_a_request_on_the_desktop_at_once_and_opens_its_folder(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (person.home / "wanted").mkdir()
    with desktop(tmp_path) as screen:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", screen.address)
        await to_thread.run_sync(person.rootsd, "up", str(person.parent))
        async with Client(bridge_of(person)) as client:
            arguments = {"path": str(person.home / "wanted"), "reason": "x", "wait_seconds": 0}
            await client.call_tool("request_root", arguments)
            summary, body = await to_thread.run_sync(screen.next)
            screen.emit("ActionInvoked", "us", 1, "open")
            opened, _ = await to_thread.run_sync(screen.opened.get, True, HANG_GUARD)
        await to_thread.run_sync(person.rootsd, "down")
    assert summary == "A program asks for a folder"
    asks, command = body.split("\n")
    assert asks.endswith(f' asks for {person.home}/wanted: "x"')
    assert command == "To decide: rootsd pending"
    assert opened == [f"file://{person.home}/wanted"]
