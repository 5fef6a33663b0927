"""The roots source that reads the ledger, and resolves paths without blocking the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio
from anyio import lowlevel, to_thread

from rootsd.core.model import PublishedSet, SessionKey
from rootsd.core.scope import NO_SESSION_START, SessionStart, session_start_in
from rootsd.mcp.sessions.requests import RootRequest, RootRequestQueue
from rootsd.state.ledger import Ledger

# A path may lie on a server that does not answer: clients then wait for each other's looks, and
# the daemon's own threads are not used up.
_MAX_PATH_THREADS = 8
_SCAN_TIMEOUT_S = 5.0


def _path_thread_limiter() -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(_MAX_PATH_THREADS)


@dataclass(slots=True)
class _SharedVerification:
    """One verification of all roots, and who waits for it."""

    over: anyio.Event = field(default_factory=anyio.Event)
    published: PublishedSet | None = None


@dataclass(slots=True)
class _NextVerification:
    """The look that has not begun."""

    look: _SharedVerification | None = None


@dataclass(frozen=True)
class LedgerRootsSource:
    """The RootsSource of `rootsd.mcp`.

    `real_path` follows symlinks; called in a thread. `scanned` returns once the parents around a
    folder were scanned.
    """

    ledger: Ledger
    real_path: Callable[[bytes], bytes]
    asking: RootRequestQueue
    scanned: Callable[[bytes], Awaitable[None]]
    _looks: anyio.CapacityLimiter = field(default_factory=_path_thread_limiter)
    _next: _NextVerification = field(default_factory=_NextVerification)

    async def current(self) -> PublishedSet:
        """The published set, each root's folder verified after this was asked.

        Whoever asks in the same turn of the event loop is answered by the same look: a hundred
        clients that are told of a change ask at once.
        """
        while True:
            if (look := self._next.look) is None:
                return await self._lead()
            await look.over.wait()
            if look.published is not None:
                return look.published

    async def _lead(self) -> PublishedSet:
        look = self._next.look = _SharedVerification()
        try:
            await lowlevel.checkpoint()
            self._next.look = None  # whoever asks from here on may have seen a later disk
            look.published = await self.ledger.current()
            return look.published
        finally:  # also where it was cancelled: then another leads
            if self._next.look is look:
                self._next.look = None
            look.over.set()

    async def wait_past(self, revision: int) -> PublishedSet:
        """Wait until the published set is newer than `revision`; it is not verified."""
        return await self.ledger.wait_for_revision_past(revision)

    async def canonical(self, path: bytes) -> bytes:
        """`path` as it is on the disk; whoever waits for that may be cancelled."""
        return await to_thread.run_sync(
            self.real_path, path, abandon_on_cancel=True, limiter=self._looks
        )

    async def starting_in(self, folder: bytes) -> SessionStart:
        """Return the start of a session that begins in `folder` (canonical).

        Right after the daemon's start a project may not be known yet, so the scan is waited for.
        Where it takes too long, the folder itself is the project: then nothing is published to the
        session until a person approves it.
        """
        start = session_start_in(self.ledger.catalog, folder)
        if start.anchor is None:
            with anyio.move_on_after(_SCAN_TIMEOUT_S) as patience:
                await self.scanned(folder)
            start = session_start_in(self.ledger.catalog, folder)
            if start.anchor is None and patience.cancelled_caught:
                start = replace(start, anchor=folder)
        return start

    def begun_in(self, folder: bytes) -> SessionStart:
        """Return the start of a session that begins in `folder`, by what is known already. It
        only marks roots, so nothing is waited for."""
        return (
            session_start_in(self.ledger.catalog, folder)
            if folder.startswith(b"/")
            else NO_SESSION_START
        )

    def request(
        self, path: bytes, asker: str, reason: str, session: SessionKey | None
    ) -> RootRequest:
        """Let the person know that a client wants a folder. Raises Busy where too many do."""
        wish = RootRequest(path, asker, reason, session)
        self.asking.ask(wish)
        return wish
