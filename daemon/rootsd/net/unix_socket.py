"""Fill two gaps in the socket module: Unix addresses of any length, and peer credentials.

The kernel's limit for an address is 107 bytes on Linux and 103 on macOS. A path below a temporary
or home folder is easily longer. For a long path, `address_of` names the folder through an open
descriptor (Linux, proc(5)) or by volume and inode (macOS, /.vol). A change of the working
directory would work, too, but it would affect all threads.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_MAX_PATH = 103 if sys.platform == "darwin" else 107


@contextmanager
def address_of(path: bytes) -> Iterator[bytes]:
    """Yield the address of `path` for bind(2) or connect(2). Raises OSError."""
    if len(path) <= _MAX_PATH:
        yield path
        return
    folder, _, name = path.rpartition(b"/")
    if sys.platform == "darwin":
        found = os.stat(folder)
        yield b"/.vol/%d/%d/%s" % (found.st_dev, found.st_ino, name)
        return
    # No O_NOFOLLOW: a short path may lead through a link, too.
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield b"/proc/self/fd/%d/%s" % (descriptor, name)
    finally:
        os.close(descriptor)


def listen_for_requests(path: bytes, backlog: int) -> socket.socket:
    """Listen at `path`, for connections that keep the limits of each message. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with address_of(path) as address:
        listener.bind(address)
    os.chmod(path, 0o600)
    listener.listen(backlog)
    return listener


# From sys/un.h and sys/ucred.h of macOS. Python's socket module lacks these names.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 0x001
_LOCAL_PEERPID = 0x002


class Peer:
    """A process and its user. `pid` is 0 for a process in another pid namespace.

    This is a plain class, because the lean programs import it, and `dataclasses` takes 6 ms.
    """

    __slots__ = ("pid", "uid")

    def __init__(self, pid: int, uid: int) -> None:
        self.pid = pid
        self.uid = uid

    def __repr__(self) -> str:
        return f"Peer(pid={self.pid}, uid={self.uid})"


def peer_of(connection: socket.socket) -> Peer:
    """Return the peer of a connected socket, as it was at the time of connect(2).

    On the connecting side, return the process that called listen(2), as it was at that time
    (unix(7), SO_PEERCRED). Raises OSError.
    """
    if sys.platform == "darwin":
        raw = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76)  # struct xucred
        uid: int = struct.unpack_from("=II", raw)[1]
        return Peer(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID), uid)
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("iII", raw)
    return Peer(pid, uid)
