"""Who is at the other end of a unix socket, as the kernel tells."""

from __future__ import annotations

import socket
import struct
import sys

# sys/un.h and sys/ucred.h of macOS; Python's socket module lacks the names.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 0x001
_LOCAL_PEERPID = 0x002


class Peer:
    """A process and its user. `pid` is 0 where the kernel hides it: another pid namespace.

    A plain class: `dataclasses` would cost the lean programs, which import this, 6 ms.
    """

    __slots__ = ("pid", "uid")

    def __init__(self, pid: int, uid: int) -> None:
        self.pid = pid
        self.uid = uid

    def __repr__(self) -> str:
        return f"Peer(pid={self.pid}, uid={self.uid})"


def peer_of(connection: socket.socket) -> Peer:
    """The peer of a connected socket, as it was when it connected; on the connecting side, the
    process that called listen(2), as it was then (unix(7), SO_PEERCRED). Raises OSError."""
    if sys.platform == "darwin":
        raw = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76)  # struct xucred
        uid: int = struct.unpack_from("=II", raw)[1]
        return Peer(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID), uid)
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("iII", raw)
    return Peer(pid, uid)
