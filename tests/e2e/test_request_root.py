"""A client requests a folder, with real processes: the person is notified and decides, and the
client gets the answer.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from support.fake_desktop import desktop
from support.person import HANG_GUARD, Person
from support.polling import until


def bridge_of(person: Person) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "rootsd", "bridge", "--client", "an agent"],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"], "HOME": str(person.home)},
    )


async def test_waiting_calls_get_the_decisions_and_later_calls_reveal_nothing(
    person: Person,
) -> None:
    person.rootsd("up", str(person.parent))
    told: dict[str, Any] = {}

    async def ask(name: str, wait: int = 120) -> None:
        path = str(person.home / name)
        arguments = {"path": path, "reason": "to fix it", "wait_seconds": wait}
        told[name] = (await client.call_tool("request_root", arguments)).structured_content

    def are_noted() -> bool:
        notes = [str(item["note"]) for item in person.items("pending")]
        said = ' (its own name: "an agent") asks for it: "to fix it"'
        return len(notes) == 2 and all(note.endswith(said) for note in notes)

    with anyio.fail_after(HANG_GUARD):
        async with Client(bridge_of(person)) as client:
            async with anyio.create_task_group() as group:
                for name in ("wanted", "refused"):
                    (person.home / name).mkdir()
                    group.start_soon(ask, name)
                # The folders are pending first, and the requests are noted a moment later.
                await to_thread.run_sync(until, are_noted)
                assert told == {}
                await to_thread.run_sync(person.rootsd, "approve", "wanted")
                await to_thread.run_sync(person.rootsd, "deny", "refused")
            assert told["wanted"]["approved"] is True
            assert told["wanted"]["root"]["path"] == str(person.home / "wanted")
            assert told["refused"]["denied"] is True
            await ask("refused", 0)
            await ask("no-such", 0)
            assert told["refused"] == told["no-such"]
            assert told["refused"]["denied"] is False
    [session] = await to_thread.run_sync(person.items, "sessions", "--history")
    assert session["client"] == "an agent"
    assert [each["gained"] for each in session["given"]] == [[], ["wanted"]]


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
