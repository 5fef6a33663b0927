"""Accept MCP connections as sessions, and load the MCP SDK for them.

The SDK takes 50 MB and half a second to load, or several on a busy machine. Some clients wait one
second for their first answer. So a daemon that has had clients loads it as soon as it is idle, and
any other daemon loads it for its first client, if one ever comes. A thread loads it, so the daemon
answers other requests in the meantime.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from enum import StrEnum
from functools import partial

import anyio
from anyio import to_thread
from anyio.abc import SocketAttribute, SocketStream

import rootsd
from rootsd.core.errors import Busy
from rootsd.core.model import PublishedSet
from rootsd.core.throttle import TokenBuckets
from rootsd.core.wall_peers import PeerPlace, WallPeer
from rootsd.mcp.sessions.registry import OpenSession, SessionRegistry
from rootsd.mcp.sessions.source import LedgerRootsSource
from rootsd.mcp.sessions.tracker import SessionTracker
from rootsd.mcp.sessions.walls import WalledSource, Walls
from rootsd.mcp.source import (
    RootsSource,
    propose_open_folder,
    requests_per_process,
)
from rootsd.net.acceptor import MarkActive
from rootsd.net.fair_scheduler import FairScheduler
from rootsd.net.stream import DirectSocketStream
from rootsd.net.unix_socket import Peer
from rootsd.processes.process_exit import ProcessHandle

log = logging.getLogger(__name__)

_LEFT = "left"  # a value of DisconnectReason, whose module would load the SDK

ServeSession = Callable[..., Awaitable[StrEnum]]
"""`serve_session` of rootsd.mcp.connection, which is imported for the first connection only."""


class SessionServer:
    """Serves each connection as a session.

    `connected` is awaited for each connection before its first answer. `outdated` is called if
    another version of rootsd was installed before the SDK was loaded, so that one process never
    runs code of two versions.
    """

    def __init__(
        self,
        sessions: SessionRegistry,
        source: LedgerRootsSource,
        tracker: SessionTracker,
        walls: Walls,
        *,
        connected: Callable[[], Awaitable[None]],
        outdated: Callable[[], None],
    ) -> None:
        self._sessions = sessions
        self._source = source
        self._tracker = tracker
        self._walls = walls
        self._connected = connected
        self._outdated = outdated
        self._installed = _installation()
        self._serve_session: ServeSession | None = None
        self._request_rates = TokenBuckets(requests_per_process)
        self._scheduler = FairScheduler()

    async def load_early(self) -> None:
        """Load the SDK before a client waits for it, unless another version was installed."""
        if self._serve_session is None and _installation() == self._installed:
            await self._load()

    async def serve(self, stream: SocketStream, peer: Peer, mark_active: MarkActive) -> None:
        """Serve one connection to its end."""
        serve_session = self._serve_session or await self._load()
        if serve_session is None:
            await stream.aclose()
            return
        await_turn = partial(self._scheduler.take, peer.pid)
        await await_turn()  # starting a session takes more time than most lines
        connection = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django here
        with (
            closing(ProcessHandle(connection, peer.pid)) as process,
            self._sessions.opened(peer.pid) as session,
        ):
            await self._connected()

            async def locate() -> WallPeer:
                # Check this last. Then the process that was looked at is the one that connected.
                found = (await self._tracker.membership(peer.pid, session.id)).peer
                return WallPeer(PeerPlace.HIDDEN) if process.has_gone() else found

            membership = await self._tracker.membership(peer.pid, session.id)
            seen = WallPeer(PeerPlace.HIDDEN) if process.has_gone() else membership.peer
            source: RootsSource = self._source
            if seen.place is not PeerPlace.OUTSIDE:
                walled = WalledSource(self._source, self._walls, seen, membership.ids, locate)
                await walled.arrive()
                source = walled
            with self._tracker.connected(membership):
                end = await serve_session(
                    DirectSocketStream(stream),
                    source,
                    observer=session,
                    mark_active=mark_active,
                    request_rate=self._request_rates.of(peer.pid),
                    membership=membership,
                    start=self._source.known_session_start(membership.folder),
                    await_turn=await_turn,
                )
            session.end = end.value

    @asynccontextmanager
    async def walled_session(self, pid: int) -> AsyncIterator[OpenSession]:
        """Open the session of an MCP server behind a wall, whose `rootsd run` is process `pid`."""
        with self._sessions.opened(pid) as session:
            await self._connected()
            session.end = _LEFT
            yield session

    async def propose(
        self, path: str, pid: int, client: str, current: Callable[[], Awaitable[PublishedSet]]
    ) -> None:
        """Propose a folder that the client of such a server has open.

        Drop it after too many requests.
        """
        if not self._request_rates.of(pid).wait(anyio.current_time()):
            process = (await self._tracker.membership(pid, "")).key.label
            with suppress(Busy):
                await propose_open_folder(self._source, current, path, client, process)

    async def _load(self) -> ServeSession | None:
        if _installation() != self._installed:
            log.critical("another version of rootsd was installed; stopping so that it can start")
            self._outdated()
            return None
        serve_session = await to_thread.run_sync(_import_serve_session)
        if self._serve_session is None:
            self._serve_session = serve_session
        return serve_session


def _import_serve_session() -> ServeSession:
    """Import the MCP SDK and the modules that use it.

    Call this in a thread, because it takes half a second.
    """
    from rootsd.mcp.connection import serve_session  # noqa: PLC0415 - the SDK takes 50 MB

    # What is loaded by now stays until the daemon ends. Without this, each full collection would
    # search it for garbage. That takes more than 20 ms, in which no session is notified.
    gc.freeze()
    return serve_session


def _installation() -> tuple[int, int] | None:
    """Return a value that changes with each installation, or None if rootsd was removed."""
    try:
        found = os.stat(rootsd.__file__)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
