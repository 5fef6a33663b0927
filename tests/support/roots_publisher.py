"""A control socket that only publishes roots to wardens, in place of a daemon."""

from __future__ import annotations

import json
import os
import selectors
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.wall import WallUse
from rootsd.net.unix_socket import address_of
from rootsd.wall.session.view_feed import WallSubscription, answered, ask, follow_params
from rootsd.wire.feed import FEED_VERSION
from rootsd.wire.hello import Hello
from support.sent_view import SentView

_HANG_GUARD_S = 60


class RootsPublisher:
    """Answers `follow` with the `first` roots, sends changes, and keeps the reports of wardens.

    It refuses other versions of the feed than `version`, as a daemon does. `start` is the one of
    the session.
    """

    def __init__(
        self,
        rootsd_dir: Path,
        settings: dict[str, Any] | None = None,
        first: tuple[ConfinedRoot, ...] = (),
        version: int = FEED_VERSION,
    ) -> None:
        self.rootsd_dir = rootsd_dir
        self.reports: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.reported = threading.Condition()
        self.version = version
        self.start: dict[str, Any] | None = None
        self.unknown: list[str] = []
        self.similar: list[str] = []
        self._settings = settings or {}
        self._roots = first
        self._denied: tuple[bytes, ...] = ()
        self._lock = threading.Lock()
        self._subscribers: dict[socket.socket, SentView] = {}
        for name in ("run", "run/pub", "run/ctl"):
            (rootsd_dir / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        path = rootsd_dir / "run" / "ctl" / "control.sock"
        path.unlink(missing_ok=True)
        with address_of(os.fsencode(path)) as address:
            self._listener.bind(address)
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wake, self._waker = socket.socketpair()
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._buffers: dict[socket.socket, bytes] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def publish(self, *roots: ConfinedRoot, denied: tuple[bytes, ...] = ()) -> None:
        """Publish exactly these roots and denied folders. They are sent when this returns."""
        with self._lock:
            self._roots, self._denied = roots, denied
            for subscriber, sent in self._subscribers.items():
                _send_view(subscriber, sent.change_to(*roots, denied=denied))

    def publish_and_wait(self, *roots: ConfinedRoot) -> None:
        """Publish other roots, and wait until a warden shows them."""
        with self.reported:
            self.publish(*roots)
            assert self.reported.wait_for(self._are_shown, _HANG_GUARD_S)

    def _are_shown(self) -> bool:
        sent = [*self._subscribers.values()]
        return bool(sent) and all(each.is_shown for each in sent)

    def send_to_all(self, change: dict[str, Any]) -> None:
        """Send a change of the view as it is, however wrong."""
        with self._lock:
            for subscriber in self._subscribers:
                _send_view(subscriber, change)

    def widen(self, scope: dict[str, Any]) -> None:
        """Tell all subscribers what was added to their scope."""
        with self._lock:
            for subscriber in self._subscribers:
                subscriber.sendall(_line({"jsonrpc": "2.0", "method": "widen", "params": scope}))

    def drop(self) -> None:
        """Close all subscribers' connections, like a daemon that ends."""
        with self._lock:
            for subscriber in self._subscribers:
                subscriber.shutdown(socket.SHUT_RDWR)
            self._subscribers.clear()

    def close(self) -> None:
        """End, like a daemon. Another one may take the socket. It may be called again."""
        if self._listener.fileno() < 0:
            return
        self._waker.close()
        self._thread.join()
        self._wake.close()
        self._selector.close()
        self._listener.close()
        for connection in self._buffers:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._wake:
                    return
                if key.fileobj is self._listener:
                    connection, _ = self._listener.accept()
                    self._buffers[connection] = b""
                    self._selector.register(connection, selectors.EVENT_READ)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._take(key.fileobj)

    def _take(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(connection)
            with self._lock:
                self._subscribers.pop(connection, None)
            del self._buffers[connection]
            connection.close()
            return
        *lines, self._buffers[connection] = (self._buffers[connection] + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if request["method"] == "follow" and request["params"]["version"] != self.version:
                why = f"this program does not speak version {self.version}"
                advice = {"code": "failed", "remedy": "start the program again"}
                error = {"code": -1, "message": why, "data": advice}
                connection.sendall(_line({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            elif request["method"] == "follow":
                self._subscribe(connection, request)
            else:
                with self.reported:
                    if (applied := request["params"].get("applied")) is None:
                        self.reports.append(request["params"])
                    elif (sent := self._subscribers.get(connection)) is not None:  # not dropped
                        sent.confirm(applied)
                    self.reported.notify_all()
                with suppress(BrokenPipeError):  # `drop` closed it after the report
                    connection.sendall(
                        _line({"jsonrpc": "2.0", "id": request["id"], "result": {}})
                    )

    def _subscribe(self, connection: socket.socket, request: dict[str, Any]) -> None:
        with self._lock:
            self.requests.append(request["params"])
            sent = self._subscribers[connection] = SentView()
            view = sent.change_to(*self._roots, denied=self._denied)
            words = {"unknown": self.unknown, "similar": self.similar}
            result = {"start": self.start, "settings": self._settings, **words}
            connection.sendall(_line({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            _send_view(connection, view)
        with self.reported:
            self.reported.notify_all()


def _send_view(subscriber: socket.socket, change: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):  # a subscriber that has just gone misses it
        subscriber.sendall(_line({"jsonrpc": "2.0", "method": "change", "params": change}))


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def subscribed(client: str, program: Mapping[str, object]) -> WallSubscription:
    """Follow all roots for a program behind the wall, and return when they are known."""
    return answered(ask(follow_params(Hello(client=client), program, WallUse.PROGRAM)))
