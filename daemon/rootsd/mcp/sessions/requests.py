"""Queue the folders that clients request, and propose them to the user without approving any.

A client learns only two things. An approved folder appears in the published set. And if the user
denies the folder while the client waits, the client's call says so.

A request is dropped silently in three cases: for a place that can never be a root, for a folder
below a denied one, and for a folder that a rule or a main checkout would approve. The last is
necessary because a client must not cause an approval.

Every session that requests a folder counts, and not only the first: otherwise a program could ask
for a folder before the agent that needs it, and get the approval. A request names the process that
the daemon saw. The name that a client gives itself is only a label beside it.

Requests are kept in memory, and each new one is an event in the audit log. After a restart of the
daemon, the folder is still pending, but without the note. After the end of a session, the note
says so, until the folder is decided.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

import anyio

from rootsd.core.catalog import Catalog
from rootsd.core.changes import AuditNote, ChangeVerb
from rootsd.core.decide import is_denied_by_person
from rootsd.core.errors import Busy, RootsdError
from rootsd.core.inputs import Observation, ProjectObserved
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, ActorKind, SessionKey
from rootsd.core.paths import contains
from rootsd.core.session_keys import handle_of
from rootsd.mcp.sessions.request_bounds import Asker, RequestBounds, RootRequestLimits
from rootsd.mcp.source import NO_NAME
from rootsd.state.change_signal import ChangeSignal
from rootsd.state.ledger import Ledger
from rootsd.wire.projects import RequestNote, SessionRequestItem

log = logging.getLogger(__name__)

_PROBE_TIMEOUT_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class RootRequest:
    """A client's request for the folder at `path` (canonical).

    `client` is the client's name for itself, and `process` the process that the daemon saw.
    `session` is the session that needs the folder, or None if the client only has it open. `wall`
    is as in an `Actor`.

    A `SessionRequestItem` is what a person sees of it.
    """

    path: bytes
    client: str
    reason: str
    session: SessionKey | None = None
    process: str = ""
    wall: int = 0
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

    @property
    def who(self) -> str:
        """The process that asks, and the client's own name if that says more."""
        process = self.process or (self.session.label if self.session else "")
        if not process:
            return self.client
        if self.client in _SAY_NOTHING or self.client == process:
            return process
        return f'{process} (its own name: "{self.client}")'

    @property
    def asker(self) -> tuple[str, ...]:
        """What is the same in two requests of one asker, whatever name it gives itself."""
        return (self.session.id,) if self.session else ("", self.process or self.client)


