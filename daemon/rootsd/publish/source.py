"""What publishing needs from the daemon: the published set now, and the next one.

Free of the MCP SDK, so that the daemon can name the type before its first MCP connection.
"""

from __future__ import annotations

from typing import Protocol

from rootsd.core.model import Published


class RootsSource(Protocol):
    """The one supplier of roots; the daemon's ledger implements it, tests a fake."""

    async def current(self) -> Published:
        """The set whose roots were verified at this moment. Raises RootsdError.

        Every answer to a client is made from this and never from a set kept earlier: a root may
        have been replaced on disk a moment ago.
        """
        ...

    async def wait_past(self, revision: int) -> Published:
        """Wait until the revision is greater than `revision`; missed steps do not matter."""
        ...
