"""Connect a program to the daemon, start a daemon if none runs, and reconnect after a loss.

`DaemonLink` holds one connection and knows no protocol. The program that owns it runs one poll(2)
loop. It calls `attend` when a descriptor of the link is ready or `retry_at` has come, and it
decides what to say on a new connection. `ReconnectPolicy` decides when to try again, when to start
a daemon, and when to stop waiting.

A separate process starts the daemon (`rootsd.service.autostart`) for two reasons. The modules that
the start needs would stay in the memory of every program. And after an upgrade, the new process
runs the version on the disk, even if this program is left over from the old version.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from contextlib import suppress

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.link.connect import NotRunning, connect_to_daemon
from rootsd.link.reconnect import ReconnectPolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CHUNK = 64 * 1024
_MAX_STARTER_OUTPUT = 1 << 16
_STARTER = "rootsd.service.autostart"


class DaemonLink:
    """One program's connection to the daemon, across restarts of the daemon.

    `on_connected` is called for each new connection, and `on_unreachable` for each failed attempt,
    with the reason. `connect` returns a new connection.
    """

    def __init__(
        self,
        on_connected: Callable[[], None],
        on_unreachable: Callable[[RootsdError], None],
        connect: Callable[[], socket.socket] = connect_to_daemon,
    ) -> None:
        self.policy = ReconnectPolicy()
        self.starts_daemons = True
        """Whether to start a daemon if none runs."""
        self.connection: socket.socket | None = None
        self.outgoing = bytearray()
        """Bytes for the daemon. `send` writes them. A loss of the connection discards them."""
        self.start_error: RootsdError | None = None
        """The reason why no daemon can be started, until one is connected."""
        self.is_refused = False
        """Whether the program must not use any daemon again; see `refuse`."""
        self._on_connected = on_connected
        self._on_unreachable = on_unreachable
        self._open = connect
        self._starter: AutostartProcess | None = None

    @property
    def is_away(self) -> bool:
        """Whether there is no daemon, and none is being started."""
        return self.connection is None and self._starter is None and not self.is_refused

    @property
    def starter_fd(self) -> int:
        """The descriptor that is readable when a start makes progress; -1 without a start."""
        return -1 if self._starter is None else self._starter.fileno()

    @property
    def retry_at(self) -> float:
        """When to call `attend` to connect again, or infinity."""
        return self.policy.retry_at if self.is_away else float("inf")

    def interest(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptors to wait for, with their poll(2) events."""
        if self.connection is not None:
            wanted = select.POLLIN | (select.POLLOUT if self.outgoing else 0)
            yield self.connection.fileno(), wanted
        elif self.starter_fd >= 0:
            yield self.starter_fd, select.POLLIN

    def attend(self) -> None:
        """Finish a start that has ended, and try to connect if that is due."""
        if self._starter is not None and is_readable(self._starter.fileno()):
            self._check_starter(self._starter)
        if self.is_away and time.monotonic() >= self.policy.retry_at:
            self._connect()

    def send(self) -> None:
        """Write as much of `outgoing` as the daemon takes now."""
        if self.connection is None:
            return
        try:
            while self.outgoing:
                del self.outgoing[: self.connection.send(self.outgoing)]
        except BlockingIOError:
            pass
        except OSError:  # The connection is lost, but `receive` may still find earlier answers.
            self.outgoing.clear()

    def finish_sending(self) -> None:
        """Tell the daemon that no more requests come; its answers still do."""
        with suppress(OSError):  # The connection is lost, which `receive` will find.
            if self.connection is not None:
                self.connection.shutdown(socket.SHUT_WR)

    def receive(self) -> bytes | None:
        """Return what the daemon sent: None if there is nothing now, b"" if it hung up."""
        if self.connection is None:
            return None
        try:
            return self.connection.recv(_CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def hang_up(self) -> None:
        """Close the connection. The next attempt comes when the policy says so."""
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        self.outgoing.clear()

    def adopt(self, connection: socket.socket) -> None:
        """Take a connection to a daemon as the present one."""
        connection.settimeout(0)
        self.connection = connection
        self.start_error = None
        self.policy.connected()

    def refuse(self) -> None:
        """Close the connection for good, because this daemon would answer with too much."""
        self.hang_up()
        self.is_refused = True

    def _connect(self) -> None:
        now = time.monotonic()
        try:
            connection = self._open()
        except RootsdError as error:
            is_gone = isinstance(error, NotRunning)
            if is_gone and self.starts_daemons and self.policy.start(now):
                self._starter = AutostartProcess()
            else:
                self._miss(self.start_error or error)
            return
        self.adopt(connection)
        self._on_connected()

    def _check_starter(self, starter: AutostartProcess) -> None:
        if not starter.has_ended():
            return
        self._starter = None
        self.start_error = starter.outcome()
        if self.start_error is None:
            self._connect()
        else:
            self.policy.not_started()
            self._miss(self.start_error)

    def _miss(self, error: RootsdError) -> None:
        self.policy.missed(time.monotonic())
        self._on_unreachable(error)


class AutostartProcess:
    """A process that starts a daemon. It has ended when its output ends."""

    def __init__(self) -> None:
        from rootsd.processes.own_program import module_command  # noqa: PLC0415 - rarely used

        self._output = bytearray()
        self._fd, write_end = os.pipe()
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, write_end, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ]
        command = module_command(_STARTER)
        try:
            # It has its own process group: a client that kills ours must not stop it half-way.
            self._pid = os.posix_spawn(
                sys.executable, command, os.environ, file_actions=actions, setpgroup=0
            )
        except OSError:  # The installation was moved or removed.
            self._pid = 0
        finally:
            os.close(write_end)

    def fileno(self) -> int:
        """Return the descriptor that is readable when `has_ended` can make progress."""
        return self._fd

    def has_ended(self) -> bool:
        """Read some output. Return whether the process has ended."""
        data = os.read(self._fd, _MAX_STARTER_OUTPUT)
        self._output += data
        return not data

    def outcome(self) -> RootsdError | None:
        """Return why no daemon runs, or None if one does. Call it once, after the end."""
        os.close(self._fd)
        if self._pid:
            os.waitpid(self._pid, 0)
        return _parse_outcome(bytes(self._output))


def _parse_outcome(output: bytes) -> RootsdError | None:
    """Parse the output of `rootsd.service.autostart`, which may be another version."""
    # Importing JSON takes 7 ms, and only a failed start needs it.
    from rootsd.core.parsing import parse_json  # noqa: PLC0415

    if output.strip() == b"ready":
        return None
    error = DaemonUnreachable("the daemon cannot be started", "rootsd up")
    try:
        reason = parse_json(output.removeprefix(b"error "))
        error = DaemonUnreachable(str(reason["message"]), str(reason["remedy"]))
        error.code = ErrorCode(reason["code"])
    except (ValueError, TypeError, KeyError):
        pass
    return error


def is_readable(descriptor: int) -> bool:
    """Return whether a read of `descriptor` would not block."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
