"""Notify the person of pending projects, on the desktop and at the next command, and of changes.

A notification only informs: it has no button that decides anything. New projects are announced in
batches (see `rootsd.core.throttle`). A folder that a client asks for is announced at once, because
the client waits; after a few, requests are announced together, too. So are
files that run outside and that a program behind the wall has changed.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import anyio
from anyio.abc import TaskGroup

from rootsd.config.schema import NotifyTable
from rootsd.control.routes import Route, query_route
from rootsd.core.catalog import Catalog
from rootsd.core.labels import first_of, safe_label
from rootsd.core.model import Project, ProjectKind
from rootsd.core.throttle import NotificationDebouncer, TokenBucket
from rootsd.mcp.sessions.requests import RootRequest, RootRequestQueue
from rootsd.notify.notification import DesktopNotification, DesktopUnavailable
from rootsd.state.ledger import Ledger
from rootsd.wall.git.tool_files import RUN_BY_HOOKS
from rootsd.wire.scans import NewProposals, NewProposalsQuery

log = logging.getLogger(__name__)

BATCH_S = 1.0
_REQUESTS_AT_ONCE, _REQUEST_INTERVAL_S = 3, 300.0
_CHANGES_AT_ONCE, _CHANGE_INTERVAL_S = 3, 60.0
_HOOKS = {".git", *map(os.fsdecode, RUN_BY_HOOKS)}
_MAX_REQUESTS = 32
_MAX_CHANGES = 256
_MAX_LINES = 4
_MAX_NAMES = 3
_MAX_FOLDERS = 20
_NAME_LIMIT, _TEXT_LIMIT = 40, 120
ShowNotification = Callable[[DesktopNotification], Awaitable[None]]


class PendingNotifier:
    """Notifies the person of projects that become pending after it is made.

    `batch_s` is how long it gathers changes of the catalog.
    """

    def __init__(
        self,
        ledger: Ledger,
        root_requests: RootRequestQueue,
        *,
        settings: NotifyTable,
        show: ShowNotification,
        clock: Callable[[], float] = time.monotonic,
        debouncer: NotificationDebouncer | None = None,
        batch_s: float = BATCH_S,
    ) -> None:
        self._ledger = ledger
        self._note_on = root_requests.note_on
        root_requests.on_pending = self.on_request
        self._settings = settings
        self._show_on_desktop = show
        self._clock = clock
        self._debouncer = debouncer or NotificationDebouncer()
        self._request_rate = TokenBucket(_REQUESTS_AT_ONCE, 1 / _REQUEST_INTERVAL_S)
        self._batch_s = batch_s
        self._known = _pending_paths(ledger.catalog)
        self._unannounced: frozenset[bytes] = frozenset()
        self._requests: dict[bytes, RootRequest] = {}
        self._changes: dict[str, dict[str, None]] = {}
        self._changes_due: float | None = None
        self._change_rate = TokenBucket(_CHANGES_AT_ONCE, 1 / _CHANGE_INTERVAL_S)
        self._wake = anyio.Event()

    def on_request(self, request: RootRequest) -> None:
        """Notify the person soon that a client asks for a folder."""
        if len(self._requests) < _MAX_REQUESTS:
            self._requests[request.path] = request
        self._wake.set()

    def on_changed(self, program: str, names: Sequence[str]) -> None:
        """Notify the person soon of changed files that run by themselves.

        `program` is the one behind the wall that changed them, or empty if nobody knows.
        """
        if program in self._changes or len(self._changes) < _MAX_REQUESTS:
            known = self._changes.setdefault(program, {})
            known.update(dict.fromkeys(names[: _MAX_CHANGES - len(known)]))
        if self._changes_due is None:  # git changes many at once
            self._changes_due = self._clock() + self._batch_s
        self._wake.set()

    def configure(self, settings: NotifyTable) -> None:
        """Follow these settings, and show what they do not hold back any more."""
        self._settings = settings
        self._wake.set()

    def routes(self) -> Iterable[Route[Any]]:
        """Return the routes of this handler."""
        return (query_route(NewProposalsQuery, self.new_proposals),)

    async def new_proposals(self, _: NewProposalsQuery) -> NewProposals:
        """Return what became pending since the last call, and mark it as seen."""
        catalog = self._ledger.catalog
        new = _pending_paths(catalog) - self._known
        wanted = {
            catalog.projects[path].id: str(note)
            for path in sorted(new)
            if (note := self._note_on(path))
        }
        self._known = _pending_paths(catalog)
        self._forget_all()
        return NewProposals(
            revision=self._ledger.revision,
            new=len(new) - len(wanted),
            wanted=wanted,
            warnings=[],
        )

    async def keep_reporting(self) -> None:
        """Show notifications on the desktop, as long as the daemon runs."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow)
            while True:
                with anyio.move_on_after(self._show_due(group)):
                    await self._wake.wait()
                self._wake = anyio.Event()

    def _show_due(self, group: TaskGroup) -> float | None:
        """Show what is due, and return the seconds until more is due, or None if nothing waits."""
        if not self._settings.enabled:
            self._forget_all()
            self._changes, self._changes_due = {}, None
        change_wait = self._show_changes(group)
        if not self._requests and not self._unannounced:
            self._debouncer.clear()
            return change_wait
        waits = [change_wait, self._show_requests(group), self._show_projects(group)]
        return min((wait for wait in waits if wait is not None), default=None)

    def _show_changes(self, group: TaskGroup) -> float | None:
        if not self._changes or self._changes_due is None:
            return None
        now = self._clock()
        if wait := max(0.0, self._changes_due - now) or self._change_rate.wait(now):
            return wait
        for program, names in self._changes.items():
            group.start_soon(self._show, _of_changes(program, sorted(names, key=_is_no_hook)))
        self._changes, self._changes_due = {}, None
        return None

    def _show_requests(self, group: TaskGroup) -> float | None:
        for path in [path for path in self._requests if self._note_on(path) is None]:
            del self._requests[path]
        if not self._requests:
            return None
        if wait := self._request_rate.wait(self._clock()):
            return wait
        group.start_soon(self._show, _of_requests([*self._requests.values()]))
        self._requests = {}
        return None

    def _show_projects(self, group: TaskGroup) -> float | None:
        due = self._debouncer.due()
        if due is None:
            return None
        if wait := max(0.0, due - self._clock()):
            return wait
        catalog = self._ledger.catalog
        pending = self._unannounced & _pending_paths(catalog)
        paths = [path for path in sorted(pending) if self._note_on(path) is None]
        self._unannounced = frozenset()
        if not paths:
            self._debouncer.clear()
            return None
        self._debouncer.mark_sent(self._clock())
        projects = [catalog.projects[path] for path in paths]
        names = [catalog.name_of(project) for project in projects[:_MAX_NAMES]]
        group.start_soon(self._show, _of_projects(projects, names))
        return None

    def _forget_all(self) -> None:
        self._requests = {}
        self._unannounced = frozenset()
        self._debouncer.clear()

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

    async def _show(self, notification: DesktopNotification) -> None:
        try:
            await self._show_on_desktop(notification)
        except DesktopUnavailable as reason:
            log.info("no notification on the desktop: %s", reason)


