"""Listening sockets that the supervisor opened before it started us: sd_listen_fds(3), and
launch_activate_socket(3) on macOS.

Clients then wait instead of being refused while the daemon restarts, and it can start on demand.
"""

from __future__ import annotations

import os
import socket
import stat
import sys

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.host.ipc.activation import activated
from rootsd.host.ipc.sockets import Listener

FIRST_FD = 3
CONTROL, MCP = "control", "mcp"
_NAMES = (CONTROL, MCP)
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


class BadHandover(RootsdError):
    """What was handed over cannot be served, or not safely."""

    code = ErrorCode.BAD_CONFIG


def handed_over() -> dict[str, Listener]:
    """The listeners that were handed to this process, by name; what is missing we open ourselves.

    Only once in a process. Raises BadHandover.
    """
    return _of_launchd() if sys.platform == "darwin" else _of_systemd()


def _of_launchd() -> dict[str, Listener]:
    given: dict[str, Listener] = {}
    for name in _NAMES:
        try:
            fds = activated(name)
        except OSError as error:
            raise BadHandover(f"{name}: {error.strerror}", "launchctl print gui/$UID") from error
        if len(fds) > 1:
            raise BadHandover(
                f"{len(fds)} sockets called {name} were handed over, not one",
                "set one SockPathName for it in the property list",
            )
        if fds:
            given[name] = _listener(name, fds[0])
    return given


def _of_systemd() -> dict[str, Listener]:
    # Out of the environment: no child is meant by them.
    pid, number, names = (os.environ.pop(variable, "") for variable in _VARIABLES)
    if pid != str(os.getpid()) or not number.isdecimal():
        return {}
    fds = range(FIRST_FD, FIRST_FD + int(number))
    called = names.split(":") if names else []
    if sorted(called) != sorted(set(called) & set(_NAMES)) or len(called) != len(fds):
        raise BadHandover(
            f"sockets called {called!a} were handed over, not one of each: {', '.join(_NAMES)}",
            "set FileDescriptorName= in the socket units",
        )
    return {name: _listener(name, fd) for name, fd in zip(called, fds, strict=True)}


def _listener(name: str, fd: int) -> Listener:
    try:
        os.set_inheritable(fd, False)  # noqa: FBT003 - its name says what it sets
        listening = socket.socket(fileno=fd)
        is_ours = listening.family == socket.AF_UNIX and listening.type == socket.SOCK_STREAM
        accepts = is_ours and listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        address = listening.getsockname() if accepts else ""
    except OSError as error:
        raise BadHandover(f"{name}: {error.strerror}", "systemctl --user status") from error
    path = os.fsencode(address)
    if not path.startswith(b"/"):
        raise BadHandover(
            f"{name} is no listening unix socket with a path",
            "set ListenStream= in the socket unit to an absolute path",
        )
    try:
        _check_private(name, path)
    except BadHandover:
        listening.close()
        raise
    listening.settimeout(0)
    return Listener(listening, path, keeps_name=True)


def _check_private(name: str, path: bytes) -> None:
    for place in (path, os.path.dirname(path)):
        try:
            found = os.lstat(place)
        except OSError as error:
            raise BadHandover(f"{name}: {error.strerror}", "systemctl --user restart") from error
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            shown = place.decode(errors="backslashreplace")
            raise BadHandover(
                f"{shown} is open to other users",
                "set SocketMode=0600 and DirectoryMode=0700 in the socket unit",
            )
