"""Track which sessions still run, by the client processes behind their connections.

An approval for one session ends with the client program that requested it. If rootsd cannot tell
whether the program still runs, the session counts as ended. An example is a program that cannot be
found after a restart of the daemon.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import anyio
from msgspec.structs import replace

from rootsd.core.model import SessionKey
from rootsd.core.processes import ProcessChain
from rootsd.core.session_keys import SessionMembership, membership_of, process_of
from rootsd.core.wall_peers import UNSEEN_PEER

AncestryLookup = Callable[[Sequence[int]], Awaitable[Mapping[int, ProcessChain] | None]]
"""Returns each process with its ancestors; None if they cannot be read."""
_LOOKUP_TIMEOUT_S = 2.0


class SessionProcess(Protocol):
    """A process that is watched until it ends."""

    def has_gone(self) -> bool:
        """Return whether it has ended."""

    async def ended(self) -> None:
        """Wait until it has ended."""

    def close(self) -> None:
        """Stop watching it."""


class SessionTracker:
    """The sessions that connections belong to.

    `look_up` reads the ancestry of processes, and `watch` begins to watch a process by its pid.
    `boot` identifies this boot of the machine.
    """

    def __init__(
        self, look_up: AncestryLookup, watch: Callable[[int], SessionProcess], boot: str
    ) -> None:
        self._look_up = look_up
        self._watch = watch
        self._boot = boot
        self._open: set[str] = set()
        self._watched: dict[str, SessionProcess] = {}
        self._unwatched: list[str] = []
        self._arrived = anyio.Event()

    @contextmanager
    def connected(self, member: SessionMembership) -> Iterator[None]:
        """Remember the session of a connection for as long as the connection is open."""
        if process_of(member.key, self._boot) is not None:
            yield  # this session ends with its process
            return
        self._open.add(member.key.id)
        try:
            yield
        finally:
            self._open.discard(member.key.id)

    async def membership(self, pid: int, connection: str) -> SessionMembership:
        """Return the sessions that the connection of process `pid` belongs to.

        If the system does not answer in time, the connection is a separate session.
        """
        seen = None
        with anyio.move_on_after(_LOOKUP_TIMEOUT_S):
            seen = await self._look_up((pid,)) if pid else None
        member = membership_of((seen or {}).get(pid, ()), self._boot, connection)
        return replace(member, peer=UNSEEN_PEER) if seen is None else member

    async def sessions_of(self, pid: int) -> frozenset[str]:
        """Return the ids of the sessions that process `pid` belongs to.

        There are none if the system does not answer in time.
        """
        return (await self.membership(pid, "")).ids if pid else frozenset()

    async def lineage_of(self, key: SessionKey) -> frozenset[str]:
        """Return the ids of the session's process and of all processes above it.

        There are none if the session has no process, or if the system does not answer in time.
        """
        process = process_of(key, self._boot)
        found = await self.sessions_of(process[0]) if process else frozenset[str]()
        return found if key.id in found else frozenset()  # another process may have the pid now

    async def track(self, key: SessionKey) -> bool:
        """Watch the session from now on, and return whether it still runs."""
        if not self.is_over(key):
            return True
        process = process_of(key, self._boot)
        if process is None:
            return False
        pid, started = process
        watched = self._watch(pid)
        seen = await self._look_up((pid,))
        chain = (seen or {}).get(pid, ())
        # Check this last. Then the process that was read is the one that is watched.
        if not chain or chain[0].started != started or watched.has_gone():
            watched.close()
            return False
        self._watched[key.id] = watched
        self._unwatched.append(key.id)
        self._arrived.set()
        return True

    async def restore(self, keys: Iterable[SessionKey]) -> None:
        """Find the sessions that approvals of an earlier daemon are bound to."""
        for key in keys:
            await self.track(key)

    def is_over(self, key: SessionKey) -> bool:
        """Return whether the session has ended or is unknown."""
        if (watched := self._watched.get(key.id)) is not None:
            return watched.has_gone()
        return process_of(key, self._boot) is not None or key.id not in self._open

    async def run(self, on_end: Callable[[], Awaitable[object]]) -> None:
        """Call `on_end` whenever a session has ended, until canceled."""

        async def follow(key: str) -> None:
            await self._watched[key].ended()
            await on_end()
            self._watched.pop(key).close()

        async with anyio.create_task_group() as group:
            while True:
                await self._arrived.wait()
                self._arrived = anyio.Event()
                waiting, self._unwatched = self._unwatched, []
                for key in waiting:
                    group.start_soon(follow, key)
