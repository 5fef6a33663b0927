"""Sessions that record what they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from rootsd.core.model import PublishedSet
from rootsd.core.scope import FULL_SCOPE, Scope


class RecordedObserver:
    """A SessionObserver that records its calls, but no scope twice in a row."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.scopes: list[Scope] = []
        self.sets: list[PublishedSet] = []
        self.reported: list[tuple[int, tuple[str, ...]]] = []

    def named(self, name: str) -> None:
        self.names.append(name)

    def scoped(self, scope: Scope) -> None:
        if scope != (self.scopes or [FULL_SCOPE])[-1]:
            self.scopes.append(scope)

    def roots_reported(self, roots: int, names: tuple[str, ...]) -> None:
        self.reported.append((roots, names))

    def roots_sent(self, published: PublishedSet) -> None:
        self.sets.append(published)


class FakeServerSessions:
    """The sessions of servers behind a wall, and the folders that were proposed for them."""

    def __init__(self) -> None:
        self.opened: list[RecordedObserver] = []
        self.is_open = False
        self.proposed: list[tuple[str, str, list[str]]] = []
        """The path, the client, and the names of the roots at that time."""

    @asynccontextmanager
    async def walled_session(self, pid: int) -> AsyncIterator[RecordedObserver]:
        self.opened.append(RecordedObserver())
        self.is_open = True
        try:
            yield self.opened[-1]
        finally:
            self.is_open = False

    async def propose(
        self, path: str, pid: int, client: str, current: Callable[[], Awaitable[PublishedSet]]
    ) -> None:
        self.proposed.append((path, client, [root.name for root in (await current()).roots]))
