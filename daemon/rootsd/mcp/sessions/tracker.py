"""Track which sessions still run, by the client processes behind their connections.

An approval for one session ends with the program that asked. In doubt it has ended: a program that
cannot be found again after a restart of the daemon is over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import anyio

from rootsd.core.guard import ProcessChain
from rootsd.core.model import SessionKey
from rootsd.core.session_keys import SessionMembership, membership_of, process_of

AncestryLookup = Callable[[Sequence[int]], Awaitable[Mapping[int, ProcessChain] | None]]
"""Each process with those above it; None where nobody can look."""
_LOOKUP_TIMEOUT_S = 2.0


class SessionProcess(Protocol):
    """A process that is watched for its end."""

    def has_gone(self) -> bool:
        """Whether it has ended."""

    async def ended(self) -> None:
        """Wait until it has."""

    def close(self) -> None:
        """Watch it no more."""


class SessionTracker:
    """The sessions that connections belong to. `watch` begins to watch a process by its pid;
    `boot` names this start of the machine."""

    def __init__(
        self, look: AncestryLookup, watch: Callable[[int], SessionProcess], boot: str
    ) -> None:
        self._look = look
        self._watch = watch
        self._boot = boot
        self._open: set[str] = set()
        self._held: dict[str, SessionProcess] = {}
        self._unwatched: list[str] = []
        self._arrived = anyio.Event()

    @contextmanager
    def connected(self, member: SessionMembership) -> Iterator[None]:
        """Know the session of a connection for as long as that is open."""
        if process_of(member.key, self._boot) is not None:
            yield  # its process tells
            return
        self._open.add(member.key.id)
        try:
            yield
        finally:
            self._open.discard(member.key.id)

    async def membership(self, pid: int, connection: str) -> SessionMembership:
        """Return the sessions that the connection of process `pid` belongs to. Where the system
        does not tell in time, it is a session of its own."""
        seen = None
        with anyio.move_on_after(_LOOKUP_TIMEOUT_S):
            seen = await self._look((pid,)) if pid else None
        return membership_of((seen or {}).get(pid, ()), self._boot, connection)

    async def hold(self, key: SessionKey) -> bool:
        """Watch the session from now on; return whether it goes on."""
        if not self.is_over(key):
            return True
        process = process_of(key, self._boot)
        if process is None:
            return False
        pid, started = process
        watched = self._watch(pid)
        seen = await self._look((pid,))
        line = (seen or {}).get(pid, ())
        # Asked last: then the process that was seen is the one that is watched.
        if not line or line[0].started != started or watched.has_gone():
            watched.close()
            return False
        self._held[key.id] = watched
        self._unwatched.append(key.id)
        self._arrived.set()
        return True

    async def recall(self, keys: Iterable[SessionKey]) -> None:
        """Find again the sessions that approvals of an earlier daemon are bound to."""
        for key in keys:
            await self.hold(key)

    def is_over(self, key: SessionKey) -> bool:
        """Return whether the session has ended, or is not known."""
        if (watched := self._held.get(key.id)) is not None:
            return watched.has_gone()
        return process_of(key, self._boot) is not None or key.id not in self._open

    async def keep(self, look: Callable[[], Awaitable[object]]) -> None:
        """Have `look` ask what is over whenever a session has ended, until cancelled."""

        async def follow(key: str) -> None:
            await self._held[key].ended()
            await look()
            self._held.pop(key).close()

        async with anyio.create_task_group() as group:
            while True:
                await self._arrived.wait()
                self._arrived = anyio.Event()
                waiting, self._unwatched = self._unwatched, []
                for key in waiting:
                    group.start_soon(follow, key)
