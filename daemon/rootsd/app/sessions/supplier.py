"""What the daemon offers to publishing: the roots, and a look at the disk that cannot block it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
from anyio import lowlevel, to_thread

from rootsd.app.deciding.ledger import Ledger
from rootsd.app.sessions.asking import Asking, Wish
from rootsd.core.model import Published

# A path may lie on a server that does not answer: clients then wait for each other's looks, and
# the daemon's own threads are not used up.
_LOOKS_AT_ONCE = 8


def _looks() -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(_LOOKS_AT_ONCE)


@dataclass(slots=True)
class _Look:
    """One verification of all roots, and who waits for it."""

    over: anyio.Event = field(default_factory=anyio.Event)
    published: Published | None = None


@dataclass(slots=True)
class _NextLook:
    """The look that has not begun."""

    look: _Look | None = None


@dataclass(frozen=True)
class Supplier:
    """The RootsSource of `rootsd.publish`. `real_path` follows symlinks; called in a thread."""

    ledger: Ledger
    real_path: Callable[[bytes], bytes]
    asking: Asking
    _looks: anyio.CapacityLimiter = field(default_factory=_looks)
    _next: _NextLook = field(default_factory=_NextLook)

    async def current(self) -> Published:
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

    async def _lead(self) -> Published:
        look = self._next.look = _Look()
        try:
            await lowlevel.checkpoint()
            self._next.look = None  # whoever asks from here on may have seen a later disk
            look.published = await self.ledger.current()
            return look.published
        finally:  # also where it was cancelled: then another leads
            if self._next.look is look:
                self._next.look = None
            look.over.set()

    async def wait_past(self, revision: int) -> Published:
        """Wait until the published set is newer than `revision`; it is not verified."""
        return await self.ledger.news_past(revision)

    async def canonical(self, path: bytes) -> bytes:
        """`path` as it is on the disk; whoever waits for that may be cancelled."""
        return await to_thread.run_sync(
            self.real_path, path, abandon_on_cancel=True, limiter=self._looks
        )

    def request(self, path: bytes, asker: str, reason: str) -> Wish:
        """Let the person know that a client wants a folder. Raises Busy where too many do."""
        wish = Wish(path, asker, reason)
        self.asking.ask(wish)
        return wish
