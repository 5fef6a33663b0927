"""Release memory that only a finished piece of work needed.

A first scan, the approval of all it found and the start after it leave 5 MB behind, of 60: the
database's pages, and what was freed between things that live on.
"""

from __future__ import annotations

from typing import Protocol

import anyio

from rootsd.state.ledger import Ledger
from rootsd.system.allocator import give_back

# Longer than the pauses within one piece of work, the looks after a start among them.
IDLE_S = 5.0


class PageCache(Protocol):
    """The store, as it holds pages of its file in memory."""

    def forget_pages(self) -> None:
        """Give them back; called in a worker thread."""


async def keep_releasing_memory(ledger: Ledger, store: PageCache, calm_s: float = IDLE_S) -> None:
    """Give back what can be once nothing was written for `calm_s` seconds: after the start, and
    whenever something was written. Runs as long as the daemon does."""

    def release() -> None:
        store.forget_pages()
        give_back()

    saved = ledger.next_save()
    while True:
        with anyio.move_on_after(calm_s) as calm:
            await saved.wait()
        if calm.cancelled_caught:
            await ledger.undisturbed(release)
            await saved.wait()
        saved = ledger.next_save()
