"""Limit the number of open MCP and control connections."""

from __future__ import annotations

from rootsd.config.schema import SessionsTable
from rootsd.daemon.rlimits import raise_descriptor_limit
from rootsd.net.acceptor import AcceptLimits, Acceptor, RefusalReason

# For the store, watches, folders that are being read, and control connections.
_OWN_DESCRIPTORS = 512
# Each command is a process with one connection, and one line of it may take megabytes.
_CONTROL_LIMITS = AcceptLimits(total=256, per_process=16)


class AdmissionControl:
    """The limits on open connections of the `mcp` and `control` sockets."""

    def __init__(self, mcp: Acceptor, control: Acceptor, caps: SessionsTable) -> None:
        self._mcp = mcp
        self._control = control
        control.limits = _CONTROL_LIMITS
        self._note = ""
        self.cap(caps)

    def cap(self, caps: SessionsTable) -> None:
        """Apply new limits. Open connections stay."""
        total = caps.max_connections
        self._mcp.limits = AcceptLimits(total, caps.max_connections_per_process)
        wanted = total + _OWN_DESCRIPTORS
        allowed = raise_descriptor_limit(wanted)
        self._note = (
            f"max_connections is {total}, and the system allows {allowed} open files, not {wanted}"
            " (ulimit -n, LimitNOFILE=)"
            if allowed < wanted
            else ""
        )

    def closed(self) -> dict[str, int]:
        """Return the number of connections that the daemon closed since its start, by reason."""
        both = self._mcp.refused + self._control.refused
        return {why.value: count for why, count in both.items() if why is not RefusalReason.GONE}

    def degraded(self) -> list[str]:
        """Return a sentence for each problem."""
        return [self._note] if self._note else []
