"""Queue the folders that clients request, and propose them to the user without approving any.

An approval shows in the published set. Beside that an asker hears one thing: that the person, who
saw its name beside the folder, denied this folder while it waited. A wish is dropped without a
word where nothing is to be proposed, for instance in a place that can never be a root, below a
denied folder, or where a rule or a main checkout would approve what was proposed: a client must
not bring that about. Wishes are kept in memory: after a restart the folder still
waits for its decision, without the note. The note also goes when the session that asked ends.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

import anyio

from rootsd.core.catalog import Catalog
from rootsd.core.decide import is_denied_by_person
from rootsd.core.errors import Busy, RootsdError
from rootsd.core.inputs import Observation, ProjectObserved
from rootsd.core.labels import safe_label
from rootsd.core.model import SessionKey
from rootsd.core.throttle import TokenBucket
from rootsd.state.ledger import Ledger
from rootsd.wire.projects import RequestNote

log = logging.getLogger(__name__)

_PROBE_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class RootRequestLimits:
    """How much clients may ask for, all together."""

    burst: int = 20
    per_second: float = 1 / 3
    waiting: int = 32
    """How many of the folders they asked for may wait for a decision at a time."""


@dataclass(frozen=True, slots=True)
class RootRequest:
    """A folder that a client wants (canonical), what the client calls itself, why, and the session
    that it is wanted for; None where the client only has it open."""

    path: bytes
    asker: str
    reason: str
    session: SessionKey | None = None
    _denied: anyio.Event = field(default_factory=anyio.Event, compare=False)

    @property
    def is_denied(self) -> bool:
        """Whether the person has denied it, having been asked."""
        return self._denied.is_set()

    async def denial(self) -> None:
        """Wait until the person denies it; in most cases for ever."""
        await self._denied.wait()

    def deny(self) -> None:
        """Let the asker know."""
        self._denied.set()


class RunningSessions(Protocol):
    """The sessions that folders are asked for by."""

    async def hold(self, key: SessionKey) -> bool:
        """Watch the session from now on, and return whether it still runs."""

    def is_over(self, key: SessionKey) -> bool:
        """Return whether a session that was held has ended."""


def _ignore_request(wish: RootRequest) -> None:
    pass


class RootRequestQueue:
    """Takes wishes in, and proposes what may be proposed.

    `look` says what lies at a path and takes nothing into the catalog; `propose` does, and
    raises RootsdError where nothing can be seen. `clock` gives seconds that never go back.
    `heard` is told of each wish that comes to wait for the person, by whoever puts itself there.
    `sessions` knows which sessions still run.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        look: Callable[[bytes], Awaitable[Observation]],
        propose: Callable[[bytes], Awaitable[None]],
        sessions: RunningSessions,
        clock: Callable[[], float],
        bounds: RootRequestLimits | None = None,
    ) -> None:
        self._ledger = ledger
        self._look = look
        self._propose = propose
        self._sessions = sessions
        self._clock = clock
        self._bounds = bounds or RootRequestLimits()
        self.heard: Callable[[RootRequest], None] = _ignore_request
        self._allowance = TokenBucket(self._bounds.burst, self._bounds.per_second)
        self._wishes: dict[bytes, RootRequest] = {}
        self._inbox: deque[RootRequest] = deque()
        self._arrived = anyio.Event()

    def ask(self, wish: RootRequest) -> None:
        """Take a wish in. Raises Busy where too many came of late."""
        wait = self._allowance.wait(self._clock())
        if not wait and len(self._inbox) >= self._bounds.burst:
            wait = 1 / self._bounds.per_second
        if wait:
            raise Busy(f"too many folders were asked for; ask again in {ceil(wait)} seconds")
        self._inbox.append(wish)
        self._arrived.set()

    def note_on(self, path: bytes) -> str | None:
        """Who asked for the folder and why; None where no session that runs did."""
        wish = self._open_wish(path)
        if wish is None:
            return None
        note = f'{wish.asker} asks for it: "{wish.reason}"'
        return note if wish.session is None else RequestNote(note)

    def session_asking_for(self, path: bytes) -> SessionKey | None:
        """Return the session that asked for the folder; None where none that runs did."""
        wish = self._open_wish(path)
        return wish.session if wish else None

    async def carry_out(self) -> None:
        """Look after what is asked for, for as long as the daemon runs."""
        while True:
            await self._arrived.wait()
            self._arrived = anyio.Event()
            while self._inbox:
                await self._carry_out(self._inbox.popleft())

    async def follow_decisions(self) -> None:
        """Tell askers of denials and drop what was decided, for as long as the daemon runs."""
        catalog = self._ledger.catalog
        while True:
            catalog = await self._ledger.wait_for_change(catalog)
            self._drop_ended()
            for path, wish in tuple(self._wishes.items()):
                if _is_denied_by_person(path, catalog):
                    wish.deny()
                if path not in catalog.projects:
                    await self._propose_again(path)
                if not _is_pending(path, self._ledger.catalog):
                    del self._wishes[path]

    async def _propose_again(self, path: bytes) -> None:
        """Propose a folder that no parent proposes any more: the request for it is still open."""
        with suppress(RootsdError), anyio.move_on_after(_PROBE_TIMEOUT_S):
            await self._propose(path)

    async def _carry_out(self, wish: RootRequest) -> None:
        if not await self._is_waiting(wish.path):
            return
        if wish.session is not None and not await self._is_running(wish.session):
            return
        self._drop_ended()
        # Who asked first stays: what the person has read must not turn into something else.
        if wish.path in self._wishes or len(self._wishes) >= self._bounds.waiting:
            return
        self._wishes[wish.path] = wish
        shown = safe_label(wish.path, limit=None)
        log.info('%s asks for %s: "%s" (rootsd pending)', wish.asker, shown, wish.reason)
        self.heard(wish)

    async def _is_running(self, key: SessionKey) -> bool:
        """Return whether the session still runs, and watch it; False where that takes too long."""
        with anyio.move_on_after(_PROBE_TIMEOUT_S):
            return await self._sessions.hold(key)
        return False

    def _open_wish(self, path: bytes) -> RootRequest | None:
        wish = self._wishes.get(path)
        return None if wish is None or self._has_ended(wish) else wish

    def _has_ended(self, wish: RootRequest) -> bool:
        """Return whether the session that asked has ended, so that nobody waits for the answer."""
        return wish.session is not None and self._sessions.is_over(wish.session)

    def _drop_ended(self) -> None:
        ended = [path for path, wish in self._wishes.items() if self._has_ended(wish)]
        for path in ended:
            del self._wishes[path]

    async def _is_waiting(self, path: bytes) -> bool:
        """Whether the folder waits for a decision, proposed now if need be."""
        if path not in self._ledger.catalog.projects:
            if len(self._wishes) >= self._bounds.waiting or not await self._may_propose(path):
                return False
            try:
                await self._propose(path)
            except RootsdError as error:
                log.debug("nothing to propose: %s", error)
                return False
        return _is_pending(path, self._ledger.catalog)

    async def _may_propose(self, path: bytes) -> bool:
        """Whether a person would be asked about the folder, and nothing else would come of it."""
        before = self._ledger.catalog
        if before.places.why_no_root(path) is not None:
            return False
        with anyio.move_on_after(
            _PROBE_TIMEOUT_S
        ):  # a server that does not answer must not hold the next
            seen = await self._look(path)
            if not isinstance(seen, ProjectObserved):
                return False
            after = self._ledger.dry_run([seen]).catalog
            return _is_pending(path, after) and after.roots == before.roots
        return False


def _is_denied_by_person(path: bytes, catalog: Catalog) -> bool:
    """Whether a person denied this very folder; a rule or a folder above it is no answer."""
    project = catalog.projects.get(path)
    return project is not None and is_denied_by_person(project)


def _is_pending(path: bytes, catalog: Catalog) -> bool:
    project = catalog.projects.get(path)
    return project is not None and catalog.is_pending(project)