# The names that SDKs give to clients that do not name themselves.
_SAY_NOTHING = frozenset(("mcp", "mcp-client", NO_NAME))


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
        self._changes = changes or ChangeSignal()
        self._limits = limits or RootRequestLimits()
        self.on_pending: Callable[[RootRequest], None] = _ignore_request
        self._bounds = RequestBounds(self._limits, clock)
        self._pending: dict[bytes, list[RootRequest]] = {}
        self._ended: dict[bytes, RootRequest] = {}  # the last request for a folder, after its end
        self._inbox: deque[RootRequest] = deque()
        self._arrived = anyio.Event()

    def submit(self, request: RootRequest) -> None:
        """Queue a request. Raises Busy after too many requests."""
        if len(self._inbox) >= self._limits.burst:
            raise Busy("too many requests for folders; try again in a few seconds")
        self._bounds.admit(request.asker, request.path, partial(self._is_answered, request))
        self._inbox.append(request)
        self._arrived.set()

    def note_on(self, path: bytes) -> str | None:
        """Return which clients request the folder and why, or None if all sessions have ended."""
        requests = self._open_requests(path)
        if not requests:
            return None
        note = "; ".join(f'{each.who} asks for it: "{each.reason}"' for each in requests)
        items = tuple(_item(each, each.session) for each in requests if each.session is not None)
        return RequestNote.of(note, items) if items else note

    def last_note_on(self, path: bytes) -> str | None:
        """Return `note_on`, or which session asked last before it ended, or None if none did."""
        if (note := self.note_on(path)) is not None:
            return note
        waiting = self._pending.get(path, ())
        ended = waiting[-1] if waiting else self._ended.get(path)
        return (
            None if ended is None else f'{ended.who} asked for it, and has ended: "{ended.reason}"'
        )

    def sessions_requesting(self, path: bytes) -> tuple[SessionKey, ...]:
        """Return the running sessions that request the folder, the first one first."""
        keys = (request.session for request in self._open_requests(path))
        return tuple(key for key in keys if key is not None)

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
            for path, requests in tuple(self._pending.items()):
                if _is_denied_by_person(path, catalog):
                    for request in requests:
                        request.deny()
                if path not in catalog.projects:
                    await self._propose_again(path)
                if not _is_pending(path, self._ledger.catalog):
                    self._pending.pop(path, None)
            for path in [path for path in self._ended if not _is_pending(path, catalog)]:
                del self._ended[path]

    async def _propose_again(self, path: bytes) -> None:
        """Propose a folder that no parent proposes any more, but whose request is still open."""
        with suppress(RootsdError), anyio.move_on_after(_PROBE_TIMEOUT_S):
            await self._propose(path)

    async def _process(self, request: RootRequest) -> None:
        if not await self._is_or_becomes_pending(request):
            return
        if request.session is not None and not await self._is_running(request.session):
            return
        self._drop_ended()
        requests = self._pending.get(request.path, [])
        # Keep the first request of an asker, because the user may have read its note.
        if any(request.asker == known.asker for known in requests):
            return
        if len(requests) >= self._limits.max_askers:
            return
        if self._count_of(request.asker) >= self._limits.own_unanswered:
            return  # some of its requests are old, and it has made others since
        if not requests and self._is_full():
            if (other := self._giving_way_to(request)) is None:
                return
            del self._pending[other]
        self._pending[request.path] = [*requests, request]
        shown = safe_label(request.path, limit=None)
        log.info('%s asks for %s: "%s" (rootsd pending)', request.who, shown, request.reason)
        self.on_pending(request)
        self._changes.notify()
        await self._record(request, f'{shown}: "{request.reason}"')

    def _is_full(self) -> bool:
        return len(self._pending) >= self._limits.max_pending

    def _giving_way_to(self, request: RootRequest) -> bytes | None:
        """Return the folder whose request loses its place to a new one, or None if none does.

        It is the newest one of the asker with the most folders, if that has at least two more than
        the new one. So askers that flood the queue end with equal shares of it.
        """
        most, given = self._count_of(request.asker) + 1, None
        for path, requests in self._pending.items():
            if len(requests) == 1 and (count := self._count_of(requests[0].asker)) > most:
                most, given = count - 1, path
        return given

    def _count_of(self, asker: Asker) -> int:
        """Return how many pending folders `asker` requests."""
        return sum(
            any(each.asker == asker for each in requests) for requests in self._pending.values()
        )

    def _is_answered(self, request: RootRequest) -> bool:
        """Return whether the asker knows what a person decided about its request."""
        return request.is_denied or request.path in self._ledger.catalog.roots

    async def _record(self, request: RootRequest, what: str) -> None:
        """Keep the request in the audit log, if the disk takes it."""
        actor = Actor(ActorKind.CALLER, request.who, request.wall)
        try:
            await self._ledger.note(AuditNote(ChangeVerb.REQUESTED, what, actor))
        except RootsdError as error:
            log.warning("the request is not in the audit log: %s", error)

    async def _is_running(self, key: SessionKey) -> bool:
        """Track the session, and return whether it still runs; False after a timeout."""
        with anyio.move_on_after(_PROBE_TIMEOUT_S):
            return await self._sessions.track(key)
        return False

    def _open_requests(self, path: bytes) -> list[RootRequest]:
        return [each for each in self._pending.get(path, ()) if not self._has_ended(each)]

    def _has_ended(self, request: RootRequest) -> bool:
        """Return whether the session has ended, so that no client waits for the answer."""
        return request.session is not None and self._sessions.is_over(request.session)

    def _drop_ended(self) -> None:
        for path, requests in tuple(self._pending.items()):
            running = [request for request in requests if not self._has_ended(request)]
            if len(running) == len(requests):
                continue
            if running:
                self._pending[path] = running
                continue
            self._ended[path] = self._pending.pop(path)[-1]
            if len(self._ended) > self._limits.max_pending:
                del self._ended[next(iter(self._ended))]

    async def _is_or_becomes_pending(self, request: RootRequest) -> bool:
        """Propose the folder if it is unknown, and return whether it is pending."""
        path, catalog = request.path, self._ledger.catalog
        if path not in catalog.projects:
            # Nobody asked for this folder. A client that has the folder of all projects open would
            # have it proposed as one root, also if no root in it is in the scope of the session.
            if request.session is None and _holds_several(path, catalog):
                return False
            if self._is_full() and self._giving_way_to(request) is None:
                return False
            if not await self._may_propose(path):
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


def _holds_several(path: bytes, catalog: Catalog) -> bool:
    """Return whether a parent lies at or below `path`, or several known projects below it."""
    if any(contains(path, parent) for parent in catalog.decision_context.parents):
        return True
    return len(catalog.paths_below(path)) > 1


def _is_pending(path: bytes, catalog: Catalog) -> bool:
    project = catalog.projects.get(path)
    return project is not None and catalog.is_pending(project)


def _item(request: RootRequest, key: SessionKey) -> SessionRequestItem:
    return SessionRequestItem(
        session=handle_of(key), by=key.label, client=request.client, reason=request.reason
    )
