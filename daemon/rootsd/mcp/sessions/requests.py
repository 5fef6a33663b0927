"""Queue the folders that clients request, and propose them to the user without approving any.

A client learns only two things. An approved folder appears in the published set. And if the user
denies the folder while the client waits, the client's call says so.

A request is dropped silently in three cases: for a place that can never be a root, for a folder
below a denied one, and for a folder that a rule or a main checkout would approve. The last is
necessary because a client must not cause an approval.

Requests are kept in memory. After a restart of the daemon the folder is still pending, but without
the note about its client. The note also disappears when the session of the client ends.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import ceil
from typing import Protocol

import anyio
from msgspec import Struct

from rootsd.core.catalog import Catalog
from rootsd.core.decide import is_denied_by_person
from rootsd.core.errors import Busy, RootsdError
from rootsd.core.inputs import Observation, ProjectObserved
from rootsd.core.labels import safe_label
from rootsd.core.model import SessionKey
from rootsd.core.throttle import TokenBucket
from rootsd.state.ledger import Ledger
from rootsd.system.change_signal import ChangeSignal
from rootsd.wire.projects import RequestNote

log = logging.getLogger(__name__)

_PROBE_TIMEOUT_S = 5.0


class RootRequestLimits(Struct, frozen=True):
    """How many folders all clients together may request."""

    burst: int = 20
    per_second: float = 1 / 3
    max_pending: int = 32
    """How many requested folders may be pending at a time."""


@dataclasses.dataclass(frozen=True, slots=True)
class RootRequest:
    """A client's request for the folder at `path` (canonical).

    `client` is the client's name for itself. `session` is the session that needs the folder, or
    None if the client only has it open.
    """

    path: bytes
    client: str
    reason: str
    session: SessionKey | None = None
    _denied: anyio.Event = dataclasses.field(default_factory=anyio.Event, compare=False)

    @property
    def is_denied(self) -> bool:
        """Whether the user denied the folder after this request."""
        return self._denied.is_set()

    async def wait_denied(self) -> None:
        """Wait until the user denies the folder. This may never return."""
        await self._denied.wait()

    def deny(self) -> None:
        """Report the denial to the client that waits."""
        self._denied.set()


class RunningSessions(Protocol):
    """The sessions that request folders."""

    async def track(self, key: SessionKey) -> bool:
        """Watch the session from now on, and return whether it still runs."""

    def is_over(self, key: SessionKey) -> bool:
        """Return whether a tracked session has ended."""


def _ignore_request(request: RootRequest) -> None:
    pass


class RootRequestQueue:
    """Queues requests, and proposes the folders that may be proposed.

    `observe` reads a path and does not change the catalog. `propose` adds the path to the catalog,
    and raises RootsdError if there is no project. `clock` returns seconds that never go back.
    `sessions` knows which sessions still run. `on_pending` is called with each request that
    becomes pending. The notifier sets it. `changes` is notified of it, too.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        observe: Callable[[bytes], Awaitable[Observation]],
        propose: Callable[[bytes], Awaitable[None]],
        sessions: RunningSessions,
        clock: Callable[[], float],
        limits: RootRequestLimits | None = None,
        changes: ChangeSignal | None = None,
    ) -> None:
        self._ledger = ledger
        self._observe = observe
        self._propose = propose
        self._sessions = sessions
        self._clock = clock
        self._changes = changes or ChangeSignal()
        self._limits = limits or RootRequestLimits()
        self.on_pending: Callable[[RootRequest], None] = _ignore_request
        self._rate = TokenBucket(self._limits.burst, self._limits.per_second)
        self._pending: dict[bytes, RootRequest] = {}
        self._inbox: deque[RootRequest] = deque()
        self._arrived = anyio.Event()

    def submit(self, request: RootRequest) -> None:
        """Queue a request. Raises Busy after too many requests."""
        wait = self._rate.wait(self._clock())
        if not wait and len(self._inbox) >= self._limits.burst:
            wait = 1 / self._limits.per_second
        if wait:
            raise Busy(f"too many requests for folders; try again in {ceil(wait)} seconds")
        self._inbox.append(request)
        self._arrived.set()

    def note_on(self, path: bytes) -> str | None:
        """Return which client requested the folder and why, or None if its session has ended."""
        request = self._open_request(path)
        if request is None:
            return None
        note = f'{request.client} asks for it: "{request.reason}"'
        return note if request.session is None else RequestNote(note)

    def session_requesting(self, path: bytes) -> SessionKey | None:
        """Return the running session that requested the folder, or None."""
        request = self._open_request(path)
        return request.session if request else None

    async def process_queue(self) -> None:
        """Process queued requests for as long as the daemon runs."""
        while True:
            await self._arrived.wait()
            self._arrived = anyio.Event()
            while self._inbox:
                await self._process(self._inbox.popleft())

    async def follow_decisions(self) -> None:
        """Report denials and drop decided requests, for as long as the daemon runs."""
        catalog = self._ledger.catalog
        while True:
            catalog = await self._ledger.wait_for_change(catalog)
            self._drop_ended()
            for path, request in tuple(self._pending.items()):
                if _is_denied_by_person(path, catalog):
                    request.deny()
                if path not in catalog.projects:
                    await self._propose_again(path)
                if not _is_pending(path, self._ledger.catalog):
                    del self._pending[path]

    async def _propose_again(self, path: bytes) -> None:
        """Propose a folder that no parent proposes any more, but whose request is still open."""
        with suppress(RootsdError), anyio.move_on_after(_PROBE_TIMEOUT_S):
            await self._propose(path)

    async def _process(self, request: RootRequest) -> None:
        if not await self._is_or_becomes_pending(request.path):
            return
        if request.session is not None and not await self._is_running(request.session):
            return
        self._drop_ended()
        # Keep the first request, because the user may have read its note.
        if request.path in self._pending or len(self._pending) >= self._limits.max_pending:
            return
        self._pending[request.path] = request
        shown = safe_label(request.path, limit=None)
        log.info('%s asks for %s: "%s" (rootsd pending)', request.client, shown, request.reason)
        self.on_pending(request)
        self._changes.notify()

    async def _is_running(self, key: SessionKey) -> bool:
        """Track the session, and return whether it still runs; False after a timeout."""
        with anyio.move_on_after(_PROBE_TIMEOUT_S):
            return await self._sessions.track(key)
        return False

    def _open_request(self, path: bytes) -> RootRequest | None:
        request = self._pending.get(path)
        return None if request is None or self._has_ended(request) else request

    def _has_ended(self, request: RootRequest) -> bool:
        """Return whether the session has ended, so that no client waits for the answer."""
        return request.session is not None and self._sessions.is_over(request.session)

    def _drop_ended(self) -> None:
        ended = [path for path, request in self._pending.items() if self._has_ended(request)]
        for path in ended:
            del self._pending[path]

    async def _is_or_becomes_pending(self, path: bytes) -> bool:
        """Propose the folder if it is unknown, and return whether it is pending."""
        if path not in self._ledger.catalog.projects:
            if len(self._pending) >= self._limits.max_pending or not await self._may_propose(path):
                return False
            try:
                await self._propose(path)
            except RootsdError as error:
                log.debug("nothing to propose: %s", error)
                return False
        return _is_pending(path, self._ledger.catalog)

    async def _may_propose(self, path: bytes) -> bool:
        """Return whether the folder would become pending, without any approval."""
        before = self._ledger.catalog
        if before.places.why_no_root(path) is not None:
            return False
        # A file server that does not answer must not delay the next request.
        with anyio.move_on_after(_PROBE_TIMEOUT_S):
            seen = await self._observe(path)
            if not isinstance(seen, ProjectObserved):
                return False
            after = self._ledger.dry_run([seen]).catalog
            return _is_pending(path, after) and after.roots == before.roots
        return False


def _is_denied_by_person(path: bytes, catalog: Catalog) -> bool:
    """Return whether the user denied this very folder, not by a rule or a folder above it."""
    project = catalog.projects.get(path)
    return project is not None and is_denied_by_person(project)


def _is_pending(path: bytes, catalog: Catalog) -> bool:
    project = catalog.projects.get(path)
    return project is not None and catalog.is_pending(project)
