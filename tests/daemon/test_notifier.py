"""Notifications for a person, on the terminal and on the desktop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from rootsd.config.schema import NotifyTable
from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import ProjectKind
from rootsd.core.throttle import NotificationDebouncer
from rootsd.daemon.notifier import PendingNotifier
from rootsd.mcp.sessions.requests import RootRequest
from rootsd.notify.notification import DesktopNotification, DesktopUnavailable
from rootsd.wire.scans import NewProposalsQuery
from support.control_harness import ControlHarness, FakeRequestFeed
from support.ledger_harness import SOURCES
from support.sample_decisions import identity, project

HANG_GUARD = 30


class Screen:
    """Records notifications and lets a test wait for them."""

    def __init__(self) -> None:
        self.shown: list[DesktopNotification] = []
        self.trouble: DesktopUnavailable | None = None
        self._news = anyio.Event()

    async def show(self, notification: DesktopNotification) -> None:
        self.shown.append(notification)
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
            self.control.world.ledger, self.wishes, settings=NotifyTable(),
            clock=lambda: self.now,
            show=self.screen.show, debouncer=pace, batch_s=0.0,
        )  # fmt: skip

    async def find(self, number: int) -> bytes:
        path = SOURCES + b"/p%d" % number
        seen = ProjectObserved(path, ProjectKind.GIT, identity(number))
        await self.control.world.ledger.observe([seen])
        return path

    async def ask(self, number: int, client: str = "Goose", reason: str = "to build") -> bytes:
        """Have a client ask for a project that is not known yet."""
        path = SOURCES + b"/p%d" % number
        self.wishes.notes[path] = f'{client} asks for it: "{reason}"'
        await self.find(number)
        self.wishes.on_pending(RootRequest(path, client, reason))
        return path

    async def news(self) -> tuple[int, list[str]]:
        news = await self.notifier.new_proposals(NewProposalsQuery())
        return news["new"], [*news["wanted"].values()]

    @asynccontextmanager
    async def telling(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self.notifier.keep_reporting)
            await anyio.wait_all_tasks_blocked()
            yield
            group.cancel_scope.cancel()


async def test_new_proposals_and_requests_since_the_last_look_are_reported_once() -> None:
    scene = NotifierHarness()
    assert await scene.news() == (0, [])
    await scene.find(2)
    path = await scene.find(3)
    scene.wishes.notes[path] = 'Goose asks for it: "to build"'
    assert await scene.news() == (1, ['Goose asks for it: "to build"'])
    assert (await scene.news())[0] == 0


async def test_a_batch_is_shown_after_a_quiet_period_and_the_next_much_later() -> None:
    scene = NotifierHarness(NotificationDebouncer(quiet=0.0, apart=1_000.0))
    async with scene.telling():
        await scene.find(2)
        await scene.screen.until(1)
        await scene.find(3)
        await anyio.wait_all_tasks_blocked()
        assert scene.screen.shown == [
            DesktopNotification(
                "1 new project is pending",
                ("p2", f"in {SOURCES.decode()}", "To decide: rootsd review"),
                (SOURCES + b"/p2",),
            )
        ]
    assert (await scene.news())[0] == 2


async def test_proposals_seen_during_the_quiet_period_are_not_shown() -> None:
    pace = NotificationDebouncer(quiet=1_000.0)
    scene = NotifierHarness(pace)
    async with scene.telling():
        await scene.find(2)
        await anyio.wait_all_tasks_blocked()
        assert (scene.screen.shown, pace.due() is None) == ([], False)
        await scene.news()
        assert pace.due() is None


async def test_a_scan_that_finds_200_projects_is_one_notification() -> None:
    scene = NotifierHarness(NotificationDebouncer(quiet=0.0, apart=1_000.0))
    numbers = range(2, 202)
    seen = [
        ProjectObserved(SOURCES + b"/%d/p%d" % (number % 3, number), ProjectKind.GIT,
                        identity(number))
        for number in numbers
    ]  # fmt: skip
    async with scene.telling():
        await scene.control.world.ledger.observe(seen)
        await scene.screen.until(1)
        await anyio.wait_all_tasks_blocked()
    (shown,) = scene.screen.shown
    assert shown.summary == "200 new projects are pending"
    assert shown.lines[0].endswith(", and 197 more")
    assert shown.folders == (SOURCES,)  # one window of the file manager, not one for each folder


async def test_a_root_request_is_shown_at_once_and_not_in_a_batch() -> None:
    scene = NotifierHarness(NotificationDebouncer(quiet=1_000.0))
    async with scene.telling():
        path = await scene.ask(2)
        await scene.screen.until(1)
    text = f'Goose asks for {path.decode()}: "to build"'
    assert scene.screen.shown == [
        DesktopNotification(
            "A program asks for a folder", (text, "To decide: rootsd pending"), (path,)
        )
    ]


async def test_after_three_requests_the_next_are_shown_together() -> None:
    scene = NotifierHarness()
    async with scene.telling():
        for number in range(2, 5):
            await scene.ask(number)
            await scene.screen.until(number - 1)
        for number in range(5, 12):
            await scene.ask(number)
        await anyio.wait_all_tasks_blocked()
        assert len(scene.screen.shown) == 3
        scene.now += 300.0
        await scene.find(12)
        await scene.screen.until(4)
    last = scene.screen.shown[-1]
    assert last.summary == "Programs ask for 7 folders"
    assert last.lines[-2:] == ("and 3 more", "To decide: rootsd pending")


async def test_a_request_that_is_decided_or_over_is_not_shown() -> None:
    scene = NotifierHarness()
    async with scene.telling():
        for number in (2, 3, 4):  # more would be shown together, after some minutes
            await scene.ask(number)
            await scene.screen.until(number - 1)
        over, still = await scene.ask(5), await scene.ask(6)
        await anyio.wait_all_tasks_blocked()
        del scene.wishes.notes[over]
        scene.now += 300.0
        another = await scene.ask(7)
        await scene.screen.until(4)
    assert scene.screen.shown[-1].folders == (still, another)


async def test_notifications_that_are_off_are_not_shown_later() -> None:
    scene = NotifierHarness(NotificationDebouncer(quiet=0.0, apart=0.0))
    scene.notifier.configure(NotifyTable(enabled=False))
    async with scene.telling():
        await scene.ask(2)
        await scene.find(3)
        await anyio.wait_all_tasks_blocked()
        scene.notifier.configure(NotifyTable())
        await scene.find(4)
        await scene.screen.until(1)
    assert [shown.summary for shown in scene.screen.shown] == ["1 new project is pending"]
    assert await scene.news() == (2, ['Goose asks for it: "to build"'])


async def test_names_and_texts_of_others_are_cut_and_harmless() -> None:
    scene = NotifierHarness()
    async with scene.telling():
        await scene.ask(2, "\x1b[2J\n" + "x" * 1_000, "\u202e" * 1_000)
        await scene.screen.until(1)
    (shown,) = scene.screen.shown
    assert all(line.isprintable() and len(line) < 400 for line in shown.lines)


async def test_without_a_desktop_it_continues() -> None:
    scene = NotifierHarness(NotificationDebouncer(quiet=0.0, apart=0.0))
    scene.screen.trouble = DesktopUnavailable("no bus")
    async with scene.telling():
        await scene.find(2)
        await scene.screen.until(1)
        await scene.find(3)
        await scene.screen.until(2)


async def test_changed_files_are_shown_at_once_and_later_ones_together() -> None:
    scene = NotifierHarness()
    async with scene.telling():
        for number in range(5):
            scene.notifier.on_changed("claude", [f"web/.envrc{number}", "web/\x1b[2J/.husky"])
            await anyio.wait_all_tasks_blocked()
        lines = [line for each in scene.screen.shown for line in each.lines]
        assert lines[0] == (
            "claude changed files that tools outside run: web/\\u{1b}[2J/.husky, web/.envrc0;"
            " rootsd review --changed"
        )
        assert len(lines) == 3
        scene.now += 60
        scene.notifier.on_changed("codex", [f"{number}" for number in range(9)])
        await scene.screen.until(5)
    last = {each.lines[0] for each in scene.screen.shown[3:]}
    assert last == {
        "claude changed files that tools outside run: web/\\u{1b}[2J/.husky, web/.envrc3,"
        " web/.envrc4; rootsd review --changed",
        "codex changed files that tools outside run: 0, 1, 2, 3 and 5 more;"
        " rootsd review --changed",
    }


async def test_files_that_nobody_is_known_to_have_changed_are_shown_by_their_project() -> None:
    scene = NotifierHarness()
    async with scene.telling():
        scene.notifier.on_changed("", ["api/.mcp.json", "web/\x1b[2J"])
        await scene.screen.until(1)
    (line,) = scene.screen.shown[0].lines
    assert line == (
        "changed since you approved: api/.mcp.json, web/\\u{1b}[2J; rootsd review --changed"
    )


async def test_without_notifications_changed_files_are_not_shown_later() -> None:
    scene = NotifierHarness()
    async with scene.telling():
        scene.notifier.configure(NotifyTable(enabled=False))
        scene.notifier.on_changed("claude", ["web/.envrc"])
        await anyio.wait_all_tasks_blocked()
        scene.notifier.configure(NotifyTable())
        await anyio.wait_all_tasks_blocked()
        assert scene.screen.shown == []
