"""Start the process that keeps what the programs of a wall see, and hear from it.

The *warden* applies changes to what programs see. It has its own session, so that no Ctrl-Z stops
it: it must always be able to take a root away. It ends when its owner closes the channel. When the
warden ends, for whatever reason, its programs end: `supervision` watches the pipe `Warden.alive`.

An owner gives orders over the channel (see `orders`). Or the warden follows a `WardenFeed`, which
is how `rootsd confine` follows the daemon.

`warden_loop` is what the process does. It loads most modules of the wall, and its owner loads
others. So the owner forks it first, as a `WaitingWarden`: both load at once, and the warden waits
for a `WardenStart`.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NoReturn

from rootsd.core.mount_plan import ConfinedRoot, ViewEntry
from rootsd.core.quick_tuple import NamedTuple
from rootsd.core.record import BadRecord, Text, from_line, to_line
from rootsd.core.wall import ProtectionPolicy, RevokePolicy
from rootsd.wall.git.wall_folders import CHANGES, names_in
from rootsd.wall.kernel.orders import (
    ChangeNews,
    OrderKind,
    PauseNews,
    PauseState,
    RootNews,
    WardenOrder,
    WardenReport,
    decode_news,
)
from rootsd.wall.kernel.supervision import Layer

GIVEN, TREE = b"/given", b"/tree"
"""The folders, in that of a wall, with the files that a person gives, and with the mounts."""
VIEW = b"/view"
"""The folder in `TREE` that is the root folder of the programs."""
_MAX_FDS = 3
"""How many descriptors come with the first line of each side."""
_CHUNK = 1 << 16


class WardenSettings(NamedTuple):
    """The fixed part of a wall. `folder` is private to this warden, on a disk.

    It holds what the engine needs. `kept` is for what all programs of this name keep; by default,
    that is in `folder`, too. `home` is the real home folder of the user. `without` are the layers
    that programs run without. With `has_new_worktrees`, programs may ask for folders beside roots.
    """

    folder: Text
    entries: tuple[ViewEntry, ...]
    home: bytes
    protection: ProtectionPolicy = ProtectionPolicy.UNTRACKED
    on_revoke: RevokePolicy = RevokePolicy.TELL
    without: frozenset[Layer] = frozenset()
    kept: Text = b""
    has_new_worktrees: bool = False


class FollowedRoots(NamedTuple):
    """How a wall follows the daemon.

    `hidden` are the paths to mask in roots. Of the root around the folder `below`, programs see
    only that folder; it is empty for the whole root. `network` and `stays_open` are for the
    reports to the daemon, and `heard` is what the daemon has said so far to the owner of a warden.
    """

    hidden: frozenset[bytes]
    below: Text
    network: bool
    stays_open: tuple[str, ...]
    heard: Text = b""


class WardenStart(NamedTuple):
    """The line with which a warden starts. The lock and the listener come with it.

    The warden holds the lock until it has done all work. The listener leads to who must know the
    roots: see `root_news`. Tests leave out both.

    A warden with `followed` gets the connection to the daemon, too, and neither roots nor denied
    folders.
    """

    settings: WardenSettings
    roots: tuple[ConfinedRoot, ...] = ()
    denied: frozenset[bytes] = frozenset()
    followed: FollowedRoots | None = None


class WardenStarted(NamedTuple):
    """The answer to a start, with `Warden.ready` and the gates. Without `first`, it is a failure.

    Then `error` is its number, and `step` says what was attempted.
    """

    variables: Mapping[str, str] = MappingProxyType({})
    notes: tuple[str, ...] = ()
    first: WardenReport | None = None
    error: int = errno.EIO
    step: str = "the warden ended"


class WardenEnded(NamedTuple):
    """The last line of a warden that has done all its work, with sentences for people."""

    left_behind: tuple[str, ...]


ServeUntil = Callable[[socket.socket], None]
"""Serves the listener of a warden (see `root_news`), until a channel is readable."""
BeWarden = Callable[[socket.socket, int], NoReturn]
"""Is a warden, with its channel and its end of the pipe `Warden.alive`."""


class WallSetupFailed(OSError):
    """An error of the kernel while a wall is built. `step` says what was attempted."""

    def __init__(self, error: int, step: str) -> None:
        super().__init__(error, step)
        self.step = step


class Warden(NamedTuple):
    """A running warden, as its owner sees it.

    `gates` are descriptors with which a program gets behind the wall; their meaning depends on the
    engine. A program's process waits until `ready` is readable, since the warden still notes the
    state of the roots while that process is made. `folder` is that of the settings, `alive` is
    readable (at its end) when the warden has ended, and `channel` is for orders. Programs need
    `variables` in their environment. `notes` are what could not be shown at the start, as
    sentences, and `first` is the first state. `since` is the time of the start, in seconds.
    """

    pid: int
    ready: int
    gates: tuple[int, ...]
    folder: bytes
    alive: int
    channel: socket.socket
    variables: Mapping[str, str]
    notes: tuple[str, ...]
    first: WardenReport
    since: float

    def close_gate(self) -> None:
        """Close the gates and the pipes, after the last program was started."""
        for fd in (self.ready, *self.gates, self.alive):
            os.close(fd)

    def wait_ready(self) -> None:
        """Wait in a program's process until it may run. Raises OSError if the warden ends."""
        poll = select.poll()
        poll.register(self.ready, select.POLLIN)
        if not poll.poll()[0][1] & select.POLLIN:
            raise OSError(errno.EIO, "the warden ended")

    def end(self) -> list[str]:
        """Let the warden end, and with it the programs, and wait until it has done all its work.

        Returns what the programs have left behind, as sentences. The process may live a little
        longer, because the kernel takes time for the end of namespaces and watches.
        """
        told, lines = b"", tuple[str, ...]()
        with suppress(OSError):  # it may have ended already
            self.channel.settimeout(None)
            self.channel.shutdown(socket.SHUT_WR)
            while data := self.channel.recv(_CHUNK):
                told += data
        self.channel.close()
        try:
            lines = from_line(WardenEnded, told[:-1].rpartition(b"\n")[2]).left_behind
        except BadRecord:  # it was killed, and may hold its lock until the very end
            self.reap()
        return [*self._left_behind(), *lines]

    def _left_behind(self) -> list[str]:
        if not any(name.endswith(b".json") for name in names_in(self.folder + CHANGES)):
            return []
        # Most sessions leave nothing.
        from rootsd.wall.git.left_behind import SessionEnd, reports_of  # noqa: PLC0415
        from rootsd.wall.git.left_behind_reports import conclude_unfinished  # noqa: PLC0415

        with suppress(OSError):  # if the warden was killed, this process looks
            conclude_unfinished(self.folder, SessionEnd.ORDERLY)
        new = (each for each in reports_of(self.folder) if each.ended >= self.since)
        return [sentence for report in new for sentence in report.sentences()]

    def reap(self) -> None:
        """Wait for the end of the process. An owner that goes on must call this after `end`."""
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class WaitingWarden:
    """A process that is to be a warden. It loads its modules, and waits for `start`."""

    def __init__(self, be_warden: BeWarden) -> None:
        """Fork a process that calls `be_warden`."""
        self._channel, theirs = socket.socketpair()
        self._alive, held_by_warden = os.pipe2(os.O_CLOEXEC)
        self._is_started = False
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.setsid()
                self._channel.close()
                os.close(self._alive)
                be_warden(theirs, held_by_warden)
            except BaseException as error:  # noqa: BLE001 - this process must never return
                with suppress(OSError):
                    send_line(theirs, _failure(error))
            finally:
                os._exit(1)
        theirs.close()
        os.close(held_by_warden)

    def start(
        self,
        start: WardenStart,
        fds: Sequence[int] = (),
        serve_until: ServeUntil | None = None,
    ) -> Warden:
        """Start the warden with `fds`, and return when it is ready. Raises WallSetupFailed."""
        since = time.time()
        self._is_started = True
        with suppress(OSError):  # it has ended, and may say why
            send_line(self._channel, start, fds)
        if serve_until is not None:
            serve_until(self._channel)
        line, fds = receive_line(self._channel)
        answer = from_line(WardenStarted, line or b"{}")
        if answer.first is None:
            self._is_started = False
            self.close()
            raise WallSetupFailed(answer.error, answer.step)
        ready, *gates = fds
        return Warden(
            self._pid, ready, tuple(gates), start.settings.folder, self._alive, self._channel,
            answer.variables, answer.notes, answer.first, since,
        )  # fmt: skip

    def close(self) -> None:
        """End the process, unless it was started."""
        if self._is_started:
            return
        self._is_started = True
        self._channel.close()
        os.close(self._alive)
        os.waitpid(self._pid, 0)


