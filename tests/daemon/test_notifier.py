"""What a person is told of, on the terminal and on the desktop."""

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
from support.decisions import identity, project
from support.fakes import SOURCES

HANG_GUARD = 30


class Screen:
    """Shows notices to whoever waits for them."""

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


class Scene:
    """A ledger with one project that waits, and somebody who is told of more."""

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


async def test_what_came_since_somebody_looked_is_news_once() -> None:
    scene = Scene()
    assert await scene.news() == (0, [])
    await scene.find(2)
    await scene.find(3)
    assert await scene.news() == (2, [])
    assert await scene.news() == (0, [])


async def test_what_a_client_asks_for_is_told_with_who_and_why() -> None:
    scene = Scene()
    path = await scene.find(2)
    scene.wishes.notes[path] = 'Goose asks for it: "to build"'
    await scene.find(3)
    assert await scene.news() == (1, ['Goose asks for it: "to build"'])


async def test_a_batch_is_shown_after_the_quiet_time_and_the_next_only_much_later() -> None:
    scene = Scene(NotificationDebouncer(quiet=0.0, apart=1_000.0))
    async with scene.telling():
        await scene.find(2)
        await scene.screen.until(1)
        await scene.find(3)
        await anyio.wait_all_tasks_blocked()
        assert scene.screen.shown == [("1 new project waits", "rootsd review")]
    assert (await scene.news())[0] == 2


async def test_before_the_quiet_time_is_over_nothing_is_shown() -> None:
    scene = Scene(NotificationDebouncer(quiet=1_000.0))
    async with scene.telling():
        await scene.find(2)
        await anyio.wait_all_tasks_blocked()
        assert scene.screen.shown == []


async def test_what_was_looked_at_meanwhile_is_not_shown() -> None:
    pace = NotificationDebouncer(quiet=1_000.0)
    scene = Scene(pace)
    async with scene.telling():
        await scene.find(2)
        await anyio.wait_all_tasks_blocked()
        assert pace.due() is not None
        await scene.news()
        assert pace.due() is None


async def test_a_client_that_asks_is_shown_at_once_and_in_no_batch() -> None:
    scene = Scene(NotificationDebouncer(quiet=1_000.0))
    async with scene.telling():
        path = await scene.find(2)
        scene.wishes.on_pending(RootRequest(path, "Goose", "to build"))
        await scene.screen.until(1)
    assert scene.screen.shown == [
        ("A program asks for a folder", f"Goose asks for {path.decode()}: rootsd pending")
    ]


async def test_without_a_desktop_it_goes_on() -> None:
    scene = Scene(NotificationDebouncer(quiet=0.0, apart=0.0))
    scene.screen.trouble = DesktopUnavailable("no bus")
    async with scene.telling():
        await scene.find(2)
        await scene.screen.until(1)
        await scene.find(3)
        await scene.screen.until(2)
