"""Show a client behind a wall at most the roots of its wall.

The client's own scope narrows what is left. All handlers read roots through a `RootsSource`, so
`WalledSource` stands between them and the ledger. It applies the scope of the wall to each set.
Neither the client nor the program around it can choose another wall, because the daemon finds the
wall by the ancestors of the process that connected: see `rootsd.core.wall_peers`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Protocol

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from rootsd.core.model import PublishedSet, SessionKey
from rootsd.core.paths import contains
from rootsd.core.scope import Scope, SessionStart, apply_scope, bound_sessions
from rootsd.core.wall_peers import PeerPlace, WallPeer
from rootsd.disk.links import MAX_LINKS
from rootsd.mcp.cache import cached_by_identity
from rootsd.mcp.sessions.requests import RootRequest
from rootsd.mcp.sessions.source import LedgerRootsSource

_ARRIVAL_S = 5.0
"""How long a client waits for its warden, which comes back soon after a restart of the daemon."""


class Walls(Protocol):
    """The walls whose wardens are connected."""

    def scopes_of(self, peer: WallPeer, published: PublishedSet) -> Sequence[Scope] | None:
        """Return the scopes of the walls that `peer` may be behind, or None if it is behind none.

        Its wall has no scope while its warden is not connected.
        """

    async def wait_for_change(self) -> None:
        """Wait until a warden connects or leaves."""

    async def catch_up(self) -> object:
        """Wait until all walls show the roots of now, but not long."""


class WalledSource(Struct):
    """The roots for one connection. `locate` looks up again where its peer is.

    `sessions` are the sessions that the peer belongs to. They run behind the same wall.
    """

    ledger: LedgerRootsSource
    walls: Walls
    peer: WallPeer
    sessions: frozenset[str]
    locate: Callable[[], Awaitable[WallPeer]]

    async def arrive(self) -> None:
        """Wait until the warden of the peer's wall is connected, for a limited time."""
        with anyio.move_on_after(_ARRIVAL_S):
            while self.peer.place is PeerPlace.BEHIND_WALL and not self._scopes(_NO_ROOTS):
                await self.walls.wait_for_change()

    async def current(self) -> PublishedSet:
        """Return the published set, verified now, as far as it is in the wall."""
        if self.peer.place in (PeerPlace.HIDDEN, PeerPlace.UNSEEN):
            self.peer = await self.locate()
        return self._narrow(await self.ledger.current())

    async def wait_past(self, revision: int) -> PublishedSet:
        """Wait until the published set is newer than `revision`, and the walls show it. Return it
        unverified.
        """
        published = await self.ledger.wait_past(revision)
        await self.walls.catch_up()
        return self._narrow(published)

    async def canonical(self, path: bytes) -> bytes:
        """Return `path` with symbolic links resolved."""
        return await self.ledger.canonical(path)

    async def visible(self, path: bytes) -> bytes:
        """Return `path` with those links resolved that are in the roots of the wall.

        Any other answer would tell which links outside lead into a root.
        """
        shown = await self.current()
        if self._scopes(shown) is None:
            return await self.ledger.canonical(path)
        roots = frozenset(root.path for root in shown.roots)
        return await to_thread.run_sync(
            resolve_in_roots, path, roots, abandon_on_cancel=True, limiter=self.ledger.path_threads
        )

    async def session_start(self, folder: bytes) -> SessionStart:
        """Return the start of a session in `folder`. It tells of no project outside the wall."""
        start = await self.ledger.session_start(folder)
        return self._hide_anchor(start, folder, await self.current())

    def request(
        self, path: bytes, client: str, reason: str, session: SessionKey | None, process: str
    ) -> RootRequest:
        """Propose the folder to the user. Raises Busy after too many requests."""
        wall = self.peer.owner.pid if self.peer.owner is not None else 0
        return self.ledger.request(path, client, reason, session, process, wall)

    def _hide_anchor(
        self, start: SessionStart, folder: bytes, shown: PublishedSet
    ) -> SessionStart:
        if self._scopes(shown) is None or any(root.path == start.anchor for root in shown.roots):
            return start
        return replace(start, anchor=folder)

    def _scopes(self, published: PublishedSet) -> Sequence[Scope] | None:
        return self.walls.scopes_of(self.peer, published)

    def _narrow(self, published: PublishedSet) -> PublishedSet:
        scopes = self._scopes(published)
        if scopes is None:
            return published
        if not scopes:
            return _without_roots(published)
        for scope in scopes:
            own = bound_sessions(published) & self.sessions
            mine = replace(scope, sessions=scope.sessions | own)
            published = _in_wall(published, _interned(mine))
        return published


def resolve_in_roots(path: bytes, roots: frozenset[bytes]) -> bytes:
    """Return an absolute path without `.` and `..`, and with the links resolved that are in roots.

    Whatever is outside the roots is only text. Too many links are not followed.
    """
    done, left, links = b"/", deque(path.split(b"/")), 0
    while left:
        name = left.popleft()
        if name in (b"", b"."):
            continue
        if name == b"..":
            done = os.path.dirname(done)
            continue
        here = os.path.join(done, name)
        target = b""
        if links < MAX_LINKS and any(contains(root, done) for root in roots):
            with suppress(OSError):  # it is no link
                target = os.readlink(here)
        if target:
            links += 1
            left.extendleft(reversed(target.split(b"/")))
            done = b"/" if target.startswith(b"/") else done
        else:
            done = here
    return done


_NO_ROOTS = PublishedSet(0, ())


@lru_cache(maxsize=256)
def _interned(scope: Scope) -> Scope:
    """Return the same object for equal scopes, so that their sessions share cached results."""
    return scope


@cached_by_identity(size=8)
def _without_roots(published: PublishedSet) -> PublishedSet:
    return PublishedSet(published.revision, (), published.focus)


@cached_by_identity(size=64)
def _in_wall(published: PublishedSet, scope: Scope) -> PublishedSet:
    return apply_scope(published, scope)