class WardenNews:
    """What a warden that follows a feed tells the process that waits for its program."""

    def __init__(self, channel: socket.socket) -> None:
        channel.settimeout(0)
        self._channel = channel
        self._lines = bytearray()
        self.lost: tuple[bytes, ...] = ()
        """The roots for which the warden has ended itself and its programs."""
        self._last = PauseNews(PauseState.RUNNING)

    @property
    def state(self) -> PauseState:
        """Whether the programs run."""
        return self._last.state

    def fileno(self) -> int:
        """Return the descriptor to wait for. It is -1 after the end of the warden."""
        return self._channel.fileno()

    def take(self) -> list[PauseNews | RootNews]:
        """Return what has changed for the programs. Do nothing if there is no news."""
        changes: list[PauseNews | RootNews] = []
        try:
            data = self._channel.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._channel.close()
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            with suppress(BadRecord):  # it has failed, and ends
                match decode_news(bytes(line)):
                    case WardenReport(change=change):
                        self.lost += change.lost
                    case PauseNews() as news:
                        changes += [news] if news != self._last else []
                        self._last = news
                    case RootNews() as news:
                        changes.append(news)
                    case ChangeNews():
                        pass  # it tells its feed
        return changes

    def let_run(self) -> None:
        """Ask the warden to let stopped programs run for a while."""
        with suppress(OSError):
            self._channel.send(to_line(WardenOrder(0, OrderKind.CONTINUE)))


def send_line(channel: socket.socket, record: tuple[Any, ...], fds: Sequence[int] = ()) -> None:
    """Send a line, with descriptors, on a channel that blocks. Raises OSError."""
    line = memoryview(to_line(record))
    sent = socket.send_fds(channel, [line], fds)
    channel.sendall(line[sent:])


def receive_line(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Wait for a line with descriptors. At the end of the channel, it is empty."""
    with suppress(ConnectionResetError):
        # The descriptors come with the first byte. Another line may follow.
        line, fds, _, _ = socket.recv_fds(channel, 1, _MAX_FDS, socket.MSG_CMSG_CLOEXEC)
        while line and not line.endswith(b"\n"):
            more = channel.recv(_CHUNK, socket.MSG_PEEK)
            line = more and line + channel.recv(more.find(b"\n") + 1 or len(more))
        return line, fds
    return b"", []


def _failure(error: BaseException) -> WardenStarted:
    number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
    step = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
    return WardenStarted(error=number, step=step)
