"""Limit the number of open MCP and control connections."""

from __future__ import annotations

from rootsd.system.config import SessionLimits
from rootsd.system.ipc.acceptor import AcceptLimits, Acceptor, RefusalReason
from rootsd.system.rlimits import raise_descriptor_limit

# For the store, what is watched, folders that are being looked at, and control connections.
_OWN_DESCRIPTORS = 512
# A command is a process of its own with one connection; a line of it may take megabytes.
_CONTROL_CAPS = AcceptLimits(total=256, per_process=16)


class AdmissionControl:
    """The caps in force, by which `mcp` and `control` let connections in."""

    def __init__(self, mcp: Acceptor, control: Acceptor, caps: SessionLimits) -> None:
        self._mcp = mcp
        self._control = control
        control.caps = _CONTROL_CAPS
        self._note = ""
        self.cap(caps)

    def cap(self, caps: SessionLimits) -> None:
        """From now on; connections that are open stay."""
        total = caps.max_connections
        self._mcp.caps = AcceptLimits(total, caps.max_connections_per_process)
        wanted = total + _OWN_DESCRIPTORS
        allowed = raise_descriptor_limit(wanted)
        self._note = (
            f"max_connections is {total}, and the system allows {allowed} open files, not {wanted}"
            " (ulimit -n, LimitNOFILE=)"
            if allowed < wanted
            else ""
        )

    def closed(self) -> dict[str, int]:
        """How many connections were closed from this side since the start, by why."""
        both = self._mcp.refused + self._control.refused
        return {why.value: count for why, count in both.items() if why is not RefusalReason.GONE}

    def degraded(self) -> list[str]:
        """What does not work as it should."""
        return [self._note] if self._note else []
