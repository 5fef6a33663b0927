"""Take over the listening sockets that systemd or launchd opened.

With such sockets, clients wait while the daemon restarts, instead of being refused, and the daemon
can start on demand. On macOS, the property list of the launchd agent names them under `Sockets`.
Sources: sd_listen_fds(3), launch_activate_socket(3), launchd.plist(5).
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import stat
import sys
from collections.abc import Sequence
from typing import Any

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.net.listener import Listener

_Fds = ctypes.POINTER(ctypes.c_int)

ACTIVATE_TYPES: Sequence[Any] = (
    ctypes.c_char_p, ctypes.POINTER(_Fds), ctypes.POINTER(ctypes.c_size_t),
)  # fmt: skip
# The property list has no such name, or launchd did not start this process.
_NOT_ACTIVATED = (errno.ENOENT, errno.ESRCH)


def launchd_sockets(name: str) -> list[int]:
    """Take the descriptors that launchd holds under `name`.

    Returns none if launchd has no such name, or did not start this process. A second call raises
    OSError with EALREADY.
    """
    libc = ctypes.CDLL(None)
    activate, free = libc.launch_activate_socket, libc.free
    activate.argtypes, activate.restype = ACTIVATE_TYPES, ctypes.c_int
    free.argtypes, free.restype = (ctypes.c_void_p,), None
    fds, count = _Fds(), ctypes.c_size_t(0)
    error = activate(name.encode(), ctypes.byref(fds), ctypes.byref(count))
    if error in _NOT_ACTIVATED:
        return []
    if error:
        raise OSError(error, f"launch_activate_socket of {name}")
    try:
        return fds[: count.value]
    finally:
        free(fds)


FIRST_FD = 3
CONTROL, MCP = "control", "mcp"
_NAMES = (CONTROL, MCP)
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


class BadInheritedSocket(RootsdError):
    """An inherited socket cannot be used, or is not safe."""

    code = ErrorCode.BAD_CONFIG


def inherited_listeners() -> dict[str, Listener]:
    """Return the listeners that this process inherited, by name. The caller opens missing ones.

    Call this only once in a process. Raises BadInheritedSocket.
    """
    return _of_launchd() if sys.platform == "darwin" else _of_systemd()


def _of_launchd() -> dict[str, Listener]:
    given: dict[str, Listener] = {}
    for name in _NAMES:
        try:
            fds = launchd_sockets(name)
        except OSError as error:
            raise BadInheritedSocket(
                f"{name}: {error.strerror}", "launchctl print gui/$UID"
            ) from error
        if len(fds) > 1:
            raise BadInheritedSocket(
                f"{len(fds)} sockets called {name} were handed over, not one",
                "set one SockPathName for it in the property list",
            )
        if fds:
            given[name] = _listener(name, fds[0])
    return given


def _of_systemd() -> dict[str, Listener]:
    # Remove the variables, because they are not for child processes.
    pid, number, names = (os.environ.pop(variable, "") for variable in _VARIABLES)
    if pid != str(os.getpid()) or not number.isdecimal():
        return {}
    fds = range(FIRST_FD, FIRST_FD + int(number))
    called = names.split(":") if names else []
    if sorted(called) != sorted(set(called) & set(_NAMES)) or len(called) != len(fds):
        raise BadInheritedSocket(
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
        raise BadInheritedSocket(f"{name}: {error.strerror}", "systemctl --user status") from error
    path = os.fsencode(address)
    if not path.startswith(b"/"):
        raise BadInheritedSocket(
            f"{name} is not a listening unix socket with a path",
            "set ListenStream= in the socket unit to an absolute path",
        )
    try:
        _check_private(name, path)
    except BadInheritedSocket:
        listening.close()
        raise
    listening.settimeout(0)
    return Listener(listening, path, keeps_name=True)


def _check_private(name: str, path: bytes) -> None:
    for place in (path, os.path.dirname(path)):
        try:
            found = os.lstat(place)
        except OSError as error:
            raise BadInheritedSocket(
                f"{name}: {error.strerror}", "systemctl --user restart"
            ) from error
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            shown = place.decode(errors="backslashreplace")
            raise BadInheritedSocket(
                f"{shown} is open to other users",
                "set SocketMode=0600 and DirectoryMode=0700 in the socket unit",
            )
