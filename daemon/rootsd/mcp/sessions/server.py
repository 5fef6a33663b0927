"""Accept MCP connections as sessions, and load the MCP SDK for the first of them.

The SDK takes 30 MB and half a second: a daemon that nobody speaks MCP with does without, and all
others are answered meanwhile.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial

from anyio import to_thread
from anyio.abc import SocketStream

import rootsd
from rootsd.core.throttle import TokenBuckets
from rootsd.mcp.sessions.registry import SessionRegistry
from rootsd.mcp.sessions.source import LedgerRootsSource
from rootsd.mcp.sessions.tracker import SessionTracker
from rootsd.mcp.source import requests_per_process
from rootsd.system.ipc.acceptor import MarkActive
from rootsd.system.ipc.fair_scheduler import FairScheduler
from rootsd.system.ipc.stream import DirectSocketStream
from rootsd.system.ipc.unix_socket import Peer

log = logging.getLogger(__name__)

ServeSession = Callable[..., Awaitable[StrEnum]]
"""`serve_session` of rootsd.mcp.connection, which is imported for the first connection only."""


class SessionServer:
    """Serves each connection as a session. `connected` is told of each and waited for before the
    first answer; `outdated` is called where the installation was replaced before it was loaded
    whole: two versions are never mixed."""

    def __init__(
        self,
        sessions: SessionRegistry,
        supplier: LedgerRootsSource,
        hosts: SessionTracker,
        *,
        connected: Callable[[], Awaitable[None]],
        outdated: Callable[[], None],
    ) -> None:
        self._sessions = sessions
        self._supplier = supplier
        self._hosts = hosts
        self._connected = connected
        self._outdated = outdated
        self._installed = _installation()
        self._serve_session: ServeSession | None = None
        self._requests = TokenBuckets(requests_per_process)
        self._turns = FairScheduler()

    async def serve(self, stream: SocketStream, peer: Peer, heard: MarkActive) -> None:
        """Serve one connection to its end."""
        serve_session = self._serve_session or await self._load()
        if serve_session is None:
            await stream.aclose()
            return
        turn = partial(self._turns.take, peer.pid)
        await turn()  # to begin a session is more work than many a line
        with self._sessions.opened(peer.pid) as session:
            await self._connected()
            member = await self._hosts.membership(peer.pid, session.id)
            with self._hosts.connected(member):
                end = await serve_session(
                    DirectSocketStream(stream),
                    self._supplier,
                    witness=session,
                    heard=heard,
                    requests=self._requests.of(peer.pid),
                    member=member,
                    start=self._supplier.begun_in(member.folder),
                    turn=turn,
                )
            session.end = end.value

    async def _load(self) -> ServeSession | None:
        if _installation() != self._installed:
            log.critical("another version was installed; stopping, to be started again as that")
            self._outdated()
            return None
        serve_session = await to_thread.run_sync(_import_serve_session)
        if self._serve_session is None:
            self._serve_session = serve_session
        return serve_session


def _import_serve_session() -> ServeSession:
    """Import the MCP SDK with what stands on it. Call this in a thread: it takes half a second."""
    from rootsd.mcp.connection import serve_session  # noqa: PLC0415 - the SDK takes 40 MB

    return serve_session


def _installation() -> tuple[int, int] | None:
    """Another one where anything was installed since; None where it was removed."""
    try:
        found = os.stat(rootsd.__file__)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