def _of_requests(requests: Sequence[RootRequest]) -> DesktopNotification:
    """Return the notification that clients ask for folders. All their texts are untrusted."""
    if len(requests) == 1:
        summary = "A program asks for a folder"
    else:
        summary = f"Programs ask for {len(requests)} folders"
    lines = [
        f"{safe_label(request.client, _NAME_LIMIT)} asks for "
        f'{safe_label(request.path, _TEXT_LIMIT)}: "{safe_label(request.reason, _TEXT_LIMIT)}"'
        for request in requests[:_MAX_LINES]
    ]
    if more := len(requests) - len(lines):
        lines.append(f"and {more} more")
    folders = _shown_together([request.path for request in requests])
    return DesktopNotification(summary, (*lines, "To decide: rootsd pending"), folders)


def _is_no_hook(name: str) -> bool:
    return _HOOKS.isdisjoint(name.split("/"))


def _of_changes(program: str, names: Sequence[str]) -> DesktopNotification:
    """Return the notification that files have changed, and name the program if it is known."""
    shown = first_of([safe_label(name, _TEXT_LIMIT) for name in names], _MAX_LINES)
    if not program:
        line = f"changed since you approved: {shown}; rootsd review --changed"
        return DesktopNotification("Files that run by themselves have changed", (line,))
    who = safe_label(program, _NAME_LIMIT)
    line = f"{who} changed files that tools outside run: {shown}; rootsd review --changed"
    return DesktopNotification("Files that run outside have changed", (line,))


def _of_projects(projects: Sequence[Project], names: Sequence[str]) -> DesktopNotification:
    """Return the notification of new projects. `names` has the names of the first ones."""
    count = len(projects)
    summary = "1 new project is pending" if count == 1 else f"{count} new projects are pending"
    shown = ", ".join(safe_label(name, _NAME_LIMIT) for name in names)
    if more := count - len(names):
        shown += f", and {more} more"
    paths = [each.path for each in projects if each.observed.kind is not ProjectKind.URI]
    where = os.path.dirname(paths[0]) if count == 1 and paths else _common_folder(paths)
    lines = (shown, f"in {safe_label(where, _TEXT_LIMIT)}") if where else (shown,)
    return DesktopNotification(
        summary, (*lines, "To decide: rootsd review"), _shown_together(paths)
    )


def _shown_together(paths: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the folders that the file manager shows: those in one folder, or else this folder.

    It opens a window for each folder that contains some of them, and there may be hundreds.
    """
    if len({os.path.dirname(path) for path in paths}) <= 1:
        return tuple(paths[:_MAX_FOLDERS])
    common = _common_folder(paths)
    return (common,) if common != b"/" else ()


def _common_folder(paths: Sequence[bytes]) -> bytes:
    """Return the deepest folder that holds all paths, or an empty path if there are none."""
    return os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else b""


def _pending_paths(catalog: Catalog) -> frozenset[bytes]:
    return frozenset(p.path for p in catalog.projects.values() if catalog.is_pending(p))
