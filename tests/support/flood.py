"""A hostile client of `mcp.sock`, as a program: `flood.py ATTACK SOCKET`, until its input ends.

It says `ready` once it is at work. Whatever the daemon does to its connections, it goes on.
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
    """Whether the connection still stands."""
    try:
        connection.send(data)
    except BlockingIOError:
        return True
    except OSError:
        connection.close()
        return False
    return True


def _crowd(path: str, data: bytes) -> None:
    """As many connections as are let in, each sending `data` and reading nothing."""
    crowd: list[socket.socket] = []
    while not _told_to_end():
        if len(crowd) < _MOST and (made := _connected(path)) is not None:
            crowd.append(made)
        crowd = [each for each in crowd if not data or _send(each, data)]


def idle(path: str) -> None:
    """Connects, and says nothing."""
    _crowd(path, b"")


def slow(path: str) -> None:
    """Asks, and reads no answer."""
    _crowd(path, _PING * 20)


def huge(path: str) -> None:
    """One line without an end."""
    _crowd(path, b"x" * 65_536)


def churn(path: str) -> None:
    """Connects and leaves."""
    while not _told_to_end():
        if (made := _connected(path)) is not None:
            made.close()


ATTACKS: dict[str, Callable[[str], None]] = {
    "idle": idle, "slow": slow, "huge": huge, "churn": churn,
}  # fmt: skip

if __name__ == "__main__":
    print("ready", flush=True)  # noqa: T201
    ATTACKS[sys.argv[1]](sys.argv[2])
