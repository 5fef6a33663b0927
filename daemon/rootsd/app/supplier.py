"""What the daemon offers to publishing: the roots, and a look at the disk that cannot block it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
from anyio import to_thread

from rootsd.app.asking import Asking, Wish
from rootsd.app.ledger import Ledger
from rootsd.core.model import Published

# A path may lie on a server that does not answer: clients then wait for each other's looks, and
# the daemon's own threads are not used up.
_LOOKS_AT_ONCE = 8


def _looks() -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(_LOOKS_AT_ONCE)


@dataclass(frozen=True)
class Supplier:
    """The RootsSource of `rootsd.publish`. `real_path` follows symlinks; called in a thread."""

    ledger: Ledger
    real_path: Callable[[bytes], bytes]
    asking: Asking
    _looks: anyio.CapacityLimiter = field(default_factory=_looks)

    async def current(self) -> Published:
        """The published set, each root's folder verified at this moment."""
        return await self.ledger.current()

    async def wait_past(self, revision: int) -> Published:
        """Wait until the published set is newer than `revision`, then return it verified."""
        return await self.ledger.wait_past(revision)

    async def canonical(self, path: bytes) -> bytes:
        """`path` as it is on the disk; whoever waits for that may be cancelled."""
        return await to_thread.run_sync(
            self.real_path, path, abandon_on_cancel=True, limiter=self._looks
        )

    def request(self, path: bytes, asker: str, reason: str) -> None:
        """Let the person know that a client wants a folder. Raises Busy where too many do."""
        self.asking.ask(Wish(path, asker, reason))
