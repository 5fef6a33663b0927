"""Notifications over a real session bus, and clicks on them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from rootsd.notify.notification import DesktopNotification, DesktopUnavailable
from rootsd.notify.session_bus import SessionBusDesktop
from support.fake_desktop import NotificationServer, desktop, session_bus, spoof

pytestmark = pytest.mark.needs("dbus-daemon")
BUS = "DBUS_SESSION_BUS_ADDRESS"
HANG_GUARD = 30
PLAIN = DesktopNotification("2 new projects are pending", ("api, web", "rootsd review"))
FOLDERS = DesktopNotification("1 new project is pending", ("api",), (b"/src/a b", b"/src/\xff"))


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NotificationServer]:
    with desktop(tmp_path) as screen:
        monkeypatch.setenv(BUS, screen.address)
        yield screen


@asynccontextmanager
async def shown(
    screen: NotificationServer, notification: DesktopNotification, *, click_s: float = HANG_GUARD
) -> AsyncIterator[tuple[list[str], anyio.Event]]:
    """Show a notification; yield its actions, and an event that it is over."""
    is_over = anyio.Event()

    async def show() -> None:
        await SessionBusDesktop(click_s=click_s).show(notification)
        is_over.set()

    async with anyio.create_task_group() as group:
        group.start_soon(show)
        notice = await to_thread.run_sync(screen.notices.get, True, HANG_GUARD)
        with anyio.fail_after(HANG_GUARD):
            yield notice[5], is_over
            await is_over.wait()


async def test_a_notification_without_folders_has_no_action_and_no_markup_of_others(
    screen: NotificationServer,
) -> None:
    assert await SessionBusDesktop().describe() == "Fake Shell"
    await SessionBusDesktop().show(PLAIN)
    name, replaces, _, summary, body, actions, _, _ = screen.notices.get(timeout=HANG_GUARD)
    assert (name, replaces, actions) == ("rootsd", 0, [])
    assert (summary, body) == ("2 new projects are pending", "api, web\nrootsd review")
    hostile = ("a\x1b[2J", '<a href="x">api</a> & \u202e', "<b>\n")
    await SessionBusDesktop().show(DesktopNotification(hostile[0], hostile[1:]))
    summary, body = screen.next()
    assert summary.isprintable()
    first, second = body.split("\n")
    assert first.startswith('&lt;a href="x"&gt;api&lt;/a&gt; &amp; ')
    assert second.startswith("&lt;b&gt;")
    assert "\u202e" not in body


async def test_a_desktop_that_reads_no_markup_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with desktop(tmp_path, capabilities=["body"]) as screen:
        monkeypatch.setenv(BUS, screen.address)
        await SessionBusDesktop().show(DesktopNotification("a", ("x & <y>",), (b"/src",)))
        assert screen.notices.get(timeout=HANG_GUARD)[4:6] == ("x & <y>", [])


@pytest.mark.parametrize("key", ["default", "open"])
async def test_a_click_selects_the_folders_in_the_file_manager(
    screen: NotificationServer, key: str
) -> None:
    async with shown(screen, FOLDERS) as (actions, _):
        assert actions == ["default", "Open", "open", "Open"]
        screen.emit("ActivationToken", "us", 1, "token-7")
        screen.emit("ActionInvoked", "us", 1, key)
    assert screen.opened.get(timeout=HANG_GUARD) == (
        ["file:///src/a%20b", "file:///src/%FF"], "token-7",
    )  # fmt: skip


async def test_only_a_well_formed_click_of_the_desktop_on_this_notification_opens_anything(
    screen: NotificationServer,
) -> None:
    async with shown(screen, FOLDERS) as (_, is_over):
        screen.emit("ActionInvoked", "us", 2, "open")
        await to_thread.run_sync(spoof, screen.address, "ActionInvoked", "us", 1, "open")
        screen.emit("ActionInvoked", "s", "open")
        screen.emit("ActionInvoked", "ss", "1", "open")
        assert not is_over.is_set()
        screen.emit("NotificationClosed", "uu", 1, 2)
    assert screen.opened.empty()


async def test_a_click_has_no_effect_after_a_while(screen: NotificationServer) -> None:
    async with shown(screen, FOLDERS, click_s=0.0) as (actions, _):
        assert actions != []
    assert screen.opened.empty()


async def test_the_end_of_the_bus_ends_the_wait_for_a_click_without_an_error(
    screen: NotificationServer, tmp_path: Path
) -> None:
    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = screen.address.partition("=")[2]
        from_bus, to_bus = await asyncio.open_unix_connection(path)

        async def pump() -> None:
            while data := await reader.read(1 << 16):
                to_bus.write(data)

        async with anyio.create_task_group() as group:
            group.start_soon(pump)
            data = b""
            while b"LastSignal" not in data:
                data = await from_bus.read(1 << 16)
                writer.write(data)
            group.cancel_scope.cancel()
        to_bus.close()
        writer.close()

    server = await asyncio.start_unix_server(relay, tmp_path / "relay")
    ours = SessionBusDesktop(f"unix:path={tmp_path}/relay", click_s=0.5)
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(ours.show, FOLDERS)
            await to_thread.run_sync(screen.notices.get, True, HANG_GUARD)
            screen.emit("LastSignal", "")
    server.close()


async def test_a_bus_without_a_notification_server_is_not_a_desktop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session_bus(tmp_path) as address:
        monkeypatch.setenv(BUS, address)
        with pytest.raises(DesktopUnavailable):
            await SessionBusDesktop().show(PLAIN)
        with pytest.raises(DesktopUnavailable):
            await SessionBusDesktop().describe()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("unix:path=/nowhere/bus", r"^No such file or directory$"),
        ("tcp:host=localhost", "."),
        ("nonsense", "."),
    ],
)
async def test_without_a_bus_there_is_no_desktop(
    monkeypatch: pytest.MonkeyPatch, address: str, reason: str
) -> None:
    monkeypatch.setenv(BUS, address)
    with pytest.raises(DesktopUnavailable, match=reason):
        await SessionBusDesktop().show(PLAIN)


async def test_a_bus_that_hangs_up_or_answers_nonsense_is_not_a_desktop(tmp_path: Path) -> None:
    answers = [b"", b"NO\r\n", b"OK 1\r\nnonsense that is no message"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        writer.write(answers[0])
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, tmp_path / "bus")
    open_before = len(os.listdir("/proc/self/fd"))
    while answers:
        with pytest.raises(DesktopUnavailable), anyio.fail_after(HANG_GUARD):
            await SessionBusDesktop(f"unix:path={tmp_path}/bus").show(PLAIN)
        answers.pop(0)
    await anyio.lowlevel.checkpoint()
    assert len(os.listdir("/proc/self/fd")) <= open_before + 1
    server.close()
