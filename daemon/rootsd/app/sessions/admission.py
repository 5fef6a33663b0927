"""How many connections are let in: to MCP as configured, and as far as the system goes."""

from __future__ import annotations

from rootsd.host.config import SessionCaps
from rootsd.host.descriptors import allow_descriptors
from rootsd.host.ipc.accept import Acceptor, Caps, Refused

# For the store, what is watched, folders that are being looked at, and control connections.
_OWN_DESCRIPTORS = 512
# A command is a process of its own with one connection; a line of it may take megabytes.
_CONTROL_CAPS = Caps(total=256, per_process=16)


class Admission:
    """The caps in force, by which `mcp` and `control` let connections in."""

    def __init__(self, mcp: Acceptor, control: Acceptor, caps: SessionCaps) -> None:
        self._mcp = mcp
        self._control = control
        control.caps = _CONTROL_CAPS
        self._note = ""
        self.cap(caps)

    def cap(self, caps: SessionCaps) -> None:
        """From now on; connections that are open stay."""
        total = caps.max_connections
        self._mcp.caps = Caps(total, caps.max_connections_per_process)
        wanted = total + _OWN_DESCRIPTORS
        allowed = allow_descriptors(wanted)
        self._note = (
            f"max_connections is {total}, and the system allows {allowed} open files, not {wanted}"
            " (ulimit -n, LimitNOFILE=)"
            if allowed < wanted
            else ""
        )

    def closed(self) -> dict[str, int]:
        """How many connections were closed from this side since the start, by why."""
        both = self._mcp.refused + self._control.refused
        return {why.value: count for why, count in both.items() if why is not Refused.GONE}

    def degraded(self) -> list[str]:
        """What does not work as it should."""
        return [self._note] if self._note else []
