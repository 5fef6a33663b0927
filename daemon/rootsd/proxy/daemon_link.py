"""Connect a proxy to the daemon, or start the daemon in a separate process.

Starting is another process (`rootsd.service.autostart`), since what it takes would stay in the
memory of every bridge; and since it then is the version that lies on the disk, all of it, when the
bridge is left over from the version before.
"""

from __future__ import annotations

import os
import sys

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.system.ipc.connect import CONNECT_TIMEOUT_S, NotRunning, connect
from rootsd.system.runtime_dir import find_runtime_dirs

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

_MOST_SAID = 1 << 16
# -P: not a `rootsd` of the working directory
_STARTER = ("-P", "-m", "rootsd.service.autostart")


def connect_to_daemon(patience: float = CONNECT_TIMEOUT_S) -> socket.socket:
    """Return a connection to the first daemon found.

    Waits up to `patience` seconds for a daemon that accepts no connection at the moment. Raises
    NotRunning and other RootsdErrors.
    """
    nobody: RootsdError | None = None
    for folder in find_runtime_dirs():
        try:
            return connect(folder.mcp_socket, patience=patience)
        except NotRunning as error:
            nobody = error
    assert nobody is not None, "there is always a folder to look in"
    raise nobody


class AutostartProcess:
    """A process that makes a daemon run. It has ended when its descriptor ends."""

    def __init__(self) -> None:
        self._said = bytearray()
        self._fd, theirs = os.pipe()
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, theirs, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ]
        command = [sys.executable, *_STARTER]
        try:
            # In a group of its own: a client that ends our group must not stop it half-way.
            self._pid = os.posix_spawn(
                sys.executable, command, os.environ, file_actions=actions, setpgroup=0
            )
        except OSError:  # the installation was moved or removed
            self._pid = 0
        finally:
            os.close(theirs)

    def fileno(self) -> int:
        """Readable when `has_ended` has something to look at."""
        return self._fd

    def has_ended(self) -> bool:
        """Take in what it says; whether it has ended."""
        data = os.read(self._fd, _MOST_SAID)
        self._said += data
        return not data

    def outcome(self) -> RootsdError | None:
        """Why no daemon runs; None where one does. Once, after it has ended."""
        os.close(self._fd)
        if self._pid:
            os.waitpid(self._pid, 0)
        return _read(bytes(self._said))


def _read(said: bytes) -> RootsdError | None:
    """What `rootsd.service.autostart` printed, maybe another version of it."""
    # Importing JSON takes 7 ms, and only this way to the first answer needs it.
    from rootsd.core.parsing import parse_json  # noqa: PLC0415

    if said.strip() == b"ready":
        return None
    error = DaemonUnreachable("the daemon cannot be started", "rootsd up")
    try:
        told = parse_json(said.removeprefix(b"error "))
        error = DaemonUnreachable(str(told["message"]), str(told["remedy"]))
        error.code = ErrorCode(told["code"])
    except (ValueError, TypeError, KeyError):
        pass
    return error
