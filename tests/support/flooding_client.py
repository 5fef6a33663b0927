"""A hostile client of `mcp.sock`, as a program: `flooding_client.py ATTACK SOCKET`.

It prints `ready` when it attacks, and ignores what the daemon does to its connections. It ends at
the end of its input.
"""

from __future__ import annotations

import json
import select
import socket
import sys
from collections.abc import Callable

_PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode() + b"\n"
_MOST = 200


def _told_to_end() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def _connected(path: str) -> socket.socket | None:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(1)
    try:
        made.connect(path)
    except OSError:
        made.close()
        return None
    made.setblocking(False)
    return made


def _send(connection: socket.socket, data: bytes) -> bool:
    """Send `data`, and return whether the connection is still open."""
    try:
        connection.send(data)
    except BlockingIOError:
        return True
    except OSError:
        connection.close()
        return False
    return True


def _crowd(path: str, data: bytes) -> None:
    """Open as many connections as the daemon accepts; each sends `data` and reads nothing.

    It waits only while it has all connections and all are full. So the processor is left to the
    daemon that it attacks.
    """
    crowd: list[socket.socket] = []
    while True:
        if len(crowd) < _MOST and (made := _connected(path)) is not None:
            crowd.append(made)
        patience = 0 if len(crowd) < _MOST else None
        ended, writable, _ = select.select([sys.stdin], crowd if data else [], [], patience)
        if ended:
            return
        for each in writable:
            if not _send(each, data):
                crowd.remove(each)


def idle(path: str) -> None:
    """Connect, and send nothing."""
    _crowd(path, b"")


def slow(path: str) -> None:
    """Send requests, and read no answer."""
    _crowd(path, _PING * 20)


def huge(path: str) -> None:
    """Send one line without an end."""
    _crowd(path, b"x" * 65_536)


def churn(path: str) -> None:
    """Connect and close, again and again."""
    while not _told_to_end():
        if (made := _connected(path)) is not None:
            made.close()


ATTACKS: dict[str, Callable[[str], None]] = {
    "idle": idle, "slow": slow, "huge": huge, "churn": churn,
}  # fmt: skip

if __name__ == "__main__":
    print("ready", flush=True)  # noqa: T201
    ATTACKS[sys.argv[1]](sys.argv[2])
