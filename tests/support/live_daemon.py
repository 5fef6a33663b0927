"""A fake daemon that screens can follow: a thread for each connection, and updates at will."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from rootsd.core.errors import ErrorCode
from rootsd.wire.feed import FEED_VERSION
from support.fake_daemon import FakeDaemon, Objection, a_listing, an_item


class Challenged(Objection):
    """The error that asks for a word on the terminal."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.REFUSED, "this has to be confirmed")
        self.data["challenge"] = {"terminal": "/dev/pts/7"}


class LiveDaemon(FakeDaemon):
    """Sends `snapshot` to each follower, and then what `send` is given.

    `show` answers with the items of the snapshot. An answer to `follow` replaces all of this.
    """

    def __init__(self, folder: Path, snapshot: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(folder)
        self.snapshot = list(snapshot)
        self.answers["show"] = self.show
        self._followers: dict[socket.socket, Iterator[int]] = {}
        self._threads: list[threading.Thread] = []

    def send(self, **changes: object) -> None:
        """Send an update to all followers."""
        for follower, numbers in [*self._followers.items()]:
            _send(follower, numbers, an_update(**changes))

    def drop(self) -> None:
        """End all subscriptions, as the end of a daemon does."""
        # A screen connects again as soon as its subscription ends.
        followers, self._followers = self._followers, {}
        for follower in followers:
            with suppress(OSError):  # its screen has ended
                follower.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._is_stopping:
                connection.close()
                self.drop()
                for thread in self._threads:
                    thread.join(30)
                return
            thread = threading.Thread(target=self._talk, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError), connection.makefile("rwb") as stream:
            for line in stream:
                if self.raw is not None:
                    return
                request = json.loads(line)
                if request["method"] == "follow" and "follow" not in self.answers:
                    self.requests.append(("follow", {}))
                    result = {"version": FEED_VERSION, "rootsd": "1", "start": None}
                    connection.sendall(_line({"id": request["id"], "result": result}))
                    numbers = self._followers[connection] = count()
                    for update in self.snapshot:
                        _send(connection, numbers, update)
                else:
                    stream.write(self._reply(request))
                    stream.flush()

    def show(self, params: dict[str, Any]) -> Mapping[str, Any]:
        """Return the projects of the snapshot that `refs` names."""
        found = [
            each["item"]
            for update in self.snapshot
            for each in update["screen"]["projects"]
            if each["item"]["id"] in params["refs"]
        ]
        return a_listing(*found)


def _send(follower: socket.socket, numbers: Iterator[int], update: Mapping[str, Any]) -> None:
    change = {**update, "number": next(numbers)}
    follower.sendall(_line({"method": "change", "params": change}))


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def an_update(**changes: object) -> dict[str, Any]:
    """Return a `FeedChange` in which nothing has changed on a screen, with `changes`."""
    focus = changes.pop("focus", None)
    screen = {
        "projects": [], "gone": [], "sessions": None, "confined": None, "is_complete": True,
        **changes,
    }  # fmt: skip
    return {"revision": 7, "focus": focus, "roots": None, "screen": screen}


def followed(group: str, name: str, **changes: object) -> dict[str, Any]:
    """Return a `FollowedProject`. Its id and its identity come from its name."""
    published = group == "approved"
    item = an_item(
        name, id=f"id-{name}"[:12], identity=f"folder of {name}", published=published,
        verdict=group if group in ("approved", "denied") else "pending", findings=[],
    )  # fmt: skip
    return {"group": group, "item": {**item, **changes}}
