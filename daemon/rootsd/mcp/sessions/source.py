"""The RootsSource that reads the ledger, and resolves paths without blocking the event loop."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from itertools import chain, takewhile

import anyio
from anyio import lowlevel, to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.core.model import PublishedSet, SessionKey
from rootsd.core.paths import ancestors
from rootsd.core.scope import NO_SESSION_START, SessionStart, session_start_in
from rootsd.mcp.sessions.requests import RootRequest, RootRequestQueue
from rootsd.net.fair_scheduler import FairScheduler
from rootsd.state.ledger import Ledger

# A path may lie on a file server that does not answer. With their own threads, clients then wait
# for each other, but not the daemon.
_MAX_PATH_THREADS = 8
_SCAN_TIMEOUT_S = 5.0
_NEW_WORKTREE_S = 2.0
"""How long to wait until a worktree is known."""
_MAX_LINK_BYTES = 1 << 14
# All verifications wait in one queue of the scheduler, because each is for many clients.
_EVERY_CALLER = 0


def _path_thread_limiter() -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(_MAX_PATH_THREADS)


class _SharedVerification(Struct):
    """One verification of all roots, which several callers wait for."""

    done: anyio.Event = field(default_factory=anyio.Event)
    published: PublishedSet | None = None


class _NextVerification(Struct):
    """The verification that has not begun, if there is one."""

    shared: _SharedVerification | None = None


class LedgerRootsSource(Struct, frozen=True):
    """The RootsSource of `rootsd.mcp` that reads the ledger.

    `real_path` resolves symbolic links and is called in a thread. `scanned` returns when the
    parents around a folder have been scanned.
    """

    ledger: Ledger
    real_path: Callable[[bytes], bytes]
    requests: RootRequestQueue
    scanned: Callable[[bytes], Awaitable[None]]
    path_threads: anyio.CapacityLimiter = field(default_factory=_path_thread_limiter)
    _next: _NextVerification = field(default_factory=_NextVerification)
    _turns: FairScheduler = field(default_factory=FairScheduler)

    async def current(self) -> PublishedSet:
        """Return the published set, with each root's folder verified after this call began.

        Callers in the same turn of the event loop share one verification, because a hundred
        clients ask at once after a notification. Thousands of roots take milliseconds. So after a
        long verification, other tasks get some turns, and callers in these turns share the next
        one.
        """
        while True:
            if (verification := self._next.shared) is None:
                return await self._verify_for_all()
            await verification.done.wait()
            if verification.published is not None:
                return verification.published

    async def _verify_for_all(self) -> PublishedSet:
        verification = self._next.shared = _SharedVerification()
        try:
            await lowlevel.checkpoint()
            await self._turns.take(_EVERY_CALLER)
            # A caller that comes later may have changed the disk, so it needs its own
            # verification.
            self._next.shared = None
            verification.published = await self.ledger.current()
            return verification.published
        finally:  # if this caller was canceled, another one verifies
            if self._next.shared is verification:
                self._next.shared = None
            verification.done.set()

    async def wait_past(self, revision: int) -> PublishedSet:
        """Wait until the published set is newer than `revision`; return it unverified."""
        return await self.ledger.wait_for_revision_past(revision)

    async def canonical(self, path: bytes) -> bytes:
        """Return `path` with symbolic links resolved. The wait for the thread can be canceled."""
        return await to_thread.run_sync(
            self.real_path, path, abandon_on_cancel=True, limiter=self.path_threads
        )

    async def visible(self, path: bytes) -> bytes:
        """Return the same as `canonical`: this client sees every link."""
        return await self.canonical(path)

    async def session_start(self, folder: bytes) -> SessionStart:
        """Return the start of a session that begins in `folder` (canonical).

        Shortly after the daemon's start, a project may not be known yet, so this waits for the
        scan. If the scan takes too long, the folder itself counts as the project. The session then
        gets no roots until the user approves that folder.

        An agent may also have made a worktree a moment ago, perhaps in place of another one. So
        this waits until it is known, but not long. A worktree that is no root counts as a project
        that is not approved. It may lie in the root of its main checkout, which is another tree.
        """
        start = session_start_in(self.ledger.catalog, folder)
        worktree = await self._worktree_around(folder, start.anchor)
        if worktree is not None:
            with anyio.move_on_after(_NEW_WORKTREE_S):
                catalog = self.ledger.catalog
                while not await self.ledger.is_current(worktree):
                    catalog = await self.ledger.wait_for_change(catalog)
            start = session_start_in(self.ledger.catalog, folder)
            if worktree not in self.ledger.catalog.roots:
                return replace(start, anchor=worktree)
        if start.anchor is None:
            with anyio.move_on_after(_SCAN_TIMEOUT_S) as timeout:
                await self.scanned(folder)
            start = session_start_in(self.ledger.catalog, folder)
            if start.anchor is None and timeout.cancelled_caught:
                start = replace(start, anchor=folder)
        return start

    async def _worktree_around(self, folder: bytes, anchor: bytes | None) -> bytes | None:
        """Return the innermost worktree that contains `folder` and is, or lies in, `anchor`."""
        inside = takewhile(lambda path: path != anchor, (folder, *ancestors(folder)))
        above = inside if anchor is None else chain(inside, [anchor])
        return await to_thread.run_sync(
            lambda: next(filter(_is_worktree, above), None),
            abandon_on_cancel=True,
            limiter=self.path_threads,
        )

    def known_session_start(self, folder: bytes) -> SessionStart:
        """Return the start of a session that begins in `folder`, without waiting for a scan.

        It is only used to mark roots.
        """
        return (
            session_start_in(self.ledger.catalog, folder)
            if folder.startswith(b"/")
            else NO_SESSION_START
        )

    def request(
        self,
        path: bytes,
        client: str,
        reason: str,
        session: SessionKey | None,
        process: str,
        wall: int = 0,
    ) -> RootRequest:
        """Propose a folder to the user for a client. Raises Busy after too many requests."""
        request = RootRequest(path, client, reason, session, process, wall)
        self.requests.submit(request)
        return request


def _is_worktree(folder: bytes) -> bool:
    """Return whether a folder says that it is a linked worktree of git."""
    try:
        link = os.open(os.path.join(folder, b".git"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        text = os.read(link, _MAX_LINK_BYTES)
    except OSError:  # it is a folder
        return False
    finally:
        os.close(link)
    return text.startswith(b"gitdir:") and b"/worktrees/" in text
