"""Notify the person of pending projects: on the desktop, and at the next command.

A notice is information alone: it has no button that decides anything. New proposals are told of in
batches (core.pace); a folder that a client asks for at once, since the client waits.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import anyio
from anyio import to_thread

from rootsd.control.routes import Route, query_route
from rootsd.core.catalog import Catalog
from rootsd.core.labels import safe_label
from rootsd.core.throttle import NotificationDebouncer
from rootsd.mcp.sessions.requests import RootRequest
from rootsd.state.ledger import Ledger
from rootsd.system.desktop import DesktopUnavailable, send_notification
from rootsd.wire.daemon import NewProposals, NewProposalsQuery, RequestedFolder

log = logging.getLogger(__name__)

BATCH_S = 1.0
_MAX_REQUESTS = 8
ShowNotification = Callable[[str, str], Awaitable[None]]


async def show_on_desktop(summary: str, body: str) -> None:
    """A notice on the desktop. Raises NoDesktop."""
    await to_thread.run_sync(send_notification, summary, body, abandon_on_cancel=True)


class RequestFeed(Protocol):
    """What clients ask for, as `Asking` knows it."""

    on_pending: Callable[[RootRequest], None]

    def note_on(self, path: bytes) -> str | None:
        """Who asked for the folder and why; None where nobody did."""


class PendingNotifier:
    """What waits when this is made is not new. `clock` gives seconds that never go back."""

    def __init__(
        self,
        ledger: Ledger,
        asking: RequestFeed,
        *,
        clock: Callable[[], float],
        tell: ShowNotification = show_on_desktop,
        pace: NotificationDebouncer | None = None,
        gather: float = BATCH_S,
    ) -> None:
        self._ledger = ledger
        self._note_on = asking.note_on
        asking.on_pending = self.wanted
        self._clock = clock
        self._tell = tell
        self._pace = pace or NotificationDebouncer()
        self._gather = gather
        self._known = _pending_paths(ledger.catalog)
        self._untold: frozenset[bytes] = frozenset()
        self._wishes: list[str] = []
        self._stirred = anyio.Event()

    def wanted(self, wish: RootRequest) -> None:
        """A client asks for a folder, which waits for the person from now on."""
        self._wishes.append(f"{wish.client} asks for {safe_label(wish.path, limit=None)}")
        del self._wishes[:-_MAX_REQUESTS]
        self._stirred.set()

    def entries(self) -> Iterable[Route[Any]]:
        """What is answered here."""
        return (query_route(NewProposalsQuery, self.news),)

    async def news(self, _: NewProposalsQuery) -> NewProposals:
        """What came since a person looked or was told; it is no news afterwards."""
        catalog = self._ledger.catalog
        new = _pending_paths(catalog) - self._known
        wanted = [
            RequestedFolder(id=project.id, name=catalog.name_of(project), note=note)
            for project in (catalog.projects[path] for path in sorted(new))
            if (note := self._note_on(project.path))
        ]
        self._known = _pending_paths(catalog)
        self._untold = frozenset()
        self._pace.clear()
        return NewProposals(
            revision=self._ledger.revision, new=len(new) - len(wanted), wanted=wanted, warnings=[]
        )

    async def keep_telling(self) -> None:
        """Tell on the desktop, for as long as the daemon runs."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow)
            while True:
                due = self._pace.due()
                left = None if due is None else max(0.0, due - self._clock())
                with anyio.move_on_after(left):
                    await self._stirred.wait()
                self._stirred = anyio.Event()
                wishes, self._wishes = self._wishes, []
                for wish in wishes:
                    await self._show("A program asks for a folder", f"{wish}: rootsd pending")
                due = self._pace.due()
                if due is not None and due <= self._clock():
                    await self._tell_of_batch()

    async def _follow(self) -> None:
        """Note what comes to wait, a second after it came: a storm costs one look."""
        catalog = self._ledger.catalog
        seen = _pending_paths(catalog)
        while True:
            await self._ledger.wait_for_change(catalog)
            with anyio.move_on_after(self._gather):
                await anyio.Event().wait()
            catalog = self._ledger.catalog
            waiting = _pending_paths(catalog)
            fresh = {path for path in waiting - seen if self._note_on(path) is None}
            self._untold = (self._untold & waiting) | fresh
            if fresh:
                self._pace.add(self._clock())
                self._stirred.set()
            seen = waiting

    async def _tell_of_batch(self) -> None:
        count = len(self._untold)
        self._untold = frozenset()
        if not count:
            self._pace.clear()
        else:
            self._pace.mark_sent(self._clock())
            what = "1 new project waits" if count == 1 else f"{count} new projects wait"
            await self._show(what, "rootsd review")

    async def _show(self, summary: str, body: str) -> None:
        try:
            await self._tell(summary, body)
        except DesktopUnavailable as reason:
            log.info("no notice on the desktop: %s", reason)


def _pending_paths(catalog: Catalog) -> frozenset[bytes]:
    return frozenset(p.path for p in catalog.projects.values() if catalog.is_pending(p))
