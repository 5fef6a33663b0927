"""Connect to a socket of the daemon, verify its owner, and explain failures.

This module uses only the standard library. `rootsd.link.sandbox` finds out whether a sandbox is
the cause of a failure.
"""

from __future__ import annotations

import errno
import os
import socket
import struct

from rootsd.core.errors import Busy, DaemonUnreachable, ErrorCode, RootsdError
from rootsd.net.unix_socket import address_of, peer_of
from rootsd.places.runtime_dir import find_runtime_dirs, unsafe_reason

CONNECT_TIMEOUT_S = 5.0
# No process listens: the daemon never started, or it has ended and may have left a stale socket.
_NOT_LISTENING = (errno.ENOENT, errno.ENOTDIR, errno.ECONNREFUSED)


class NotRunning(DaemonUnreachable):
    """No process listens on the socket."""


class Sandboxed(RootsdError):
    """A sandbox keeps this process from using the socket."""

    code = ErrorCode.REFUSED


class ControlSocketHidden(Sandboxed):
    """A sandbox exposes the folder of the MCP socket, but hides the control socket."""


class InsideWall(ControlSocketHidden):
    """A confined program asked for the control socket, which does not exist inside the wall."""


class ForeignSocket(RootsdError):
    """Another user's process listens there, or the folder is not safe."""

    code = ErrorCode.REFUSED


def connect(path: bytes, *, timeout_s: float = CONNECT_TIMEOUT_S) -> socket.socket:
    """Return a connected, blocking socket to the daemon at `path`.

    Waits up to `timeout_s` seconds while the daemon's backlog is full. Raises NotRunning,
    ForeignSocket, Sandboxed, Busy, or DaemonUnreachable.
    """
    try:
        connection = socket.socket(socket.AF_UNIX)
    except OSError as error:
        raise _explain(error, path) from error
    try:
        _connect_within(connection, path, timeout_s)
        _check_folder(os.path.dirname(path))
        _check_server(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_daemon(timeout_s: float = CONNECT_TIMEOUT_S) -> socket.socket:
    """Return a connection to the first daemon found.

    Wait up to `timeout_s` seconds for a daemon whose backlog of connections is full. Raise
    NotRunning if no daemon listens, and other RootsdErrors if it cannot be reached.
    """
    not_running: RootsdError | None = None
    for folder in find_runtime_dirs():
        try:
            return connect(folder.mcp_socket, timeout_s=timeout_s)
        except NotRunning as error:
            not_running = error
    assert not_running is not None, "there is always a folder to look in"
    raise not_running


def _connect_within(connection: socket.socket, path: bytes, timeout_s: float) -> None:
    # While the backlog is full, the kernel waits for as long as SO_SNDTIMEO allows (unix(7)). With
    # a timeout of the socket module, connect would fail with EAGAIN at once, and we would have to
    # guess when to retry. macOS does not wait. It refuses at once, which looks like "not running".
    try:
        _limit_waiting(connection, timeout_s)
        with address_of(path) as address:
            connection.connect(address)
        _limit_waiting(connection, 0)
    except OSError as error:
        raise _explain(error, path) from error


def _limit_waiting(connection: socket.socket, seconds: float) -> None:
    whole = int(seconds)
    limit = struct.pack("@ll", whole, int((seconds - whole) * 1_000_000))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _explain(error: OSError, path: bytes) -> RootsdError:
    shown = path.decode(errors="backslashreplace")
    if error.errno in _NOT_LISTENING:
        return NotRunning("rootsd is not running", "rootsd up")
    if error.errno == errno.EAGAIN:
        return Busy("rootsd does not accept connections at the moment", "rootsd status")
    # File permissions give EACCES; system call filters and the macOS sandbox give EPERM, and the
    # filter of a static wall gives EAFNOSUPPORT.
    if error.errno in (errno.EPERM, errno.EAFNOSUPPORT):
        return Sandboxed(
            "a sandbox forbids this program to use the sockets of rootsd",
            "run it outside, or see docs/guide/sandboxes.md",
        )
    if error.errno == errno.EACCES:
        return ForeignSocket(f"{shown} is closed to you", f"ls -ld {shown}")
    return DaemonUnreachable(f"{shown} cannot be reached: {error.strerror}", "rootsd status")


def _check_folder(folder: bytes) -> None:
    """Raise ForeignSocket if another user could have replaced the socket in `folder`."""
    if why := unsafe_reason(folder):
        shown = folder.decode(errors="backslashreplace")
        raise ForeignSocket(
            f"{shown} {why}", f"rootsd down && ls -ld {shown} && chmod 700 {shown}"
        )


def _check_server(connection: socket.socket, path: bytes) -> None:
    uid = peer_of(connection).uid
    if uid != os.geteuid():
        shown = path.decode(errors="backslashreplace")
        raise ForeignSocket(f"{shown} is served by user {uid}, not by you", f"ls -l {shown}")
