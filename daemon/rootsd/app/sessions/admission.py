"""How many MCP connections are let in: as configured, and as far as the system goes."""

from __future__ import annotations

from rootsd.host.config import SessionCaps
from rootsd.host.descriptors import allow_descriptors
from rootsd.host.ipc.accept import Acceptor, Caps

# For the store, what is watched, folders that are being looked at, and control connections.
_OWN_DESCRIPTORS = 512


class Admission:
    """The caps in force; `acceptor` lets connections in by them."""

    def __init__(self, acceptor: Acceptor, caps: SessionCaps) -> None:
        self._acceptor = acceptor
        self._note = ""
        self.cap(caps)

    def cap(self, caps: SessionCaps) -> None:
        """From now on; connections that are open stay."""
        total = caps.max_connections
        self._acceptor.caps = Caps(total, caps.max_connections_per_process)
        wanted = total + _OWN_DESCRIPTORS
        allowed = allow_descriptors(wanted)
        self._note = (
            f"max_connections is {total}, and the system allows {allowed} open files, not {wanted}"
            " (ulimit -n, LimitNOFILE=)"
            if allowed < wanted
            else ""
        )

    def degraded(self) -> list[str]:
        """What does not work as it should."""
        return [self._note] if self._note else []
