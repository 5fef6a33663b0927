"""Ask the MCP socket which root contains a path, where a sandbox hides the control socket.

This takes one request of MCP 2026-07-28, which needs no handshake. Standard library only.
"""

from __future__ import annotations

import json

from rootsd.core.errors import DaemonUnreachable
from rootsd.core.parsing import parse_json
from rootsd.system import runtime_dir
from rootsd.system.ipc import connect

TYPE_CHECKING = False  # to import typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from typing import Any

_ID = 1
_MAX_ANSWER_BYTES = 1 << 20  # bytes; one root takes less than 10 kB
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "rootsd-check", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def resolve_root(path: str, timeout_s: float) -> dict[str, Any] | None:
    """Return the root that contains `path`, as the tool `resolve_root` reports it, or None.

    Waits up to `timeout_s` seconds for each answer. Raises NotRunning, DaemonUnreachable, and what
    `connect` raises.
    """
    params = {"name": "resolve_root", "arguments": {"path": path}, "_meta": _META}
    request = {"jsonrpc": "2.0", "id": _ID, "method": "tools/call", "params": params}
    for folder in runtime_dir.find_runtime_dirs():
        try:
            channel = connect.connect(folder.mcp_socket)
        except connect.NotRunning:
            continue
        with channel:
            channel.settimeout(timeout_s)
            try:
                channel.sendall(json.dumps(request).encode("ascii") + b"\n")
                with channel.makefile("rb") as lines:
                    return _root(lines.readline(_MAX_ANSWER_BYTES))
            except OSError as error:
                raise DaemonUnreachable("the daemon does not answer", "") from error
    raise connect.NotRunning("the daemon is not running", "rootsd up, outside of the sandbox")


def _root(line: bytes) -> dict[str, Any] | None:
    try:
        found = parse_json(line)["result"]["structuredContent"]
        root: dict[str, Any] | None = found["root"] if found["inside"] else None
    except (ValueError, KeyError, TypeError) as error:
        raise DaemonUnreachable("the daemon does not answer as expected", "") from error
    return root
