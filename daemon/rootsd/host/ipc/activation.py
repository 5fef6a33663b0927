"""Sockets that launchd listens on for us: launch_activate_socket(3) of macOS.

They stand in the agent's property list under `Sockets`, each by a name: launchd.plist(5).
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence
from typing import Any

_Fds = ctypes.POINTER(ctypes.c_int)

ACTIVATE_TYPES: Sequence[Any] = (
    ctypes.c_char_p, ctypes.POINTER(_Fds), ctypes.POINTER(ctypes.c_size_t),
)  # fmt: skip
# No such name in the property list; not started by launchd.
_NOT_OURS = (errno.ENOENT, errno.ESRCH)


def activated(name: str) -> list[int]:
    """The descriptors that launchd holds under `name`, which are ours from now on; none where it
    has no such name, or did not start us. Asking twice raises OSError with EALREADY."""
    libc = ctypes.CDLL(None)
    activate, free = libc.launch_activate_socket, libc.free
    activate.argtypes, activate.restype = ACTIVATE_TYPES, ctypes.c_int
    free.argtypes, free.restype = (ctypes.c_void_p,), None
    fds, count = _Fds(), ctypes.c_size_t(0)
    error = activate(name.encode(), ctypes.byref(fds), ctypes.byref(count))
    if error in _NOT_OURS:
        return []
    if error:
        raise OSError(error, f"launch_activate_socket of {name}")
    try:
        return fds[: count.value]
    finally:
        free(fds)
