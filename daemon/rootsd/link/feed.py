"""Follow the daemon across its restarts.

`Feed` joins a `DaemonLink`, which connects and connects again, with a `FeedReader`, which reads
the messages. The program that owns it runs a poll(2) loop and calls `attend`, or calls `wait`.
"""

from __future__ import annotations

import math
import select
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.core.record import to_json
from rootsd.link import rpc
from rootsd.link.connect import CONNECT_TIMEOUT_S
from rootsd.link.daemon_link import DaemonLink
from rootsd.wire.feed import (
    FOLLOW_ID,
    FOLLOW_METHOD,
    MOVE_ID_PREFIX,
    MOVE_METHOD,
    Away,
    Connected,
    FeedEvent,
    FeedReader,
    SessionMoved,
    Widened,
    WidenedScope,
)
from rootsd.wire.hello import MoveResult, WorkFolders
from rootsd.wire.jsonrpc import Request, encode

_ANSWER_TIMEOUT_S = 10.0


class Feed:
    """The events of one subscription.

    `params` are those of the request `follow`. Once a daemon has answered, they continue the same
    session with the next daemon.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = dict(params)
        self.connect_timeout_s = CONNECT_TIMEOUT_S
        """How long one attempt waits for a daemon whose backlog of connections is full."""
        self.link = DaemonLink(self._connected, self._unreachable, self._connect)
        self.link.starts_daemons = False
        self.heard: bytearray | None = None
        """What the daemon has sent on this connection, if somebody else is to take it over."""
        self._reader = FeedReader()
        self._events: list[FeedEvent] = []
        self._answer_due = math.inf
        self._ids = FOLLOW_ID
        self._move: tuple[str, WorkFolders] | None = None  # without an answer yet
        self.link.policy.begin(time.monotonic())

    @property
    def deadline(self) -> float:
        """When to call `attend` even if no descriptor is ready."""
        if self.link.connection is not None:
            return self._answer_due
        return self.link.retry_at

    def interest(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptors to wait for, with their poll(2) events."""
        return self.link.interest()

    def attend(self) -> list[FeedEvent]:
        """Do what is due, and return what has happened."""
        self.link.attend()
        self.link.send()
        self._receive()
        if self.link.connection is not None and time.monotonic() >= self._answer_due:
            self.reject()
            silent = DaemonUnreachable("the daemon does not answer", rpc.RESTART)
            self._events.append(Away(silent))
        events, self._events = self._events, []
        return events

    def wait(self, timeout_s: float = math.inf, wake: int = -1) -> list[FeedEvent]:
        """Wait for the next events, for a limited time, or until `wake` is readable."""
        until = time.monotonic() + timeout_s
        while not (events := self.attend()):
            poll = select.poll()
            for descriptor, wanted in self.interest():
                poll.register(descriptor, wanted)
            if wake >= 0:
                poll.register(wake, select.POLLIN)
            left_s = min(self.deadline, until) - time.monotonic()
            ready = poll.poll(None if left_s == math.inf else math.ceil(max(left_s, 0) * 1000))
            if time.monotonic() >= until or any(descriptor == wake for descriptor, _ in ready):
                return self.attend()
        return events

    def send(self, method: str, params: Mapping[str, Any]) -> None:
        """Send another request on the connection, if there is one. Nobody reads its answer."""
        if self.link.connection is not None:
            self._ids += 1
            self.link.outgoing += encode(Request(self._ids, method, dict(params)))
            self.link.send()

    def move(self, folders: WorkFolders) -> None:
        """Say where the session works now. `SessionMoved` follows, unless another move does."""
        self._ids += 1
        self._move = id_, _ = f"{MOVE_ID_PREFIX}{self._ids}", folders
        if self.link.connection is not None:
            self.link.outgoing += encode(Request(id_, MOVE_METHOD, to_json(folders)))
            self.link.send()

    def give_back(self, events: Iterable[FeedEvent]) -> None:
        """Let the next `attend` return these events, too."""
        self._events[:0] = events

    def reject(self) -> None:
        """Connect again, because a message of this daemon cannot be understood."""
        self._hang_up(useful=False)

    def connection(self) -> socket.socket:
        """Return the connection, for another process. If it was lost, return one at its end."""
        if self.link.connection is None:
            ended, other = socket.socketpair()
            other.close()
            self.link.adopt(ended)
        assert self.link.connection is not None
        return self.link.connection

    def adopt(self, connection: socket.socket, heard: bytes) -> None:
        """Take over a connection on which the daemon has sent what another process `heard`."""
        self.link.adopt(connection)
        self._read(heard)

    def close(self) -> None:
        """Hang up."""
        self.link.hang_up()

    def _connect(self) -> socket.socket:
        return rpc.connect_control(self.connect_timeout_s)

    def _connected(self) -> None:
        if self.heard is not None:
            self.heard.clear()
        self._reader = FeedReader()
        self._answer_due = time.monotonic() + _ANSWER_TIMEOUT_S
        self.link.outgoing += encode(Request(FOLLOW_ID, FOLLOW_METHOD, self.params))
        self.link.send()

    def _unreachable(self, error: RootsdError) -> None:
        self._events.append(Away(error))

    def _receive(self) -> None:
        while (data := self.link.receive()) is not None:
            if not data:
                self._hang_up(useful=self._reader.is_answered)
                gone = rpc.DaemonGone("the daemon hung up", "rootsd status")
                self._events.append(Away(gone))
                return
            if not self._read(data):
                return

    def _read(self, data: bytes) -> bool:
        """Take what the daemon sent, and return whether it can be understood."""
        if self.heard is not None:
            self.heard += data
        try:
            for event in self._reader.read(data):
                if isinstance(event, Widened):
                    self._keep_widened(event.scope)
                else:
                    self._take(event)
        except RootsdError as error:
            self.reject()
            self._events.append(Away(error))
            return False
        return True

    def _hang_up(self, *, useful: bool) -> None:
        self.link.hang_up()
        self._answer_due = math.inf
        self.link.policy.lost(time.monotonic(), useful=useful)

    def _take(self, event: FeedEvent) -> None:
        if isinstance(event, Connected):
            self._answer_due = math.inf
            if event.result.get("start") is not None:
                hello = {**self.params["hello"], "start": event.result["start"]}
                self.params["hello"] = hello
            if self._move is not None:
                self.move(self._move[1])
        if isinstance(event, SessionMoved):
            if self._move is None or self._move[0] != event.id:
                return
            self._move = None
            if isinstance(event.outcome, MoveResult) and event.outcome.start is not None:
                start = to_json(event.outcome.start)
                self.params["hello"] = {**self.params["hello"], "start": start}
        self._events.append(event)

    def _keep_widened(self, more: Mapping[str, Any]) -> None:
        """Ask the next daemon for what was added to the scope, too."""
        hello = self.params["hello"]
        scope = dict(hello.get("scope", {}))
        for key in WidenedScope._fields:
            scope[key] = list(dict.fromkeys((*scope.get(key, ()), *more.get(key, ()))))
        self.params["hello"] = {**hello, "scope": scope}
