"""Keep a program informed about the approved roots on `mcp.sock`, across restarts of the daemon.

The feed joins two parts: `DaemonLink` moves bytes and reconnects, `RootsSubscription` speaks the
protocol. The feed itself adds the time limits. Nobody waits forever on a daemon that is gone, that
hangs, or that ends as soon as it is asked. When a limit is over, the feed reports that nothing is
approved, which is the safe answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic

from rootsd.core.errors import RootsdError
from rootsd.link.connect import connect_to_daemon
from rootsd.link.daemon_link import DaemonLink
from rootsd.link.reconnect import GRACE_S
from rootsd.wire.hello import (
    Hello,
    MoveResult,
    ScopeRefused,
    WorkFolders,
    encode_proposed_folder,
)
from rootsd.wire.jsonrpc import LineReader, encode
from rootsd.wire.roots_subscription import Root, RootsSubscription, RootsUpdate

_MAX_RESPONSE_BYTES = 1 << 28
_CONNECT_TIMEOUT_S = 0.1
"""How long to wait for a daemon with a full backlog. All pipes stand still meanwhile."""


class RootsFeed(Generic[Root]):
    """A source of root updates. A poll(2) loop drives it.

    `read` reads an answer of the daemon; see RootsSubscription. `on_roots` is called with each
    update, and `on_error` with the reason why no roots are known. `on_outdated` is called when the
    last update may no longer be true; the next update follows within a bounded time. `on_moved`
    is called with the outcome of each move, before the update that follows it.
    """

    def __init__(
        self,
        greeting: Hello,
        read: Callable[[object], tuple[Root, ...]],
        on_roots: Callable[[RootsUpdate[Root]], None],
        on_error: Callable[[RootsdError], None],
        on_outdated: Callable[[], None] | None = None,
        on_moved: Callable[[MoveResult | RootsdError], None] | None = None,
    ) -> None:
        self._subscription = RootsSubscription(greeting, read)
        self._on_roots = on_roots
        self._on_error = on_error
        self._on_outdated = on_outdated
        self._on_moved = on_moved
        connect = partial(connect_to_daemon, _CONNECT_TIMEOUT_S)
        self.link = DaemonLink(self._connected, self._unreachable, connect)
        self._lines = LineReader(_MAX_RESPONSE_BYTES)
        self._has_given_up = False
        self._is_hung = False  # connected, but a response is overdue
        self._error: RootsdError | None = None
        self._response_due = math.inf
        self._outdated_until = math.inf
        self.link.policy.begin(time.monotonic())

    def interest(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptors to wait for, with their poll(2) events."""
        return self.link.interest()

    @property
    def deadline(self) -> float:
        """When to call `attend` even if no descriptor is ready."""
        if self.link.connection is not None:
            return min(self._response_due, self._outdated_until)
        policy = self.link.policy
        give_up = math.inf if self._has_given_up else policy.give_up_at
        return min(give_up, self.link.retry_at, self._outdated_until)

    def attend(self) -> None:
        """Do what is due. Call it when a descriptor is ready or the deadline has passed."""
        self.link.attend()
        if self.link.connection is not None:
            self.link.send()
            self._receive()
            self._check_timeout()
        elif not self._has_given_up and self.link.policy.is_hopeless(time.monotonic()):
            self._give_up()
        if time.monotonic() >= self._outdated_until:
            # Daemons came and ended one after another, and none of them answered.
            self._update(self._subscription.give_up())

    def query(self) -> None:
        """Request an update with the roots of this moment.

        A daemon that hangs gets one time limit only. Until it responds, nothing is approved.
        """
        if self._is_hung:
            self._subscription.query_later()
            self._update(self._subscription.give_up())
            return
        if self.link.connection is not None:
            self._send(self._subscription.query())
            self._check_timeout()
            return
        self._subscription.query_later()
        if self._has_given_up:
            if not self.link.is_refused:
                self.link.policy.asked(time.monotonic())
                self.link.attend()  # a daemon may be there again
            if self.link.connection is None:
                self._update(self._subscription.give_up())

    def report(self, names: tuple[str, ...]) -> None:
        """Report to the daemon which roots the server has."""
        notification = self._subscription.report(names)
        if self.link.connection is not None:
            self._send(notification)

    def propose(self, path: str) -> None:
        """Tell the daemon about a folder that is not approved, so that the user can decide."""
        if self.link.connection is not None:
            self._send(encode(encode_proposed_folder(path)))

    def move(self, folders: WorkFolders) -> None:
        """Tell the daemon where the session works now. `on_moved` gets the outcome."""
        line = self._subscription.move(folders)
        if self.link.connection is not None:
            self._send(line)

    def close(self) -> None:
        """Hang up."""
        self.link.hang_up()

    def _connected(self) -> None:
        self._has_given_up = False
        self._error = None
        self._lines = LineReader(_MAX_RESPONSE_BYTES)
        self._send(self._subscription.connected())
        self._response_due = time.monotonic() + GRACE_S

    def _unreachable(self, error: RootsdError) -> None:
        if self._has_given_up and self._error is None:
            self._on_error(error)  # The feed gave up before it knew the reason.
        self._error = error
        if self.link.start_error is not None and not self._has_given_up:
            self._give_up()

    def _give_up(self) -> None:
        """Report that nothing is approved, because no daemon can say what is."""
        self._has_given_up = True
        if self._error is not None:
            self._on_error(self._error)
        self._update(self._subscription.give_up())

    def _check_timeout(self) -> None:
        """Treat a daemon that does not respond in time like no daemon."""
        now = time.monotonic()
        if self._is_hung or not self._subscription.awaits_response:
            self._response_due = math.inf
        elif self._response_due == math.inf:
            self._response_due = now + GRACE_S
        elif now >= self._response_due:
            self._is_hung = True
            self._response_due = math.inf
            self._on_error(RootsdError("rootsd does not answer", "rootsd status"))
            self._update(self._subscription.give_up())

    def _check_outdated(self) -> None:
        if self._subscription.is_outdated:
            self._outdated_until = min(self._outdated_until, time.monotonic() + 2 * GRACE_S)
            if self._on_outdated is not None:
                self._on_outdated()

    def _update(self, update: RootsUpdate[Root]) -> None:
        if update.is_current:
            self._outdated_until = math.inf
        self._on_roots(update)

    def _send(self, data: bytes) -> None:
        self.link.outgoing += data
        self.link.send()

    def _receive(self) -> None:
        while (data := self.link.receive()) is not None:
            if not data:
                self._connection_lost()
                return
            self._lines.feed(data)
            try:
                while (line := self._lines.pop()) is not None:
                    self._take(line)
            except ScopeRefused as error:
                self._connection_lost()
                self.link.refuse()
                self._error = error
                self._give_up()
                return

    def _take(self, line: bytes) -> None:
        update, answer = self._subscription.take(line)
        self._check_outdated()
        if answer:
            self._send(answer)
        if isinstance(update, MoveResult | RootsdError):
            if self._on_moved is not None:
                self._on_moved(update)
        elif update is not None:
            self._response_due = math.inf
            self._is_hung = False
            self._update(update)

    def _connection_lost(self) -> None:
        self.link.hang_up()
        self._is_hung = False
        self._subscription.connection_lost()
        self._check_outdated()
        self.link.policy.lost(time.monotonic(), useful=self._subscription.useful)
