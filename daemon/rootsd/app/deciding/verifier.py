"""Who looks at folders for the ledger, before anything is told or approved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from rootsd.core.inputs import Observation
from rootsd.core.model import Identity


class Verifier(Protocol):
    """Looks at folders; reports those that are not what was approved, or is about to be. It waits
    for no file system that does not answer: what lies there is out of reach."""

    async def verify(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        """What is to be known about `roots` before anybody is told of them; empty if all hold."""

    async def verify_more(self, roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        """The same of some alone, published or about to be approved; the others stay known."""
