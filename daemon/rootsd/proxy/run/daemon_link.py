"""Keep the connection to the daemon open, and reconnect when it is lost."""

from __future__ import annotations

import math
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator

from rootsd.core.errors import RootsdError
from rootsd.proxy.daemon_link import AutostartProcess, connect_to_daemon
from rootsd.proxy.reconnect import GRACE_S, ReconnectPolicy
from rootsd.proxy.run.subscription import RootsSubscription, RootsUpdate
from rootsd.system.ipc.connect import NotRunning
from rootsd.wire.hello import Hello
from rootsd.wire.jsonrpc import LineReader

_CHUNK = 1 << 16
_LONGEST_ANSWER = 1 << 28
_CONNECT_S = 0.1
"""How long to wait for room in the backlog of a daemon: all pipes stand still meanwhile."""


class DaemonLink:
    """Keeps `tell` informed of the roots; lives in somebody else's loop of poll(2).

    `doubt` is called where what was told last may not hold any more; what does is told soon, and
    in bounded time in any case.
    """

    def __init__(
        self, greeting: Hello, tell: Callable[[RootsUpdate], None], doubt: Callable[[], None]
    ) -> None:
        self._subscription = RootsSubscription(greeting)
        self._on_roots = tell
        self._doubt = doubt
        self._reconnect = ReconnectPolicy()
        self._connection: socket.socket | None = None
        self._starter: AutostartProcess | None = None
        self._lines = LineReader(_LONGEST_ANSWER)
        self._unsent = bytearray()
        self._is_refused = False
        self._has_given_up = False
        self._is_silent = False  # the daemon is connected, and owes an answer for too long
        self._error: RootsdError | None = None
        self._answer_until = math.inf
        self._outdated_until = math.inf
        # As if it had been there a moment ago: it is worth waiting for.
        self._reconnect.connected()
        self._reconnect.lost(time.monotonic(), useful=True)

    def interest(self) -> Iterator[tuple[int, int]]:
        """The descriptors to wait for, with the events of poll(2)."""
        if self._connection is not None:
            yield (
                self._connection.fileno(),
                select.POLLIN | (select.POLLOUT if self._unsent else 0),
            )
        elif self._starter is not None:
            yield self._starter.fileno(), select.POLLIN

    @property
    def deadline(self) -> float:
        """When to call `attend` though nothing has come."""
        if self._connection is not None:
            return min(self._answer_until, self._outdated_until)
        give_up = math.inf if self._has_given_up else self._reconnect.give_up_at
        retry = self._reconnect.retry_at if self._is_away else math.inf
        return min(give_up, retry, self._outdated_until)

    def attend(self) -> None:
        """Do what can be done now; call it when a descriptor is ready or the deadline is over."""
        if self._starter is not None and _is_readable(self._starter.fileno()):
            self._watch(self._starter)
        if self._is_away and time.monotonic() >= self._reconnect.retry_at:
            self._attempt()
        if self._connection is not None:
            self._send(self._connection)
            self._receive(self._connection)
            self._check_timeout()
        elif not self._has_given_up and self._reconnect.is_hopeless(time.monotonic()):
            self._give_up()
        if time.monotonic() >= self._outdated_until:
            self._tell(self._subscription.give_up())  # one daemon after the other ends at once

    def ask(self) -> None:
        """Have the roots told as they are now, once more.

        A daemon that hangs is waited for once: until it answers, nothing is known to be approved.
        """
        if self._is_silent:
            self._subscription.query_later()
            self._tell(self._subscription.give_up())
            return
        if self._connection is not None:
            self._say(self._connection, self._subscription.query())
            self._check_timeout()
            return
        self._subscription.query_later()
        if self._has_given_up:
            if not self._is_refused:
                self._reconnect.asked(time.monotonic())
            self._tell(self._subscription.give_up())

    def report(self, names: tuple[str, ...]) -> None:
        """Say what the server was told."""
        notice = self._subscription.report(names)
        if self._connection is not None:
            self._say(self._connection, notice)

    def propose(self, path: str, reason: str) -> None:
        """Let the user know of a folder that is not approved."""
        if self._connection is not None:
            self._say(self._connection, self._subscription.propose(path, reason))

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()

    @property
    def _is_away(self) -> bool:
        return self._connection is None and self._starter is None and not self._is_refused

    def _attempt(self) -> None:
        now = time.monotonic()
        try:
            connection = connect_to_daemon(_CONNECT_S)
        except RootsdError as error:
            if isinstance(error, NotRunning) and self._reconnect.start(now):
                self._starter = AutostartProcess()
            else:
                self._miss(error)
            return
        connection.setblocking(False)  # noqa: FBT003  # the name is the socket module's
        self._connection = connection
        self._reconnect.connected()
        self._has_given_up = False
        self._error = None
        self._lines = LineReader(_LONGEST_ANSWER)
        self._say(connection, self._subscription.connected())
        self._answer_until = time.monotonic() + GRACE_S

    def _watch(self, awakening: AutostartProcess) -> None:
        if not awakening.has_ended():
            return
        self._starter = None
        error = awakening.outcome()
        if error is None:
            self._attempt()
            return
        self._reconnect.not_started()
        self._miss(error)
        if not self._has_given_up:
            self._give_up()

    def _miss(self, error: RootsdError) -> None:
        self._reconnect.missed(time.monotonic())
        if self._has_given_up and self._error is None:
            report_error(error)  # all was given up while the reason was not known
        self._error = error

    def _give_up(self) -> None:
        """Nobody can tell what is approved, so that nothing is."""
        self._has_given_up = True
        if self._error is not None:
            report_error(self._error)
        self._tell(self._subscription.give_up())

    def _check_timeout(self) -> None:
        """A daemon that hangs is as good as none."""
        now = time.monotonic()
        if self._is_silent or not self._subscription.awaits_response:
            self._answer_until = math.inf
        elif self._answer_until == math.inf:
            self._answer_until = now + GRACE_S
        elif now >= self._answer_until:
            self._is_silent = True
            self._answer_until = math.inf
            report_error(RootsdError("rootsd does not answer", "rootsd status"))
            self._tell(self._subscription.give_up())

    def _check_outdated(self) -> None:
        if self._subscription.is_outdated:
            self._outdated_until = min(self._outdated_until, time.monotonic() + 2 * GRACE_S)
            self._doubt()

    def _tell(self, update: RootsUpdate) -> None:
        if update.is_current:
            self._outdated_until = math.inf
        self._on_roots(update)

    def _say(self, connection: socket.socket, data: bytes) -> None:
        self._unsent += data
        self._send(connection)

    def _send(self, connection: socket.socket) -> None:
        try:
            while self._unsent:
                del self._unsent[: connection.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # lost, which receiving will show
            self._unsent.clear()

    def _receive(self, connection: socket.socket) -> None:
        while True:
            try:
                data = connection.recv(_CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._lose(connection)
                return
            self._lines.feed(data)
            try:
                while (line := self._lines.pop()) is not None:
                    told, answer = self._subscription.take(line)
                    self._check_outdated()
                    if answer:
                        self._say(connection, answer)
                    if told is not None:
                        self._answer_until = math.inf
                        self._is_silent = False
                        self._tell(told)
            except RootsdError as error:
                self._lose(connection)
                self._is_refused = True
                self._error = error
                self._give_up()
                return

    def _lose(self, connection: socket.socket) -> None:
        connection.close()
        self._connection = None
        self._is_silent = False
        self._unsent.clear()
        self._subscription.connection_lost()
        self._check_outdated()
        self._reconnect.lost(time.monotonic(), useful=self._subscription.useful)


def report_error(error: RootsdError) -> None:
    """Say on standard error, which is the server's as well, what is wrong."""
    sys.stderr.write(f"rootsd run: {error.message}; try: {error.remedy}\n")


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
