"""Ask an MCP socket which root contains a path.

This takes one request of MCP 2026-07-28, which needs no handshake. Standard library only.
"""

from __future__ import annotations

import json
import os
import socket

from rootsd.core.parsing import parse_json
from rootsd.net.unix_socket import address_of, peer_of

TYPE_CHECKING = False  # to import typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

TIMEOUT_S = 5.0  # the first connection of a daemon takes up to 3 s
_ID = 1
_MAX_ANSWER_BYTES = 1 << 20  # bytes; one root takes less than 10 kB
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "rootsd-check", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def ask_for_root(channel: socket.socket, asked: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the root that the tool `resolve_root` finds for the arguments `asked`, or None.

    Raises OSError if the daemon does not answer, and ValueError, KeyError, or TypeError if it does
    not answer as expected.
    """
    params = {"name": "resolve_root", "arguments": dict(asked), "_meta": _META}
    request = {"jsonrpc": "2.0", "id": _ID, "method": "tools/call", "params": params}
    channel.sendall(json.dumps(request).encode("ascii") + b"\n")
    with channel.makefile("rb") as lines:
        found = parse_json(lines.readline(_MAX_ANSWER_BYTES))["result"]["structuredContent"]
    root: dict[str, Any] | None = found["root"] if found["inside"] else None
    return root


def root_with(path: bytes, sockets: Iterable[bytes]) -> str | None:
    """Return the path of the root that contains `path`, or None if no daemon at `sockets` says so.

    A daemon that does not answer within TIMEOUT_S seconds says nothing.
    """
    for at in sockets:
        try:
            with socket.socket(socket.AF_UNIX) as channel, address_of(at) as address:
                channel.settimeout(TIMEOUT_S)
                channel.connect(address)
                if peer_of(channel).uid != os.geteuid():
                    continue
                root = ask_for_root(channel, {"path": path.decode("utf-8", "surrogateescape")})
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if root is not None:
            return str(root["path"] or root["name"])
    return None
