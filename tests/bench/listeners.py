"""A program with many MCP sessions in one process, which a parent controls.

    python listeners.py SOCKET COUNT MODERN

It opens COUNT sessions (every MODERNth with `subscriptions/listen`, the others with a handshake
and `resources/subscribe`), prints `ready`, and obeys one word per line. `told` waits until every
session was notified of one change of the set, and prints when (nanoseconds of the monotonic
clock). `ping N` prints the duration of N round trips on the first session (nanoseconds). `read`
lets every session read the set once, and prints how long each waited.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

URI = "roots://approved"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
UPDATED = b'"notifications/resources/updated"'


class Listener:
    """One session that listens."""

    def __init__(self, path: str, *, modern: bool) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self._buffer = bytearray()
        self._modern = modern
        self._id = 0
        if modern:
            wanted = {"notifications": {"resourceSubscriptions": [URI]}}
            self._send("subscriptions/listen", wanted, id_="listen")
            self._line()
        else:
            info = {"name": "listener", "version": "1"}
            self.ask(
                "initialize",
                {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info},
            )
            self._send("notifications/initialized")
            self.ask("resources/subscribe", {"uri": URI})

    def ask(self, method: str, params: dict[str, Any]) -> bytes:
        """The line that answers a request."""
        self._id += 1
        self._send(method, params, id_=self._id)
        head = b'{"jsonrpc":"2.0","id":%d,' % self._id
        while not (line := self._line()).startswith(head):
            pass
        return line

    def lines(self) -> Iterator[bytes]:
        """What has arrived; the socket is readable."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the daemon hung up")
        self._buffer += data
        while (line := self._pop()) is not None:
            yield line

    def _send(self, method: str, params: object = None, *, id_: object = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if isinstance(params, dict):
            message["params"] = {**params, "_meta": META} if self._modern else params
        if id_ is not None:
            message["id"] = id_
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def _line(self) -> bytes:
        while (line := self._pop()) is None:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the daemon hung up")
            self._buffer += data
        return line

    def _pop(self) -> bytes | None:
        end = self._buffer.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


def told(listeners: list[Listener]) -> list[int]:
    """When each was told of the change."""
    times: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        for number, listener in enumerate(listeners):
            selector.register(listener.socket, selectors.EVENT_READ, number)
        while len(times) < len(listeners):
            for key, _ in selector.select():
                now = time.monotonic_ns()
                if any(UPDATED in line for line in listeners[key.data].lines()):
                    times.setdefault(key.data, now)
    return list(times.values())


def pings(listener: Listener, count: int) -> list[int]:
    """How long each round trip took."""
    spent = []
    for _ in range(count):
        begin = time.monotonic_ns()
        listener.ask("ping", {})
        spent.append(time.monotonic_ns() - begin)
    return spent


def reads(listeners: list[Listener]) -> list[int]:
    """How long each session waited for the whole set, one after the other."""
    spent = []
    for listener in listeners:
        begin = time.monotonic_ns()
        listener.ask("resources/read", {"uri": URI})
        spent.append(time.monotonic_ns() - begin)
    return spent


def main() -> None:
    """Obey the parent until it closes the pipe."""
    path, count, modern = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    listeners = [
        Listener(path, modern=modern > 0 and number % modern == modern - 1)
        for number in range(count)
    ]
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        match word:
            case "told":
                answer = told(listeners)
            case "ping":
                answer = pings(listeners[0], int(rest[0]))
            case _:
                answer = reads(listeners)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
