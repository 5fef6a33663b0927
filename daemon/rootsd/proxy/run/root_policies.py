"""The options that decide which of the approved roots a server gets. Pure.

`rootsd.proxy.run.roots` applies them.
"""

from __future__ import annotations

from enum import Enum


class ClientRootsPolicy(Enum):
    """How to use the client's own roots."""

    AUTO = "auto"
    """Narrow by them if they match an approved root; otherwise use the whole scope."""
    NARROW = "narrow"
    """Narrow by them always, even if nothing is left."""
    REPORT = "report"
    """Do not narrow by them, but propose those that are not approved."""

    @property
    def narrows(self) -> bool:
        """Whether they can remove a root."""
        return self in (ClientRootsPolicy.AUTO, ClientRootsPolicy.NARROW)


class AccessPolicy(Enum):
    """Which roots a server gets. A server could write in all of them."""

    WRITABLE = "writable"
    """Writable roots only."""
    ADVISORY = "advisory"
    """Read-only roots too: the user trusts the server not to write there."""
