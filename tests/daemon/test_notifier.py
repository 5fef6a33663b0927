"""Notifications for a person, on the terminal and on the desktop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import ProjectKind
from rootsd.core.throttle import NotificationDebouncer
from rootsd.daemon.notifier import PendingNotifier
from rootsd.mcp.sessions.requests import RootRequest
from rootsd.system.desktop import DesktopUnavailable
from rootsd.wire.daemon import NewProposalsQuery
from support.control_harness import ControlHarness, FakeRequestFeed
from support.ledger_harness import SOURCES
from support.sample_decisions import identity, project

HANG_GUARD = 30


class Screen:
    """Records notifications and lets a test wait for them."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []
        self.trouble: DesktopUnavailable | None = None
        self._news = anyio.Event()

    async def show(self, summary: str, body: str) -> None:
        self.shown.append((summary, body))
        self._news.set()
        self._news = anyio.Event()
        if self.trouble:
            raise self.trouble

    async def until(self, count: int) -> None:
        with anyio.fail_after(HANG_GUARD):
            while len(self.shown) < count:
                await self._news.wait()


class NotifierHarness:
    """A ledger with one pending project, and a notifier."""

    def __init__(self, pace: NotificationDebouncer | None = None) -> None:
        self.control = ControlHarness(project(1))
        self.screen = Screen()
        self.now = 0.0
        self.wishes = FakeRequestFeed()
        self.notifier = PendingNotifier(
            self.control.world.ledger, self.wishes, clock=lambda: self.now,
            show=self.screen.show, debouncer=pace, batch_s=0.0,
        )  # fmt: skip

    async def find(self, number: int) -> bytes:
        path = SOURCES + b"/p%d" % number
        seen = ProjectObserved(path, ProjectKind.GIT, identity(number))
        await self.control.world.ledger.observe([seen])
        return path

    async def news(self) -> tuple[int, list[str]]:
        news = await self.notifier.new_proposals(NewProposalsQuery())
        return news["new"], [wanted["note"] for wanted in news["wanted"]]

    @asynccontextmanager
    async def telling(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self.notifier.keep_reporting)
            await anyio.wait_all_tasks_blocked()
            yield
            group.cancel_scope.cancel()


async def test_new_proposals_since_the_last_look_are_reported_once() -> None:
    scene = NotifierHarness()
    assert await scene.news() == (0, [])
    await scene.find(2)
    await scene.find(3)
    assert await scene.news() == (2, [])
    assert await scene.news() == (0, [])


async def test_a_root_request_is_reported_with_client_and_reason() -> None:
    scene = NotifierHarness()
    path = await scene.find(2)
    scene.wishes.notes[path] = 'Goose asks for it: "to build"'
    await scene.find(3)
    assert await scene.news() == (1, ['Goose asks for it: "to build"'])


async def test_a_batch_is_shown_after_a_quiet_period_and_the_next_much_later() -> None:
    scene = NotifierHarness(NotificationDebouncer(quiet=0.0, apart=1_000.0))
    async with scene.telling():
        await scene.find(2)
        await scene.screen.until(1)
        await scene.find(3)
        await anyio.wait_all_tasks_blocked()
        assert scene.screen.shown == [("1 new project is pending", "rootsd review")]
    assert (await scene.news())[0] == 2


async def test_during_the_quiet_period_nothing_is_shown() -> None:
    scene = NotifierHarness(NotificationDebouncer(quiet=1_000.0))
    async with scene.telling():
        await scene.find(2)
        await anyio.wait_all_tasks_blocked()
        assert scene.screen.shown == []


async def test_proposals_seen_in_the_meantime_are_not_shown() -> None:
    pace = NotificationDebouncer(quiet=1_000.0)
    scene = NotifierHarness(pace)
    async with scene.telling():
        await scene.find(2)
        await anyio.wait_all_tasks_blocked()
        assert pace.due() is not None
        await scene.news()
        assert pace.due() is None


async def test_a_root_request_is_shown_at_once_and_not_in_a_batch() -> None:
    scene = NotifierHarness(NotificationDebouncer(quiet=1_000.0))
    async with scene.telling():
        path = await scene.find(2)
        scene.wishes.on_pending(RootRequest(path, "Goose", "to build"))
        await scene.screen.until(1)
    assert scene.screen.shown == [
        ("A program asks for a folder", f"Goose asks for {path.decode()}: rootsd pending")
    ]


async def test_without_a_desktop_it_continues() -> None:
    scene = NotifierHarness(NotificationDebouncer(quiet=0.0, apart=0.0))
    scene.screen.trouble = DesktopUnavailable("no bus")
    async with scene.telling():
        await scene.find(2)
        await scene.screen.until(1)
        await scene.find(3)
        await scene.screen.until(2)
