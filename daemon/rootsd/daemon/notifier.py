"""Notify the person of pending projects: on the desktop, and at the next command.

A notification only informs: it has no button that decides anything. New proposals are announced in
batches (see `rootsd.core.throttle`). A folder that a client asks for is announced at once, because
the client waits.
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
    """Show a notification on the desktop. Raises DesktopUnavailable."""
    await to_thread.run_sync(send_notification, summary, body, abandon_on_cancel=True)


class RequestFeed(Protocol):
    """The requests of clients for folders: see `rootsd.mcp.sessions.requests`."""

    on_pending: Callable[[RootRequest], None]

    def note_on(self, path: bytes) -> str | None:
        """Return who asked for the folder and why, or None if nobody did."""


class PendingNotifier:
    """Notifies the person of projects that become pending after it is made.

    `clock` returns monotonic seconds. `batch_s` is how long it gathers changes of the catalog.
    """

    def __init__(
        self,
        ledger: Ledger,
        root_requests: RequestFeed,
        *,
        clock: Callable[[], float],
        show: ShowNotification = show_on_desktop,
        debouncer: NotificationDebouncer | None = None,
        batch_s: float = BATCH_S,
    ) -> None:
        self._ledger = ledger
        self._note_on = root_requests.note_on
        root_requests.on_pending = self.on_request
        self._clock = clock
        self._show_on_desktop = show
        self._debouncer = debouncer or NotificationDebouncer()
        self._batch_s = batch_s
        self._known = _pending_paths(ledger.catalog)
        self._unannounced: frozenset[bytes] = frozenset()
        self._requests: list[str] = []
        self._wake = anyio.Event()

    def on_request(self, request: RootRequest) -> None:
        """Notify the person soon that a client asks for a folder."""
        self._requests.append(f"{request.client} asks for {safe_label(request.path, limit=None)}")
        del self._requests[:-_MAX_REQUESTS]
        self._wake.set()

    def routes(self) -> Iterable[Route[Any]]:
        """Return the routes of this handler."""
        return (query_route(NewProposalsQuery, self.new_proposals),)

    async def new_proposals(self, _: NewProposalsQuery) -> NewProposals:
        """Return what became pending since the last call, and mark it as seen."""
        catalog = self._ledger.catalog
        new = _pending_paths(catalog) - self._known
        wanted = [
            RequestedFolder(id=project.id, name=catalog.name_of(project), note=note)
            for project in (catalog.projects[path] for path in sorted(new))
            if (note := self._note_on(project.path))
        ]
        self._known = _pending_paths(catalog)
        self._unannounced = frozenset()
        self._debouncer.clear()
        return NewProposals(
            revision=self._ledger.revision, new=len(new) - len(wanted), wanted=wanted, warnings=[]
        )

    async def keep_reporting(self) -> None:
        """Show notifications on the desktop, as long as the daemon runs."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow)
            while True:
                due = self._debouncer.due()
                left = None if due is None else max(0.0, due - self._clock())
                with anyio.move_on_after(left):
                    await self._wake.wait()
                self._wake = anyio.Event()
                requests, self._requests = self._requests, []
                for request in requests:
                    await self._show("A program asks for a folder", f"{request}: rootsd pending")
                due = self._debouncer.due()
                if due is not None and due <= self._clock():
                    await self._show_batch()

    async def _follow(self) -> None:
        """Collect new pending projects, once per `batch_s`: many changes cost one comparison."""
        catalog = self._ledger.catalog
        seen = _pending_paths(catalog)
        while True:
            await self._ledger.wait_for_change(catalog)
            with anyio.move_on_after(self._batch_s):
                await anyio.Event().wait()
            catalog = self._ledger.catalog
            pending = _pending_paths(catalog)
            fresh = {path for path in pending - seen if self._note_on(path) is None}
            self._unannounced = (self._unannounced & pending) | fresh
            if fresh:
                self._debouncer.add(self._clock())
                self._wake.set()
            seen = pending

    async def _show_batch(self) -> None:
        count = len(self._unannounced)
        self._unannounced = frozenset()
        if not count:
            self._debouncer.clear()
        else:
            self._debouncer.mark_sent(self._clock())
            what = (
                "1 new project is pending" if count == 1 else f"{count} new projects are pending"
            )
            await self._show(what, "rootsd review")

    async def _show(self, summary: str, body: str) -> None:
        try:
            await self._show_on_desktop(summary, body)
        except DesktopUnavailable as reason:
            log.info("no notification on the desktop: %s", reason)


def _pending_paths(catalog: Catalog) -> frozenset[bytes]:
    return frozenset(p.path for p in catalog.projects.values() if catalog.is_pending(p))
