"""Keep Python's garbage collector from delaying answers.

A full collection searches all objects, and meanwhile nobody gets an answer. Nearly all objects of
a daemon stay: modules, projects, and sessions.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from typing import NoReturn

# Python's default is 10. With 1,000 sessions, a full collection takes 100 to 190 ms of CPU and
# finds nothing. One came in 40 orders; now one comes in about 300. What sessions leave behind at
# their end waits longer, too: 9 MB after 5,000 of them. Python 3.14 has no full collections.
_YOUNGER_COLLECTIONS = 50


def collect_rarely() -> None:
    """Search all objects for garbage only after 50 collections of younger ones."""
    gc.set_threshold(*gc.get_threshold()[:2], _YOUNGER_COLLECTIONS)


async def freeze_scanned(
    scanned_beside: Callable[[AbstractSet[bytes]], Awaitable[AbstractSet[bytes]]],
) -> NoReturn:
    """Keep the garbage collector away from the projects of each parent, once it was scanned.

    Most projects stay as they are. Without this, each full collection would search them for
    garbage: with 20,000, that takes 60 ms, in which nobody gets an answer.
    """
    known: AbstractSet[bytes] = frozenset()  # a later scan of a parent freezes nothing
    while True:
        known |= await scanned_beside(known)
        gc.collect()
        gc.freeze()
